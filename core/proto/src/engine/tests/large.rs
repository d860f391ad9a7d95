//! Large messages: memory is asked for, given, and written to.

use super::*;

/// Longer than any message of the test's configuration.
const LEN: u64 = 60_000;

fn start(pair: &mut Pair, side: usize, index: Index, op: u32, len: u64) {
    let target = Target { handle: [0, 0], offset: 0, len };
    let rma = Rma { op: Op(op), target, access: Access::Large, fence: true, message: None };
    pair.engines[side].rma(pair.now, index, &rma).expect("begun");
}

/// Gives the oldest large message of the other side the memory of this one.
fn land(pair: &mut Pair, side: usize, index: Index) {
    let (op, len) = pair.hosts[side].large.remove(0);
    pair.hosts[side].landing = Some((op, len));
    assert!(pair.engines[side].answer_large(index, op, Ok([7, 7])));
}

#[test]
fn a_large_message_takes_its_turn_among_the_others() {
    for loss in [0, 10, 3] {
        let mut pair = Pair::new(loss);
        let [client, server] = pair.connect(Attribute::ReliableOrdered);
        pair.hosts[0].local[..60_000].fill(8);
        pair.engines[0].send(pair.now, client, &[b"before"], Op(1), false).expect("send");
        start(&mut pair, 0, client, 2, LEN);
        pair.engines[0].send(pair.now, client, &[b"after"], Op(3), false).expect("send");
        pair.run(|pair| !pair.hosts[1].large.is_empty());
        let wait = pair.now.plus_micros(200_000);
        pair.run_until(wait);
        assert_eq!(pair.hosts[1].received, [b"before"], "loss {loss}");
        assert_eq!(pair.hosts[0].order, [1], "its memory is not there yet");
        land(&mut pair, 1, server);
        pair.run(|pair| pair.hosts[0].ended.len() == 3);
        assert_eq!(pair.hosts[0].order, [1, 2, 3], "loss {loss}");
        assert!(pair.hosts[0].ended.values().all(Result::is_ok));
        let received = &pair.hosts[1].received;
        assert_eq!((received.len(), &received[2][..]), (3, &b"after"[..]), "loss {loss}");
        assert!(received[1] == [8; 60_000], "loss {loss}");
    }
}

#[test]
fn both_sides_send_large_messages_at_once() {
    let mut pair = Pair::new(5);
    let [client, server] = pair.connect(Attribute::ReliableOrdered);
    for op in 0..3 {
        start(&mut pair, 0, client, op, LEN);
        start(&mut pair, 1, server, op, LEN);
    }
    for _ in 0..3 {
        pair.run(|pair| pair.hosts.iter().all(|host| !host.large.is_empty()));
        land(&mut pair, 0, client);
        land(&mut pair, 1, server);
        pair.run(|pair| pair.hosts.iter().all(|host| host.landing.is_none()));
    }
    pair.run(|pair| pair.hosts.iter().all(|host| host.ended.len() == 3));
    assert!(pair.hosts.iter().all(|host| host.ended.values().all(Result::is_ok) && host.received.len() == 3));
}

#[test]
fn a_message_that_the_receiver_does_not_allow_is_refused_and_nothing_else() {
    let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableOrdered);
    start(&mut pair, 0, client, 1, 1 << 40);
    pair.engines[0].send(pair.now, client, &[b"after"], Op(2), false).expect("send");
    pair.run(|pair| pair.hosts[0].ended.len() == 2);
    assert_eq!(pair.hosts[0].ended[&1], Err(Failure::TooLong));
    assert_eq!((pair.hosts[0].ended[&2], pair.hosts[1].received.len()), (Ok(()), 1));
}

#[test]
fn memory_that_is_gone_ends_the_message_on_both_sides() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableUnordered);
    start(&mut pair, 0, client, 1, LEN);
    pair.run(|pair| !pair.hosts[1].large.is_empty());
    pair.hosts[0].dead = true;
    land(&mut pair, 1, server);
    pair.run(|pair| pair.hosts[0].ended.len() == 1 && pair.hosts[1].landing.is_none());
    assert_eq!(pair.hosts[0].ended[&1], Err(Failure::Copy));
    assert_eq!(pair.hosts[1].received, Vec::<Vec<u8>>::new());
}

#[test]
fn a_connection_that_closes_ends_the_message() {
    for answered in [false, true] {
        let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
        start(&mut pair, 0, client, 1, LEN);
        pair.run(|pair| !pair.hosts[1].large.is_empty());
        if answered {
            land(&mut pair, 1, server);
        }
        let now = pair.now;
        let [_, engine] = &mut pair.engines;
        engine.close(now, server, &mut pair.hosts[1]);
        assert!(pair.engines[1].answer_large(server, 1, Ok([7, 7])), "nobody is to be told");
        pair.run(|pair| !pair.hosts[0].ended.is_empty());
        assert_eq!(pair.hosts[0].ended[&1], Err(Failure::Disconnected));
    }
}

#[test]
fn no_more_than_the_receiver_keeps_are_asked_for() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableUnordered);
    let target = Target { handle: [0, 0], offset: 0, len: 10 };
    for op in 0..100 {
        let rma = Rma { op: Op(op), target, access: Access::Large, fence: false, message: None };
        pair.engines[0].rma(pair.now, client, &rma).expect("begun");
    }
    pair.run(|pair| pair.hosts[1].large.len() == MAX_LARGE);
    let wait = pair.now.plus_micros(500_000);
    pair.run_until(wait);
    assert_eq!(pair.hosts[1].large.len(), MAX_LARGE);
    for count in 1..=100 {
        pair.run(|pair| !pair.hosts[1].large.is_empty());
        land(&mut pair, 1, server);
        pair.run(|pair| pair.hosts[0].ended.len() == count);
    }
    assert_eq!(pair.hosts[1].received.len(), 100);
}

/// The receiver has no memory for as long as its program likes; its library answers meanwhile.
#[test]
fn a_large_message_waits_for_minutes() {
    for attribute in [Attribute::ReliableOrdered, Attribute::ReliableUnordered] {
        let (mut pair, [client, server]) = Pair::connected(attribute);
        start(&mut pair, 0, client, 1, LEN);
        pair.run(|pair| !pair.hosts[1].large.is_empty());
        let wait = pair.now.plus_micros(600_000_000);
        pair.run_until(wait);
        assert!(pair.hosts[0].broken.is_empty() && pair.hosts[0].ended.is_empty());
        land(&mut pair, 1, server);
        pair.run(|pair| pair.hosts[0].ended.len() == 1);
        assert_eq!((pair.hosts[0].ended[&1], pair.hosts[1].received.len()), (Ok(()), 1));
    }
}

/// Nothing answers any more while memory is waited for: the connection breaks as for any other
/// operation.
#[test]
fn a_peer_that_is_gone_does_not_keep_a_large_message_for_ever() {
    let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableOrdered);
    start(&mut pair, 0, client, 1, LEN);
    pair.run(|pair| !pair.hosts[1].large.is_empty());
    pair.filter = std::boxed::Box::new(|_, _| false);
    let limit = pair.now.plus_micros(600_000_000);
    pair.run(|pair| !pair.hosts[0].ended.is_empty() || pair.now > limit);
    assert_eq!(pair.hosts[0].ended[&1], Err(Failure::TimedOut));
}

/// A write that was refused, and its message, which waits for a slot: a large message that goes on
/// meanwhile does not come between.
#[test]
fn a_large_message_does_not_come_between_a_write_and_its_message() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableUnordered);
    let target = Target { handle: [0, 0], offset: 0, len: LEN };
    let rma = Rma { op: Op(1), target, access: Access::Large, fence: false, message: None };
    pair.engines[0].rma(pair.now, client, &rma).expect("begun");
    pair.run(|pair| !pair.hosts[1].large.is_empty());
    pair.hosts[1].slots = 0;
    // One that takes the credit, so that the next message stays behind.
    pair.engines[0].send(pair.now, client, &[b"first"], Op(2), true).expect("send");
    pair.run(|pair| pair.engines[0].report(client).not_ready > 0);
    let bad = Target { handle: [7, 8], offset: 0, len: 100 };
    let write = Rma { op: Op(3), target: bad, access: Access::Write, fence: false, message: Some(b"never") };
    pair.engines[0].rma(pair.now, client, &write).expect("begun");
    let wait = pair.now.plus_micros(300_000);
    pair.run_until(wait);
    land(&mut pair, 1, server);
    let wait = pair.now.plus_micros(300_000);
    pair.run_until(wait);
    pair.hosts[1].slots = 5;
    let [_, engine] = &mut pair.engines;
    engine.refill(&mut pair.hosts[1]);
    pair.run(|pair| pair.hosts[0].ended.len() == 3);
    assert_eq!(pair.hosts[0].ended[&3], Err(Failure::RemoteHandle));
    assert_eq!(pair.hosts[1].received.len(), 2, "the first message and the large one");
}

#[test]
fn many_reads_do_not_block_a_large_message() {
    let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableUnordered);
    // The reads are taken and not answered.
    pair.filter = std::boxed::Box::new(|side, frame| side == 0 || frame.len() < 1000);
    let target = Target { handle: [7, 7], offset: 0, len: 5000 };
    for op in 0..100 {
        let read = Rma { op: Op(op), target, access: Access::Read, fence: false, message: None };
        pair.engines[0].rma(pair.now, client, &read).expect("read");
    }
    let target = Target { handle: [0, 0], offset: 0, len: LEN };
    let large = Rma { op: Op(100), target, access: Access::Large, fence: false, message: None };
    pair.engines[0].rma(pair.now, client, &large).expect("begun");
    pair.engines[0].send(pair.now, client, &[b"after"], Op(101), false).expect("send");
    let until = pair.now.plus_micros(500_000);
    pair.run_until(until);
    assert_eq!((pair.hosts[1].large.len(), pair.hosts[1].received.len()), (1, 1));
}
