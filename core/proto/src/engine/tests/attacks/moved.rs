//! Frames of a peer that come from another address than that of its connection.

use super::*;

/// Where a NAT maps the client to later.
const ELSEWHERE: Address = Address([7; 24]);

/// The next frames of the client, which has something to send.
fn sent(pair: &mut Pair, client: Index, number: u32) -> Vec<Vec<u8>> {
    pair.engines[0].send(pair.now, client, &[b"moved"], Op(number), false).expect("room");
    pair.pump();
    let frames = pair.wire.values().filter(|(to, _)| *to == 1).map(|(_, frame)| frame.clone()).collect();
    pair.wire.clear();
    frames
}

#[test]
fn frames_of_a_peer_from_another_address_are_counted_and_change_nothing() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
    pair.run_until(Time(pair.now.0 + 2_000_000_000));
    assert_eq!(pair.engines[1].report(server).moved, None);
    let frames = sent(&mut pair, client, 1);
    assert!(!frames.is_empty());
    let (now, before) = (pair.now, pair.engines[1].stats().strays);
    for frame in &frames {
        pair.engines[1].handle_frame(now, &ELSEWHERE, frame, false, &mut pair.hosts[1]).expect("sealed");
        assert!(!pair.engines[1].is_for_peer(&ELSEWHERE, frame));
    }
    let count = 2 * frames.len() as u64;
    assert_eq!(pair.engines[1].report(server).moved, Some(Moved { from: ELSEWHERE, frames: count }));
    assert_eq!(pair.engines[1].stats().strays, before + count);
    assert!(pair.hosts[1].received.is_empty());
    assert_eq!(pair.engines[1].address(server), Some(ADDRESSES[0]), "the connection stays where it was");
    // Who does not know the identifier of the client's side sends no frame of the peer.
    let mut forged = frames[0].clone();
    let header = Header { from: 1, ..Header::parse(&forged).expect("a header") };
    header.emit(&mut forged);
    wire::seal(&mut forged, 0, |check| check);
    pair.engines[1].handle_frame(now, &ELSEWHERE, &forged, false, &mut pair.hosts[1]).expect("sealed");
    assert_eq!(pair.engines[1].report(server).moved.map(|moved| moved.frames), Some(count));
    // It is forgotten with the connection, whose place another one gets.
    pair.engines[1].close(now, server, &mut pair.hosts[1]);
    pair.run_until(Time(pair.now.0 + 60_000_000_000));
    assert_eq!(pair.engines[1].report(server).moved, None);
}

#[test]
fn a_connect_that_times_out_knows_whether_an_endpoint_answered() {
    let mut pair = Pair::new(0);
    // The program of the other side answers nothing.
    for is_answered in [true, false] {
        pair.filter = std::boxed::Box::new(move |side, _| side == 0 || is_answered);
        let timeout = Some(core::time::Duration::from_secs(1));
        let attribute = Attribute::ReliableOrdered;
        let open = Open { to: ADDRESSES[1], attribute, payload: b"", host_cookie: 0, timeout, token: 0 };
        pair.engines[0].connect(pair.now, &open).expect("connect");
        let before = pair.hosts[0].refused.len();
        pair.run(|pair| pair.hosts[0].refused.len() > before);
        assert_eq!(pair.hosts[0].refused.last(), Some(&Failure::TimedOut));
        assert_eq!(pair.hosts[0].answered.pop(), Some(is_answered));
    }
}
