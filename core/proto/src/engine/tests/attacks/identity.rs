//! What those off the path may guess, forge, or have this side send.

use super::*;
use crate::engine::connection::conn::Conn;
use crate::engine::connection::table::Table;
use crate::wire::{Accept, Reset};

/// A DATA frame for a connection that nobody has.
fn stray_data(raw: &mut Raw, to: u64) -> Vec<u8> {
    let mut frame = raw.data(None, 0, &[], &[]);
    frame[8..16].copy_from_slice(&to.to_be_bytes());
    frame
}

/// How many RESETs so many stray frames from each of these addresses bring.
fn resets(raw: &mut Raw, networks: std::ops::Range<u8>, each: u64) -> usize {
    let mut count = 0;
    for network in networks {
        for to in 0..each {
            let frame = stray_data(raw, 1 << 40 | to);
            raw.engine.handle_verified(raw.now, &Address([network; 24]), &frame, false, &mut raw.host);
            count += raw.poll().iter().filter(|frame| Reset::parse(frame).is_some()).count();
        }
    }
    count
}

#[test]
fn resets_are_limited_and_one_network_gets_a_quarter() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    assert_eq!(resets(&mut raw, 10..11, 10_000), 64);
    raw.now = raw.now.plus_micros(1_000_000);
    assert_eq!(resets(&mut raw, 10..11, 10_000), 25, "a quarter of a hundred in a second");
    // Everybody together.
    let all = resets(&mut raw, 20..220, 100);
    assert!((128..=256).contains(&all), "{all} at once");
    raw.now = raw.now.plus_micros(1_000_000);
    assert_eq!(resets(&mut raw, 20..220, 100), 100);
    raw.now = raw.now.plus_micros(60_000_000);
    assert_eq!(resets(&mut raw, 20..220, 100), 256, "no more is saved up");
}

#[test]
fn every_bit_of_an_identifier_is_random() {
    let (mut table, mut random) = (Table::new(), random::Random::new([3, 4]));
    const COUNT: u32 = 20_000;
    let mut ones = [0_u32; 64];
    let mut same = [0_u32; 64];
    let mut last = 0;
    for number in 0..COUNT {
        let (index, id) = table.take(&mut random).expect("a index");
        table.put(index, Conn::new(id, 0, PEER, Attribute::ReliableOrdered, 0));
        assert_eq!(table.find(id), Some(index));
        if number % 2 == 0 {
            // The next one has the same index.
            table.remove(index);
            assert_eq!(table.find(id), None);
        }
        for bit in 0..64 {
            ones[bit] += (id >> bit & 1) as u32;
            same[bit] += (!(id ^ last) >> bit & 1) as u32;
        }
        last = id;
    }
    // Half of them, to seven standard deviations: the square root of the number, halved.
    let is_half = |count: &u32| count.abs_diff(COUNT / 2) < 500;
    assert!(ones.iter().all(is_half), "{ones:?}");
    assert!(same.iter().all(is_half), "one tells of the next: {same:?}");
}

/// A client that connects to the raw peer's server.
fn asking(now: Time) -> (Engine, RecordingHost, Index) {
    let mut engine = Engine::new(&CONFIG, [5; 8]);
    let open =
        Open { to: PEER, attribute: Attribute::ReliableOrdered, payload: b"", host_cookie: 0, timeout: None, token: 0 };
    let index = engine.connect(now, &open).expect("connect");
    (engine, recording_host(10), index)
}

#[test]
fn an_accept_without_the_clients_cookie_opens_nothing() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let (mut engine, mut host, index) = asking(raw.now);
    let id = engine.table.get(index.0).expect("asking").id;
    let mut buffer = vec![0; 1400];
    // Its CONNECT is answered with a cookie, and with that it asks again.
    for _ in 0..2 {
        while let Some(transmit) = engine.poll_transmit(raw.now, true, &mut buffer, &mut host) {
            raw.engine.handle_verified(raw.now, &ADDRESSES[0], &buffer[..transmit.len], false, &mut raw.host);
        }
        for frame in raw.poll() {
            engine.handle_verified(raw.now, &PEER, &frame, false, &mut host);
        }
    }
    let request = raw.host.requests.pop().expect("a request");
    raw.engine.accept(raw.now, request, 1).expect("accept");
    let right = raw.poll().into_iter().find(|frame| Accept::parse(frame).is_some()).expect("an ACCEPT");
    let accept = Accept::parse(&right).expect("just parsed");
    assert_eq!(accept.header.to, id);
    for cookie in [0, accept.cookie ^ 1, accept.cookie.wrapping_add(1)] {
        let forged = Accept { header: Header { from: 99, ..accept.header }, cookie, ..accept };
        let len = forged.emit(&mut buffer);
        engine.handle_verified(raw.now, &PEER, &buffer[..len], false, &mut host);
        assert!(host.opened.is_empty(), "opened by who does not know the cookie");
    }
    engine.handle_verified(raw.now, &PEER, &right, false, &mut host);
    assert_eq!(host.opened, [index]);
}

/// Without it the client drops an answer to its first CONNECT when the second is lost: the server
/// gives it up.
#[test]
fn an_accept_with_a_cookie_that_was_shown_before_opens() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let (mut engine, mut host, index) = asking(raw.now);
    let mut buffer = vec![0; 1400];
    let mut next = |engine: &mut Engine, now| {
        let transmit = engine.poll_transmit(now, true, &mut buffer, &mut recording_host(10))?;
        Some(buffer[..transmit.len].to_vec())
    };
    let first = next(&mut engine, raw.now).expect("a CONNECT");
    // The network doubles the first CONNECT: there are two RETRYs, and the client shows either's
    // cookie.
    let mut shown = Vec::new();
    for micros in [0, 7] {
        raw.now = raw.now.plus_micros(micros);
        raw.engine.handle_verified(raw.now, &ADDRESSES[0], &first, false, &mut raw.host);
        let retry = raw.poll().into_iter().find(|frame| Retry::parse(frame).is_some()).expect("a RETRY");
        engine.handle_verified(raw.now, &PEER, &retry, false, &mut host);
        shown.push(next(&mut engine, raw.now).expect("a CONNECT with a cookie"));
    }
    let cookies: Vec<_> = shown.iter().map(|frame| Connect::parse(frame).expect("a CONNECT").cookie).collect();
    assert_ne!(cookies[0], cookies[1]);
    // The second is lost.
    raw.engine.handle_verified(raw.now, &ADDRESSES[0], &shown[0], false, &mut raw.host);
    let request = raw.host.requests.pop().expect("a request");
    raw.engine.accept(raw.now, request, 1).expect("accept");
    let accept = raw.poll().into_iter().find(|frame| Accept::parse(frame).is_some()).expect("an ACCEPT");
    engine.handle_verified(raw.now, &PEER, &accept, false, &mut host);
    assert_eq!(host.opened, [index]);
}

#[test]
fn a_client_that_asks_again_with_a_newer_cookie_is_answered_with_that() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.me = 4242;
    raw.ask(Attribute::ReliableOrdered);
    let index = raw.host.requests.pop().expect("a request");
    // A delayed RETRY has given it another cookie; a delayed first CONNECT shows none.
    let newer = raw.connect_frame(Attribute::ReliableOrdered, 77, 1);
    raw.give(&newer);
    let first = raw.connect_frame(Attribute::ReliableOrdered, 0, 0);
    raw.give(&first);
    raw.engine.accept(raw.now, index, 1).expect("accept");
    let answers = raw.poll();
    let accept = answers.iter().find_map(|frame| Accept::parse(frame)).expect("an ACCEPT");
    assert_eq!(accept.cookie, 77);
}

#[test]
fn where_nobody_may_ask_only_peers_are_heard_and_nobody_is_answered() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let mut connect = raw.connect_frame(Attribute::ReliableOrdered, 0, 0);
    connect[16..24].copy_from_slice(&[8; 8]);
    // A request with the identifiers of a connection is still one.
    let mut named = connect.clone();
    named[8..16].copy_from_slice(&raw.it.to_be_bytes());
    let data = stray_data(&mut raw, 1 << 40);
    let mut close = vec![0; wire::CLOSE];
    raw.header(Kind::Close).emit(&mut close);
    close[8..16].copy_from_slice(&[7; 8]);
    let good = raw.data(Some(raw.seq), 0, &[], &note(b"good"));
    let mut answer = |from: Address, frame: &[u8]| {
        let mut frame = frame.to_vec();
        wire::seal(&mut frame, 0, |check| check);
        if raw.engine.is_for_peer(&from, &frame) {
            raw.engine.handle_frame(raw.now, &from, &frame, false, &mut raw.host).expect("sound");
        }
        (raw.poll().len(), raw.host.received.len(), raw.engine.stats().strays)
    };
    for (count, (from, frame)) in
        [(PEER, &connect), (PEER, &named), (PEER, &data), (PEER, &close), (Address([9; 24]), &good)].iter().enumerate()
    {
        assert_eq!(answer(*from, frame), (0, 0, count as u64 + 1), "frame {count}");
    }
    assert_eq!(answer(PEER, &good), (1, 1, 5), "a message of the peer, and its acknowledgement");
    assert!(raw.host.requests.is_empty());
    // The twin: elsewhere strangers are answered.
    for frame in [&connect, &data] {
        assert_eq!(raw.give(frame).len(), 1);
    }
}
