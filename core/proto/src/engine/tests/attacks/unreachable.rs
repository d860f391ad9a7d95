//! A network that says "unreachable" for a while, or for ever.

use super::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A pair whose client is refused by somebody elsewhere, or hears nothing.
struct Refused {
    pair: Pair,
    client: Index,
    begun: Time,
    /// Frames of the client that were refused and are still to be quoted.
    quotes: Rc<RefCell<Vec<Vec<u8>>>>,
    /// When the client sent, microseconds.
    sent: Vec<u64>,
    says: Rc<Cell<Says>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Unreachable,
    Nothing,
    Passes,
}

impl Refused {
    fn new(attribute: Attribute) -> Self {
        let (mut pair, [client, _]) = Pair::connected(attribute);
        let begun = pair.now.plus_micros(2_000_000);
        pair.run_until(begun);
        let (quotes, says) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Cell::new(Says::Unreachable)));
        let (into, what) = (Rc::clone(&quotes), Rc::clone(&says));
        pair.filter = std::boxed::Box::new(move |side, frame| {
            if side == 0 && what.get() != Says::Passes {
                into.borrow_mut().push(frame.to_vec());
            }
            what.get() == Says::Passes
        });
        pair.engines[0].send(begun, client, &[b"refused"], Op(1), false).expect("send");
        Self { pair, client, begun, quotes, sent: Vec::new(), says }
    }

    /// Lets time pass up to so many milliseconds since the beginning.
    fn run_to(&mut self, millis: u64) {
        let until = self.begun.plus_micros(millis * 1000);
        loop {
            let now = self.pair.now;
            let Pair { engines: [engine, _], hosts: [host, _], .. } = &mut self.pair;
            for quote in self.quotes.borrow_mut().drain(..) {
                self.sent.push(now.since(self.begun) / 1000);
                if self.says.get() == Says::Unreachable {
                    engine.handle_unreachable(now, &ADDRESSES[1], &quote, false, host);
                }
            }
            self.pair.pump();
            if !self.quotes.borrow().is_empty() {
                continue;
            }
            let timers = self.pair.engines.iter().filter_map(Engine::poll_timeout);
            let frame = self.pair.wire.first_key_value().map(|((at, _), _)| *at);
            if timers.chain(frame).min().is_none_or(|next| next > until) {
                self.pair.now = until;
                return;
            }
            self.pair.step();
        }
    }

    fn is_broken(&self) -> bool {
        !self.pair.hosts[0].broken.is_empty()
    }
}

#[test]
fn what_this_host_itself_refuses_ends_at_once() {
    let mut refused = Refused::new(Attribute::ReliableOrdered);
    refused.pair.pump();
    let quote = refused.quotes.borrow_mut().pop().expect("a frame");
    let Pair { engines: [engine, _], hosts: [host, _], now, .. } = &mut refused.pair;
    engine.handle_unreachable(*now, &ADDRESSES[1], &quote, true, host);
    assert_eq!(host.broken, [(refused.client, Failure::Disconnected)]);
    assert_eq!(host.ended[&1], Err(Failure::Disconnected));
}

#[test]
fn where_nothing_leaves_or_arrives_any_more_everything_ends() {
    let mut refused = Refused::new(Attribute::ReliableUnordered);
    let Pair { engines: [engine, server], hosts: [host, other], now, .. } = &mut refused.pair;
    engine.handle_down(*now, |to| *to != ADDRESSES[1], host);
    assert_eq!(host.broken, [], "the peer is reached by what is not down");
    engine.handle_down(*now, |_| true, host);
    engine.handle_down(*now, |_| true, host);
    assert_eq!(host.broken, [(refused.client, Failure::Disconnected)], "once");
    assert_eq!(host.ended[&1], Err(Failure::Disconnected));
    server.handle_down(*now, |_| true, other);
    assert_eq!(other.broken.len(), 1);
}

#[test]
fn three_seconds_of_refusal_heal() {
    for attribute in [Attribute::ReliableOrdered, Attribute::ReliableUnordered] {
        let mut refused = Refused::new(attribute);
        refused.run_to(3000);
        assert!(!refused.is_broken() && !refused.pair.hosts[0].ended.contains_key(&1));
        refused.says.set(Says::Passes);
        refused.run_to(3600);
        assert_eq!(refused.pair.hosts[0].ended[&1], Ok(()), "within a probe of half a second");
        assert_eq!(refused.pair.hosts[1].received, [b"refused".to_vec()]);
        // The next refusal begins anew.
        refused.says.set(Says::Unreachable);
        refused.run_to(4000);
        let now = refused.pair.now;
        refused.pair.engines[0].send(now, refused.client, &[b"again"], Op(2), false).expect("send");
        refused.run_to(8500);
        assert!(!refused.is_broken());
        refused.run_to(9100);
        assert!(refused.is_broken());
        assert_eq!(refused.pair.hosts[0].ended[&2], Err(Failure::Disconnected));
    }
}

#[test]
fn a_peer_that_is_refused_for_five_seconds_is_gone_and_was_probed_ten_times_and_more() {
    let mut refused = Refused::new(Attribute::Unreliable);
    refused.run_to(4990);
    assert!(!refused.is_broken());
    refused.run_to(5010);
    assert!(refused.is_broken());
    let millis: Vec<u64> = refused.sent.iter().map(|micros| micros / 1000).collect();
    assert_eq!(millis, [0, 50, 150, 350, 750, 1250, 1750, 2250, 2750, 3250, 3750, 4250, 4750]);
}

#[test]
fn silence_after_a_refusal_is_no_refusal() {
    let mut refused = Refused::new(Attribute::Unreliable);
    refused.run_to(1000);
    refused.says.set(Says::Nothing);
    refused.run_to(20_000);
    assert!(!refused.is_broken());
    let probes = refused.sent.len();
    refused.run_to(60_000);
    assert_eq!(refused.sent.len(), probes, "nor is it asked for ever");
    assert!(refused.pair.engines[0].unreachable.is_empty());
}
