//! What comes before what: fences, completions, messages of RMAs.

use super::*;

#[test]
fn on_an_ordered_connection_operations_end_in_the_order_in_which_they_began() {
    for loss in [0, 5] {
        let mut pair = Pair::new(loss);
        let [client, _] = pair.connect(Attribute::ReliableOrdered);
        let target = Target { handle: [7, 7], offset: 0, len: 20_000 };
        for op in 0..60 {
            let now = pair.now;
            let read = op % 6 == 4;
            let note = (op % 4 == 1).then_some(&b"note"[..]);
            match op % 3 {
                1 => {
                    let handle = if op % 5 == 0 { [7, 8] } else { [7, 7] };
                    let target = Target { handle, ..target };
                    let rma = Rma { op: Op(op), target, access: access(read), fence: op % 9 == 1, message: note };
                    pair.engines[0].rma(now, client, &rma).expect("rma");
                }
                _ => pair.engines[0].send(now, client, &[&message(op, 40)], Op(op), false).expect("send"),
            }
        }
        pair.run(|pair| pair.hosts[0].ended.len() == 60);
        assert_eq!(pair.hosts[0].order, (0..60).collect::<Vec<_>>());
    }
}

#[test]
fn operations_that_wait_for_their_turn_end_once_when_the_connection_breaks() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.rma(1, false, 100, None);
    raw.engine.send(raw.now, raw.index, &[b"after"], Op(2), false).expect("send");
    raw.poll();
    raw.accept_all();
    assert!(raw.host.ended.is_empty(), "the write has no result");
    let now = raw.now;
    raw.engine.close(now, raw.index, &mut raw.host);
    assert_eq!(raw.host.order, [1, 2]);
    assert_eq!(raw.host.ended[&2], Ok(()), "it had been delivered");
    assert_eq!(raw.host.ended[&1], Err(Failure::Disconnected));
}

#[test]
fn a_fence_with_a_message_longer_than_a_frame_ends() {
    for read in [false, true] {
        let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableOrdered);
        let target = Target { handle: [7, 7], offset: 0, len: 3000 };
        let note = vec![1; 5000];
        let rma = Rma { op: Op(1), target, access: access(read), fence: true, message: Some(&note) };
        pair.engines[0].rma(pair.now, client, &rma).expect("rma");
        pair.engines[0].send(pair.now, client, &[b"after"], Op(2), false).expect("send");
        let limit = pair.now.plus_micros(2_000_000);
        pair.run(|pair| pair.hosts[0].ended.len() == 2 || pair.now > limit);
        assert_eq!(pair.hosts[0].order, [1, 2]);
    }
}

#[test]
fn the_message_of_a_read_after_a_refused_write_is_delivered() {
    let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableOrdered);
    let good = Target { handle: [7, 7], offset: 0, len: 30 };
    let bad = Target { handle: [7, 8], ..good };
    let rma = |op, target, read, message| Rma { op: Op(op), target, access: access(read), fence: false, message };
    pair.engines[0].rma(pair.now, client, &rma(1, bad, false, None)).expect("rma");
    pair.engines[0].rma(pair.now, client, &rma(2, good, true, Some(&b"read"[..]))).expect("rma");
    pair.run(|pair| pair.hosts[0].ended.len() == 2);
    assert_eq!(pair.hosts[1].received, [b"read".to_vec()]);
}

#[test]
fn a_read_that_takes_longer_than_the_send_timeout_goes_on_while_bytes_come() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.engine.set_timeouts(raw.now, raw.index, 1_000_000, 0);
    raw.rma(1, true, 50_000, None);
    let sent = raw.poll();
    let Some(Record::Read { op, .. }) = records(&sent).first().copied() else { panic!("a READ") };
    raw.accept_all();
    for at in 0..49 {
        raw.wait(200_000);
        raw.next(&record(|frame| wire::emit_read_bytes(frame, 0, op, at * 1000, 1000), &[1; 1000]));
        raw.accept_all();
    }
    assert!(raw.host.broken.is_empty() && raw.host.ended.is_empty());
    raw.wait(1_100_000);
    assert_eq!(raw.host.ended[&1], Err(Failure::TimedOut), "and not when they stop");
}

#[test]
fn the_last_acknowledgement_of_what_was_held_back_may_be_lost() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    for op in 0..2 {
        raw.engine.send(raw.now, raw.index, &[&message(op, 1000)], Op(op), false).expect("send");
        raw.poll();
    }
    // The second came early; the first came then, and the second found no slot; then it did, and
    // that was lost.
    let early = raw.data(None, 0, &[1], &[]);
    raw.give(&early);
    raw.ack = raw.ack.wrapping_add(1);
    for bits in [flags::RNR, 0] {
        let frame = raw.data(None, bits, &[], &[]);
        raw.give(&frame);
    }
    assert_eq!(raw.host.ended.len(), 1);
    let sent = raw.wait(1_000_000);
    let asks = |frame: &Vec<u8>| Data::parse(frame).is_some_and(|(data, ..)| data.flags & flags::PROMPT != 0);
    assert!(sent.iter().any(asks), "nobody asks");
    raw.accept_all();
    assert_eq!(raw.host.ended.len(), 2);
}

/// Acknowledges one frame of the engine each 200 ms.
fn accept_slowly(raw: &mut Raw, frames: u32) {
    for _ in 0..frames {
        raw.wait(200_000);
        raw.ack = raw.ack.wrapping_add(1);
        let frame = raw.data(None, 0, &[], &[]);
        raw.give(&frame);
    }
}

#[test]
fn what_waits_behind_a_long_write_is_late_only_if_no_bytes_move() {
    for note in [None, Some(&b"written"[..])] {
        let mut raw = Raw::new(Attribute::ReliableOrdered);
        raw.engine.set_timeouts(raw.now, raw.index, 1_000_000, 0);
        raw.rma(1, false, 60_000, note);
        raw.engine.send(raw.now, raw.index, &[b"after"], Op(2), false).expect("send");
        raw.poll();
        accept_slowly(&mut raw, 30);
        assert!(raw.host.broken.is_empty(), "six seconds, and bytes move");
        raw.wait(1_100_000);
        assert_eq!(raw.host.ended[&2], Err(Failure::TimedOut), "and not when they stop");
    }
}

#[test]
fn the_message_of_a_long_read_has_its_time_after_the_bytes() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.engine.set_timeouts(raw.now, raw.index, 1_000_000, 0);
    raw.rma(1, true, 20_000, Some(b"read"));
    let Some(Record::Read { op, .. }) = records(&raw.poll()).first().copied() else { panic!("a READ") };
    raw.accept_all();
    for at in 0..20 {
        raw.wait(200_000);
        raw.next(&record(|frame| wire::emit_read_bytes(frame, 0, op, at * 1000, 1000), &[1; 1000]));
    }
    raw.wait(900_000);
    assert!(raw.host.broken.is_empty(), "the message has left just now");
    raw.accept_all();
    assert_eq!(raw.host.ended[&1], Ok(()));
}

#[test]
fn progress_of_a_later_operation_does_not_excuse_a_message() {
    // The peer accepts every frame but the first, or has no slot for it.
    for (first_is_message, bits, failure) in [(true, 0, Failure::TimedOut), (false, flags::RNR, Failure::NotReady)] {
        let mut raw = Raw::new(Attribute::ReliableUnordered);
        raw.engine.set_timeouts(raw.now, raw.index, 1_000_000, 0);
        if !first_is_message {
            raw.rma(1, true, 50_000, None);
            raw.poll();
            raw.accept_all();
            raw.wait(1_000);
        }
        raw.engine.send(raw.now, raw.index, &[b"first"], Op(2), false).expect("send");
        raw.poll();
        raw.wait(1_000);
        raw.rma(3, false, 60_000, None);
        raw.poll();
        for count in 1..10 {
            raw.wait(200_000);
            let frame = raw.data(None, bits, &[(1 << count) - 1], &[]);
            raw.give(&frame);
        }
        assert_eq!(raw.host.ended.get(&2), Some(&Err(failure)));
    }
}
