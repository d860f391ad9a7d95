//! What a CLOSE acknowledges: exactly what its sender has delivered.

use super::*;
use crate::wire::{Close, emit_result};

/// Runs until side 1 knows that side 0 has closed.
fn run_to_the_end(pair: &mut Pair, server: Index) {
    pair.run(|pair| pair.hosts[1].broken.contains(&(server, Failure::Disconnected)));
}

/// The operations of side 1 that succeeded.
fn succeeded(pair: &Pair) -> Vec<u32> {
    pair.hosts[1].ended.iter().filter(|(_, outcome)| outcome.is_ok()).map(|(op, _)| *op).collect()
}

#[test]
fn a_client_that_has_its_answer_and_closes_leaves_a_server_that_knows() {
    for loss in [0, 20, 7] {
        let mut pair = Pair::new(loss);
        for round in 0..50 {
            let [client, server] = pair.connect(Attribute::ReliableOrdered);
            let now = pair.now;
            pair.engines[1].send(now, server, &[b"answer"], Op(round), false).expect("send");
            let before = pair.hosts[0].received.len();
            pair.run(|pair| pair.hosts[0].received.len() > before);
            let now = pair.now;
            pair.engines[0].close(now, client, &mut pair.hosts[0]);
            run_to_the_end(&mut pair, server);
            let now = pair.now;
            pair.engines[1].close(now, server, &mut pair.hosts[1]);
            pair.run(|pair| pair.engines[0].is_quiet());
            pair.hosts[1].broken.clear();
        }
        assert_eq!(succeeded(&pair), (0..50).collect::<Vec<_>>(), "one frame in {loss} is lost");
    }
}

/// Loses the acknowledgement of a message and the first CLOSE. `late`: microseconds between them.
/// Returns whether the sender's operation succeeded, once it has no connection.
fn succeeds_without_acknowledgement_and_first_close(late: u64) -> bool {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
    pair.filter = std::boxed::Box::new(|side, _| side == 1);
    let now = pair.now;
    pair.engines[1].send(now, server, &[b"answer"], Op(0), false).expect("send");
    pair.run(|pair| !pair.hosts[0].received.is_empty());
    pair.filter = std::boxed::Box::new(|_, _| false);
    let later = pair.now.plus_micros(late);
    pair.run_until(later);
    pair.engines[0].close(later, client, &mut pair.hosts[0]);
    // The first CLOSE is lost, and nothing repeats one later.
    pair.pump();
    pair.filter = std::boxed::Box::new(|side, _| side == 0);
    pair.engines[0].repeat_closes(later);
    pair.pump();
    pair.filter = std::boxed::Box::new(|_, _| false);
    let limit = later.plus_micros(300_000_000);
    pair.run_until(limit);
    assert_eq!(pair.hosts[1].broken.len(), 1);
    succeeded(&pair) == [0]
}

#[test]
fn a_close_that_is_sent_again_leaves_a_server_that_knows() {
    assert!(succeeds_without_acknowledgement_and_first_close(0));
}

#[test]
fn a_close_is_sent_once_to_a_peer_that_was_not_heard_lately() {
    assert!(!succeeds_without_acknowledgement_and_first_close(3_000_000));
}

#[test]
fn exactly_the_messages_that_were_delivered_succeed() {
    // Slots of the client, the data frame that is lost, and how many messages are delivered in
    // order and in any order.
    for (slots, lost, ordered, unordered) in
        [(7, 0, 7, 7), (100, 4, 9, 17), (100, 0, 20, 20), (0, 0, 0, 0), (5, 2, 3, 5)]
    {
        for (attribute, expected) in [(Attribute::ReliableOrdered, ordered), (Attribute::ReliableUnordered, unordered)]
        {
            let (mut pair, [client, server]) = Pair::connected(attribute);
            pair.hosts[0].slots = slots;
            let mut frames = 0;
            pair.filter = std::boxed::Box::new(move |side, _| {
                frames += usize::from(side == 1);
                side == 1 && frames != lost
            });
            let now = pair.now;
            for op in 0..20 {
                // Three of them share a frame.
                pair.engines[1].send(now, server, &[&message(op, 370)], Op(op), false).expect("send");
            }
            pair.run_until(now.plus_micros(30));
            pair.filter = std::boxed::Box::new(|_, _| true);
            let now = pair.now;
            pair.engines[0].close(now, client, &mut pair.hosts[0]);
            run_to_the_end(&mut pair, server);
            let mut delivered: Vec<u32> = pair.hosts[0].received.iter().map(|message| number_of(message)).collect();
            delivered.sort_unstable();
            assert_eq!(delivered.len(), expected, "{attribute:?}, {slots} slots, frame {lost} lost");
            assert_eq!(succeeded(&pair), delivered, "{attribute:?}, {slots} slots, frame {lost} lost");
            assert_eq!(pair.hosts[1].ended.len(), 20, "each ends once");
        }
    }
}

/// The number of a message that [`message`] made.
fn number_of(message: &[u8]) -> u32 {
    message.first_chunk().copied().map(u32::from_be_bytes).expect("a number")
}

#[test]
fn a_write_that_is_in_place_when_its_target_closes_has_succeeded() {
    for has_left in [false, true] {
        let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
        let target = Target { handle: [7, 7], offset: 0, len: 5000 };
        let rma = Rma { op: Op(1), target, access: Access::Write, fence: false, message: Some(b"written") };
        let now = pair.now;
        pair.engines[1].rma(now, server, &rma).expect("write");
        pair.engines[1].send(now, server, &[b"after"], Op(2), false).expect("send");
        // Its results are lost if they leave at all.
        pair.filter = std::boxed::Box::new(|side, _| side == 1);
        pair.run(|pair| pair.hosts[0].received.len() == 2);
        if has_left {
            pair.pump();
        }
        pair.filter = std::boxed::Box::new(|_, _| true);
        let now = pair.now;
        pair.engines[0].close(now, client, &mut pair.hosts[0]);
        run_to_the_end(&mut pair, server);
        assert_eq!(pair.hosts[1].order, [1, 2], "in order");
        assert_eq!(succeeded(&pair), [1, 2], "the results had left: {has_left}");
    }
}

#[test]
fn a_refused_write_is_told_by_the_close_too() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
    let target = Target { handle: [7, 8], offset: 0, len: 50 };
    let rma = Rma { op: Op(1), target, access: Access::Write, fence: false, message: None };
    let now = pair.now;
    pair.engines[1].rma(now, server, &rma).expect("write");
    pair.engines[1].send(now, server, &[b"after"], Op(2), false).expect("send");
    pair.filter = std::boxed::Box::new(|side, _| side == 1);
    pair.run(|pair| pair.hosts[0].received.len() == 1);
    pair.filter = std::boxed::Box::new(|_, _| true);
    let now = pair.now;
    pair.engines[0].close(now, client, &mut pair.hosts[0]);
    run_to_the_end(&mut pair, server);
    assert_eq!(pair.hosts[1].ended[&1], Err(Failure::RemoteHandle));
    assert_eq!(pair.hosts[1].ended[&2], Ok(()));
}

impl Raw {
    /// The peer's CLOSE.
    fn close(&mut self, (ack, messages): (u32, u16), sack: &[u64], results: &[u32]) -> Vec<Vec<u8>> {
        let header = self.header(Kind::Close);
        let mut frame = vec![0; 1400];
        let close = Close { header, reason: 0, is_answer: false, ack, messages };
        let at = close.emit(sack, &mut frame);
        let len = results.iter().fold(at, |at, op| emit_result(&mut frame, at, *op, 0));
        self.give(&frame[..len])
    }
}

#[test]
fn a_close_that_acknowledges_what_was_never_sent_ends_the_connection_and_nothing_else() {
    for (ack, sack) in [(1000, 0), (u32::MAX, 0), (0, 1 << 40)] {
        let mut raw = Raw::new(Attribute::ReliableOrdered);
        let first = raw.ack;
        raw.engine.send(raw.now, raw.index, &[&message(1, 1300)], Op(1), false).expect("send");
        raw.engine.send(raw.now, raw.index, &[&message(2, 1000)], Op(2), false).expect("send");
        raw.rma(3, false, 100, None);
        raw.poll();
        raw.close((first.wrapping_add(ack), 0), &[sack], &[3, 3, 77]);
        assert_eq!(raw.host.broken, [(raw.index, Failure::Disconnected)]);
        assert_eq!(raw.host.ended.len(), 3);
        assert!(raw.host.ended[&1].is_err() && raw.host.ended[&2].is_err());
        raw.engine.close(raw.now, raw.index, &mut raw.host);
        assert!(is_clean(&raw.engine, &raw.host));
    }
}

#[test]
fn a_close_ends_each_operation_once_whatever_it_claims() {
    for messages in [0, 1, 2, 3, 9, u16::MAX] {
        let mut raw = Raw::new(Attribute::ReliableUnordered);
        let first = raw.ack;
        for op in 0..9 {
            raw.engine.send(raw.now, raw.index, &[&message(op, 370)], Op(op), false).expect("send");
        }
        raw.poll();
        raw.close((first.wrapping_add(1), messages), &[u64::MAX, u64::MAX], &[]);
        let succeeded = raw.host.ended.values().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(succeeded, 3 + usize::from(messages).min(3) + 3, "{messages} of the second frame");
        assert_eq!(raw.host.ended.len(), 9);
        raw.engine.close(raw.now, raw.index, &mut raw.host);
        assert!(is_clean(&raw.engine, &raw.host));
    }
}

/// Its acknowledgements are lost, and so it gives up what it sends itself. The path is back when
/// its program closes.
#[test]
fn the_close_of_a_side_that_gave_up_acknowledges_what_it_has_delivered() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
    let now = pair.now;
    pair.engines[0].set_timeouts(now, client, 1_000_000, 0);
    pair.filter = std::boxed::Box::new(|side, _| side == 1);
    let target = Target { handle: [7, 7], offset: 0, len: 5000 };
    let rma = Rma { op: Op(1), target, access: Access::Write, fence: false, message: Some(b"written") };
    pair.engines[1].rma(now, server, &rma).expect("write");
    pair.engines[1].send(now, server, &[b"after"], Op(2), false).expect("send");
    pair.engines[0].send(now, client, &[b"never arrives"], Op(3), false).expect("send");
    pair.run(|pair| !pair.hosts[0].broken.is_empty());
    assert_eq!(pair.hosts[0].broken, [(client, Failure::TimedOut)]);
    assert_eq!(pair.hosts[0].received.len(), 2);
    pair.filter = std::boxed::Box::new(|_, _| true);
    let now = pair.now;
    pair.engines[0].close(now, client, &mut pair.hosts[0]);
    run_to_the_end(&mut pair, server);
    assert_eq!(pair.hosts[1].order, [1, 2], "in order");
    assert_eq!(succeeded(&pair), [1, 2]);
}
