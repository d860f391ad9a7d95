//! Who is let in when many ask, and what a repeated CONNECT gives.

use super::*;
use crate::engine::strangers::admission::{Admission, MAX_KNOWN_REQUESTS};
use crate::wire::Accept;

/// A server that was asked by nobody yet.
fn server() -> Raw {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.host.opened.clear();
    raw.me = 1000;
    raw
}

/// Asks as a client with this identifier; the second CONNECT, and what it is answered.
fn ask_as(raw: &mut Raw, own: u64) -> (Vec<u8>, Vec<Vec<u8>>) {
    raw.me = own;
    let first = raw.connect_frame(Attribute::ReliableOrdered, 0, 0);
    let retry = raw.give(&first).iter().find_map(|frame| Retry::parse(frame)).expect("a cookie");
    let second = raw.connect_frame(Attribute::ReliableOrdered, retry.cookie, retry.cookie_time);
    let answers = raw.give(&second);
    (second, answers)
}

#[test]
fn a_repeated_connect_is_no_second_request_however_many_came_since() {
    let mut raw = server();
    let (connect, _) = ask_as(&mut raw, 4242);
    let index = raw.host.requests.pop().expect("a request");
    raw.engine.reject(raw.now, index, &mut raw.host).expect("reject");
    raw.poll();
    for own in 0..20_000 {
        raw.now = raw.now.plus_micros(400);
        ask_as(&mut raw, 1 << 32 | own);
        let index = raw.host.requests.pop().expect("a request");
        raw.engine.reject(raw.now, index, &mut raw.host).expect("reject");
        raw.poll();
    }
    // 8 s later: its cookie would be valid.
    let answers = raw.give(&connect);
    assert!(raw.host.requests.is_empty(), "one request was shown twice");
    assert_eq!(answers.len(), 1);
}

#[test]
fn one_network_leaves_room_for_others_in_a_full_table() {
    let mut raw = server();
    let mut kept = 0;
    for own in 0..20_000 {
        let (_, answers) = ask_as(&mut raw, 1 << 32 | own);
        if let Some(index) = raw.host.requests.pop() {
            kept += 1;
            raw.engine.reject(raw.now, index, &mut raw.host).expect("reject");
            raw.poll();
        } else {
            assert!(answers.iter().all(|frame| Retry::parse(frame).is_some()), "it may ask again");
        }
    }
    assert!(kept <= MAX_KNOWN_REQUESTS / 4, "{kept} of {MAX_KNOWN_REQUESTS} of one network");
    let exchanges = raw.engine.exchanges.len();
    // Another network.
    let client = Open {
        to: ADDRESSES[0],
        attribute: Attribute::ReliableOrdered,
        payload: b"",
        host_cookie: 0,
        timeout: None,
        token: 0,
    };
    let (mut engine, mut host) = (Engine::new(&CONFIG, [5; 8]), recording_host(10));
    engine.connect(raw.now, &client).expect("connect");
    let mut buffer = vec![0; 1400];
    for _ in 0..2 {
        while let Some(transmit) = engine.poll_transmit(raw.now, true, &mut buffer, &mut host) {
            raw.engine.handle_verified(raw.now, &Address([8; 24]), &buffer[..transmit.len], false, &mut raw.host);
        }
        for frame in raw.poll() {
            engine.handle_verified(raw.now, &ADDRESSES[0], &frame, false, &mut host);
        }
    }
    assert_eq!(raw.host.requests.len(), 1, "the other is let in");
    assert_eq!(raw.engine.exchanges.len(), exchanges + 1, "nothing is kept of those who were not");
}

#[test]
fn any_number_of_networks_leave_room_and_nothing_is_kept_for_ever() {
    let mut admission = Admission::default();
    let mut now = Time(20_000_000_000);
    let admit = |admission: &mut Admission, now: Time, network: u64, key: u64| {
        let has_room = admission.has_room(now, network, 1024);
        if has_room {
            admission.insert(key, network, 0, key);
            admission.answer(now, key, None);
        }
        has_room
    };
    for key in 0..100_000 {
        admit(&mut admission, now, key % 5, key);
    }
    assert!(admission.len() < MAX_KNOWN_REQUESTS);
    assert!(admit(&mut admission, now, 6, 200_000), "five greedy networks leave something");
    // Very many networks, each with one: the oldest goes, not before its cookie could be shown.
    let mut refused = 0;
    for key in 300_000..400_000 {
        refused += u32::from(!admit(&mut admission, now, key, key));
    }
    assert!(refused > 0 && admission.len() <= MAX_KNOWN_REQUESTS, "{} are known", admission.len());
    assert_eq!(admission.void(1), Time(0), "no cookie is void yet");
    now = now.plus_micros(2_000_000);
    assert!(admit(&mut admission, now, 500_000, 500_000));
    assert!(admission.void(1) > Time(0), "what was forgotten cannot come back");
    now = now.plus_micros(11_000_000);
    assert!(admission.is_due(now));
    admission.expire(now);
    assert_eq!((admission.len(), admission.pending()), (0, 0));
}

#[test]
fn a_client_that_does_not_confirm_is_given_up_after_five_seconds_and_may_ask_again() {
    let mut raw = server();
    let (connect, _) = ask_as(&mut raw, 4242);
    let index = raw.host.requests.pop().expect("a request");
    raw.engine.accept(raw.now, index, 1).expect("accept");
    assert!(raw.poll().iter().any(|frame| Accept::parse(frame).is_some()));
    assert_eq!(raw.engine.admission.pending(), 1);
    raw.wait(4_900_000);
    assert!(raw.host.refused.is_empty());
    raw.wait(200_000);
    assert_eq!(raw.host.refused, [Failure::TimedOut]);
    assert_eq!(raw.engine.admission.pending(), 0);
    // The frame of before is no second request; the client that asks anew is.
    raw.give(&connect);
    assert!(raw.host.requests.is_empty());
    ask_as(&mut raw, 4242);
    assert_eq!(raw.host.requests.len(), 1);
}

#[test]
fn a_client_that_confirms_is_a_stranger_no_more() {
    let mut pair = Pair::new(3);
    for _ in 0..20 {
        pair.connect(Attribute::ReliableOrdered);
    }
    assert_eq!(pair.engines[1].admission.pending(), 0);
    let until = pair.now.plus_micros(30_000_000);
    pair.run_until(until);
    pair.engines[1].handle_timeout(pair.now, &mut pair.hosts[1]);
    assert_eq!(pair.engines[1].admission.len(), 0);
}
