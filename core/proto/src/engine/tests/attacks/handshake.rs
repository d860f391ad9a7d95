//! Requests that come again, strangers, farewells.

use super::*;
use crate::wire::{Close, Reject, Reset};

/// A CLOSE between two identifiers.
fn close(to: u64, from: u64, is_answer: bool) -> Vec<u8> {
    let header = Header { kind: Kind::Close, to, from, number: 1, time: 0 };
    let mut frame = vec![0; 100];
    let len = Close { is_answer, ..Close::answer(header) }.emit(&[], &mut frame);
    frame.truncate(len);
    frame
}

#[test]
fn an_answer_to_a_farewell_is_not_answered() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    assert!(raw.give(&close(77, 88, true)).is_empty());
    assert_eq!(raw.give(&close(77, 88, false)).len(), 1);
}

#[test]
fn a_request_captured_long_ago_is_none_when_the_clock_has_wrapped() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.me = 4242;
    let first = raw.connect_frame(Attribute::ReliableOrdered, 0, 0);
    let answers = raw.give(&first);
    let retry = answers.iter().find_map(|frame| Retry::parse(frame)).expect("a cookie");
    let captured = raw.connect_frame(Attribute::ReliableOrdered, retry.cookie, retry.cookie_time);
    raw.now = raw.now.plus_micros((1 << 32) + 1_000_000);
    raw.give(&captured);
    assert!(raw.host.requests.is_empty());
}

#[test]
fn a_client_is_not_driven_by_a_flood_of_retries() {
    let mut engine = Engine::new(&CONFIG, [5; 8]);
    let mut host = recording_host(10);
    let mut now = Time(1_000_000);
    let open =
        Open { to: PEER, attribute: Attribute::ReliableOrdered, payload: b"", host_cookie: 0, timeout: None, token: 0 };
    let index = engine.connect(now, &open).expect("connect");
    let (id, mut buffer, mut asked) = (engine.table.get(index.0).expect("asking").id, vec![0; 1400], 0);
    for cookie in 0..500 {
        now = now.plus_micros(10);
        let header = Header { kind: Kind::Retry, to: id, from: 0, number: 0, time: 0 };
        let mut frame = vec![0; 100];
        let len = Retry { header, cookie, cookie_time: 0 }.emit(&mut frame);
        engine.handle_verified(now, &PEER, &frame[..len], false, &mut host);
        while engine.poll_transmit(now, true, &mut buffer, &mut host).is_some() {
            asked += 1;
        }
    }
    assert!(asked <= 10, "{asked} CONNECTs, each thirteen times a RETRY");
}

#[test]
fn a_program_that_thinks_for_long_is_asked_once() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.me = 4242;
    raw.ask(Attribute::ReliableOrdered);
    for _ in 0..40 {
        raw.wait(1_000_000);
        raw.engine.handle_timeout(raw.now, &mut raw.host);
        raw.ask_again();
    }
    assert_eq!(raw.host.requests.len(), 1);
    let index = raw.host.requests[0];
    raw.engine.reject(raw.now, index, &mut raw.host).expect("reject");
    raw.poll();
    raw.wait(1_000_000);
    let frame = raw.connect_frame(Attribute::ReliableOrdered, 0, 0);
    assert!(raw.give(&frame).iter().any(|frame| Reject::parse(frame).is_some()), "a lost answer is given again");
    // And is forgotten in time.
    raw.wait(60_000_000);
    raw.engine.handle_timeout(raw.now, &mut raw.host);
    assert_eq!(raw.engine.admission.len(), 0);
}

impl Raw {
    /// As a client that has heard nothing: with whatever cookie the server gives.
    fn ask_again(&mut self) {
        let first = self.connect_frame(Attribute::ReliableOrdered, 0, 0);
        let answers = self.give(&first);
        if let Some(retry) = answers.iter().find_map(|frame| Retry::parse(frame)) {
            let second = self.connect_frame(Attribute::ReliableOrdered, retry.cookie, retry.cookie_time);
            self.give(&second);
        }
    }
}

#[test]
fn a_client_whose_connection_was_closed_before_it_heard_of_it_is_refused() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.me = 4242;
    raw.ask(Attribute::ReliableOrdered);
    let index = raw.host.requests.pop().expect("a request");
    raw.engine.accept(raw.now, index, 1).expect("accept");
    let now = raw.now;
    raw.engine.close(now, index, &mut raw.host);
    raw.wait(1_000_000);
    let frame = raw.connect_frame(Attribute::ReliableOrdered, 0, 0);
    let answers = raw.give(&frame);
    assert!(answers.iter().any(|frame| Reject::parse(frame).is_some()));
    assert!(raw.host.requests.is_empty());
}

#[test]
fn a_flood_of_requests_leaves_no_memory_without_end() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    for id in 0..70_000 {
        raw.me = 1_000_000 + id;
        raw.ask(Attribute::ReliableOrdered);
        let index = raw.host.requests.pop().expect("a request");
        raw.engine.reject(raw.now, index, &mut raw.host).expect("reject");
        raw.poll();
        raw.now = raw.now.plus_micros(200);
    }
    assert!(raw.engine.admission.len() <= 1 << 13, "a quarter of 2^15 for one network");
    assert!(raw.engine.exchanges.is_empty());
}

#[test]
fn who_does_not_know_both_identifiers_changes_nothing() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let (it, me) = (raw.it, raw.me);
    let number = raw.engine.table.get(raw.index.0).expect("open").number;
    let reset = |to: u64, from: u64, number: u32| {
        let header = Header { kind: Kind::Reset, to, from, number: 1, time: 0 };
        let mut frame = vec![0; 100];
        let len = Reset { header, number }.emit(&mut frame);
        frame.truncate(len);
        frame
    };
    for frame in [
        close(it, me ^ 1, false),
        close(it, 0, true),
        close(it ^ 1 << 30, me, false),
        reset(it, me ^ 1, number.wrapping_sub(1)),
        reset(it, me, number),
        reset(it, me, number.wrapping_sub(70_000)),
    ] {
        raw.give(&frame);
    }
    // From elsewhere, with both.
    raw.engine.handle_verified(raw.now, &Address([9; 24]), &close(it, me, false), false, &mut raw.host);
    raw.engine.handle_verified(raw.now, &Address([9; 24]), &reset(it, me, number - 1), false, &mut raw.host);
    assert!(raw.host.broken.is_empty());
    raw.give(&reset(it, me, number.wrapping_sub(1)));
    assert_eq!(raw.host.broken.len(), 1);
}

#[test]
fn no_answer_is_longer_than_what_provoked_it() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    for kind in 1..=10 {
        for len in [32, 36, 44, 56, 64, 100, 564, 1400] {
            let mut frame = vec![0; len];
            let Some(kind) = Kind::from_u8(kind) else { continue };
            Header { kind, to: if kind == Kind::Connect { 0 } else { 55 }, from: 66, number: 3, time: 0 }
                .emit(&mut frame);
            for answer in raw.give(&frame) {
                assert!(answer.len() <= len, "{kind:?} of {len} bytes is answered with {}", answer.len());
            }
        }
    }
}

#[test]
fn an_accept_that_nobody_waits_for_is_answered_so_that_the_server_lets_go() {
    let mut pair = Pair::new(0);
    let open = Open {
        to: ADDRESSES[1],
        attribute: Attribute::ReliableOrdered,
        payload: b"",
        host_cookie: 0,
        timeout: None,
        token: 0,
    };
    let client = pair.engines[0].connect(pair.now, &open).expect("connect");
    pair.run(|pair| !pair.hosts[1].requests.is_empty());
    let now = pair.now;
    pair.engines[0].close(now, client, &mut pair.hosts[0]);
    pair.engines[1].accept(now, pair.hosts[1].requests[0], 0).expect("accept");
    let until = now.plus_micros(1_000_000);
    pair.run_until(until);
    assert_eq!(pair.hosts[1].refused, [Failure::Disconnected]);
}

#[test]
fn a_side_that_gives_up_tells_the_other() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
    pair.engines[0].set_timeouts(pair.now, client, 100_000, 0);
    pair.hosts[1].slots = 0;
    pair.engines[0].send(pair.now, client, &[b"never"], Op(1), false).expect("send");
    pair.run(|pair| !pair.hosts[0].broken.is_empty());
    assert_eq!(pair.hosts[0].broken, [(client, Failure::NotReady)]);
    let now = pair.now;
    pair.engines[0].close(now, client, &mut pair.hosts[0]);
    let until = now.plus_micros(1_000_000);
    pair.run_until(until);
    assert_eq!(pair.hosts[1].broken, [(server, Failure::Disconnected)]);
}

#[test]
fn a_redirected_client_answers_the_retries_of_the_other_server_at_once() {
    let mut engine = Engine::new(&CONFIG, [4; 8]);
    let (mut host, now, mut buffer) = (recording_host(4), Time(1_000_000), vec![0; 1400]);
    let attribute = Attribute::ReliableOrdered;
    let open = Open { to: PEER, attribute, payload: b"", host_cookie: 0, timeout: None, token: 0 };
    let index = engine.connect(now, &open).expect("connect");
    let id = engine.table.get(index.0).expect("there").id;
    let mut asked = |engine: &mut Engine, cookie: u64| {
        let header = Header { kind: Kind::Retry, to: id, from: 0, number: 0, time: 0 };
        let mut frame = vec![0; 100];
        let len = Retry { header, cookie, cookie_time: 1 }.emit(&mut frame);
        engine.handle_verified(now, &PEER, &frame[..len], false, &mut host);
        engine.poll_transmit(now, true, &mut buffer, &mut host).is_some()
    };
    while asked(&mut engine, 5) {}
    engine.follow(now, index, PEER, 9);
    assert!(asked(&mut engine, 6), "its first CONNECT there");
    for cookie in 7..10 {
        assert!(asked(&mut engine, cookie), "the RETRY with cookie {cookie} is not answered");
    }
}

#[test]
fn a_malformed_frame_is_counted_once() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let mut connect = raw.connect_frame(Attribute::ReliableOrdered, 0, 0);
    connect[86] = 1;
    let header = raw.header(Kind::Reset);
    let mut reset = vec![0; 33];
    header.emit(&mut reset);
    for (count, frame) in [(1, connect), (2, reset)] {
        raw.give(&frame);
        assert_eq!((raw.engine.stats.malformed, raw.engine.stats.strays), (count, 0));
    }
}

#[test]
fn a_flow_of_an_unreliable_connection_is_kept_for_a_while_after_a_send() {
    let mut raw = Raw::new(Attribute::Unreliable);
    raw.wait(5_000_000);
    raw.engine.send(raw.now, raw.index, &[b"on its way"], Op(1), false).expect("send");
    raw.poll();
    raw.wait(900_000);
    assert_eq!(raw.engine.flows.iter().count(), 1);
    raw.wait(200_000);
    assert_eq!(raw.engine.flows.iter().count(), 0);
}
