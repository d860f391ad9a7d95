//! Slots, hold buffers and frame buffers: who waits for one gets one, and all come back.

use super::*;
use crate::engine::flow::frame_pool::Buffer;

/// A second connection of the raw peer is not needed here: pairs have as many as they like.
fn pair_with_slots(slots: u32, frames: u32, holds: u32) -> Pair {
    let config = Config { frames, holds, ..CONFIG };
    let mut pair = Pair::with(&config, 0);
    pair.hosts[1].slots = slots;
    pair
}

#[test]
fn early_messages_that_find_no_slot_after_all_are_not_lost() {
    let mut pair = Pair::new(4);
    let [client, _] = pair.connect(Attribute::ReliableUnordered);
    // The host says that there is room, and then refuses: others were quicker.
    pair.hosts[1].claim = Some(1000);
    pair.hosts[1].slots = 10;
    for op in 0..300 {
        pair.engines[0].send(pair.now, client, &[&message(op, 300)], Op(op), false).expect("send");
    }
    for _ in 0..3000 {
        if pair.hosts[0].ended.len() == 300 {
            break;
        }
        pair.step();
        if pair.hosts[1].slots == 0 {
            pair.hosts[1].slots = 5;
            pair.engines[1].refill(&mut pair.hosts[1]);
        }
    }
    pair.hosts[1].received.sort();
    let want: Vec<_> = (0..300).map(|op| message(op, 300)).collect();
    assert!(pair.hosts[1].received == want, "{} messages", pair.hosts[1].received.len());
}

#[test]
fn a_message_longer_than_allowed_is_not_delivered_early_either() {
    let config = Config { max_send_size: 100, ..CONFIG };
    let mut raw = Raw::with(&config, Attribute::ReliableUnordered);
    let seq = raw.seq;
    let frame = raw.data(Some(seq + 1), 0, &[], &note(&[1; 101]));
    raw.give(&frame);
    assert!(raw.host.received.is_empty());
}

#[test]
fn few_slots_go_round_among_those_that_wait() {
    let mut pair = pair_with_slots(0, 1024, 256);
    let clients: Vec<Index> = (0..3).map(|_| pair.connect(Attribute::ReliableOrdered)[0]).collect();
    for op in 0..300 {
        let client = clients[op as usize % 3];
        pair.engines[0].send(pair.now, client, &[&message(op % 3, 8)], Op(op), false).expect("send");
    }
    for _ in 0..200 {
        pair.step();
    }
    for _ in 0..60 {
        pair.hosts[1].slots += 1;
        pair.engines[1].refill(&mut pair.hosts[1]);
        for _ in 0..5 {
            pair.step();
        }
    }
    for client in 0..3 {
        let count = pair.hosts[1].received.iter().filter(|bytes| **bytes == message(client, 8)).count();
        assert!(count >= 15, "connection {client} got {count} of 60");
    }
}

#[test]
fn a_slot_that_a_broken_connection_gives_back_wakes_those_that_wait() {
    let mut pair = pair_with_slots(1, 1024, 256);
    let first = pair.connect(Attribute::ReliableOrdered);
    let second = pair.connect(Attribute::ReliableOrdered);
    // Half of a long message takes the slot.
    pair.filter = std::boxed::Box::new(|_, frame| {
        !records(&[frame.to_vec()]).iter().any(|record| matches!(record, Record::Part { at, .. } if *at > 0))
    });
    pair.engines[0].send(pair.now, first[0], &[&message(1, 4000)], Op(1), false).expect("send");
    for _ in 0..20 {
        pair.step();
    }
    assert_eq!(pair.hosts[1].slots, 0);
    pair.engines[0].send(pair.now, second[0], &[b"short"], Op(2), false).expect("send");
    for _ in 0..20 {
        pair.step();
    }
    let now = pair.now;
    pair.engines[1].close(now, first[1], &mut pair.hosts[1]);
    pair.pump();
    assert_eq!(pair.hosts[1].received, [b"short".to_vec()]);
}

#[test]
fn what_the_peer_reads_is_sent_again_while_it_has_no_slot_for_our_message() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
    // The client's program holds every slot until its read has ended.
    pair.hosts[0].slots = 0;
    pair.engines[1].send(pair.now, server, &[b"no room"], Op(1), false).expect("send");
    for _ in 0..10 {
        pair.step();
    }
    let mut lost = 0;
    pair.filter = std::boxed::Box::new(move |side, frame| {
        let is_bytes = records(&[frame.to_vec()]).iter().any(|record| matches!(record, Record::ReadBytes { .. }));
        lost += u32::from(side == 1 && is_bytes);
        !(side == 1 && is_bytes && (lost == 2 || lost == 9))
    });
    let target = Target { handle: [7, 7], offset: 0, len: 9000 };
    let read = Rma { op: Op(1), target, access: Access::Read, fence: false, message: None };
    pair.engines[0].rma(pair.now, client, &read).expect("read");
    let limit = pair.now.plus_micros(2_000_000);
    pair.run(|pair| !pair.hosts[0].ended.is_empty() || pair.now > limit);
    assert_eq!(pair.hosts[0].ended.get(&1), Some(&Ok(())));
}

#[test]
fn requests_and_results_behind_a_message_without_slot_give_their_buffers_back() {
    let mut pair = pair_with_slots(0, 40, 64);
    let [client, _] = pair.connect(Attribute::ReliableOrdered);
    pair.engines[0].send(pair.now, client, &[b"no room"], Op(0), false).expect("send");
    let target = Target { handle: [7, 7], offset: 0, len: 10 };
    for op in 1..200 {
        let read = Rma { op: Op(op), target, access: Access::Read, fence: false, message: None };
        pair.engines[0].rma(pair.now, client, &read).expect("read");
    }
    let limit = pair.now.plus_micros(3_000_000);
    pair.run(|pair| pair.engines[0].flows.iter().all(|flow| flow.open_rmas.is_empty()) || pair.now > limit);
    assert!(pair.now <= limit, "the reads hang");
}

#[test]
fn a_result_that_found_no_buffer_leaves_when_there_is_one() {
    let config = Config { frames: 20, ..CONFIG };
    let mut raw = Raw::with(&config, Attribute::ReliableOrdered);
    // Reads that wait for the silent peer take every buffer.
    for op in 0..20 {
        raw.rma(op, true, 10, None);
    }
    raw.poll();
    assert_eq!(raw.engine.frames.left(), 0);
    let sent = raw.next(&write(1, 7, 4, 0, b"abcd"));
    assert!(!records(&sent).iter().any(|record| matches!(record, Record::Result { .. })));
    // Another connection's buffers become free: nothing happens on this one.
    let buffer = Buffer(0);
    raw.engine.frames.give(buffer);
    assert!(raw.engine.poll_timeout().is_some_and(|due| due <= raw.now), "somebody waits for it");
    let sent = raw.poll();
    assert!(records(&sent).iter().any(|record| matches!(record, Record::Result { op: 1, status: 0 })));
}

#[test]
fn what_a_broken_connection_left_undone_does_not_keep_the_engine_busy() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.credit = 0;
    raw.rma(1, false, 60_000, Some(&[1; 3000]));
    raw.poll();
    let seq = raw.seq;
    let read = Target { handle: [7, 7], offset: 0, len: 60_000 };
    raw.next(&record(|frame| wire::emit_read(frame, 0, 9, &read), &[]));
    raw.next(&part(1, 5000, 0, &[1; 1000]));
    raw.host.slots = 0;
    raw.next(&note(b"held"));
    let early = raw.data(Some(seq + 9), 0, &[], &note(b"early"));
    raw.give(&early);
    let now = raw.now;
    raw.engine.close(now, raw.index, &mut raw.host);
    raw.wait(10_000_000);
    assert!(is_clean(&raw.engine, &raw.host));
    assert_eq!(raw.engine.poll_timeout(), None);
}

#[test]
fn no_hole_is_delivered_on_an_unreliable_connection() {
    let mut raw = Raw::new(Attribute::Unreliable);
    let send = |raw: &mut Raw, records: &[u8]| {
        let frame = raw.data(None, 0, &[], records);
        raw.give(&frame);
    };
    for (at, len) in [(0, 1000), (0, 1000), (500, 1000), (1, 999), (2000, 1000)] {
        send(&mut raw, &part(1, 3000, at, &vec![9; len]));
    }
    assert!(raw.host.received.is_empty(), "the second thousand never came");
    send(&mut raw, &part(1, 3000, 1000, &[8; 1000]));
    assert_eq!(raw.host.received.len(), 1);
    // In any order, the last first.
    for at in [2500, 1000, 0, 2000, 500, 1500] {
        send(&mut raw, &part(2, 2700, at, &vec![7; if at == 2500 { 200 } else { 500 }]));
    }
    assert!(raw.host.received[1] == vec![7; 2700]);
    assert!(raw.host.buffers.is_empty());
}

#[test]
fn long_unreliable_messages_arrive_after_a_quiet_time_and_half_a_message() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::Unreliable);
    pair.engines[1].set_timeouts(pair.now, server, 0, 400_000);
    for op in 0..20 {
        if op == 10 {
            // The last part of this one is lost.
            pair.filter = std::boxed::Box::new(|_, frame| {
                !records(&[frame.to_vec()]).iter().any(|record| matches!(record, Record::Part { at, .. } if *at > 2000))
            });
        }
        pair.engines[0].send(pair.now, client, &[&message(op, 3000)], Op(op), false).expect("send");
        let until = pair.now.plus_micros(if op == 10 { 5_000_000 } else { 300_000 });
        pair.run_until(until);
        pair.filter = std::boxed::Box::new(|_, _| true);
        assert!(pair.hosts[1].buffers.is_empty(), "a lost part holds a slot");
    }
    let want: Vec<_> = (0..20).filter(|op| *op != 10).map(|op| message(op, 3000)).collect();
    assert!(pair.hosts[1].received == want, "{} messages", pair.hosts[1].received.len());
}

#[test]
fn a_frame_that_found_room_by_itself_is_no_refusal_any_more() {
    let config = Config { holds: 0, ..CONFIG };
    let mut raw = Raw::with(&config, Attribute::ReliableOrdered);
    raw.host.slots = 0;
    let frame = raw.data(Some(raw.seq), 0, &[], &note(b"again"));
    let sent = raw.give(&frame);
    let refused = |frames: &[Vec<u8>]| {
        frames.iter().filter_map(|frame| Data::parse(frame)).any(|(data, ..)| data.flags & flags::RNR != 0)
    };
    assert!(refused(&sent));
    raw.host.slots = 1;
    let frame = raw.data(Some(raw.seq), flags::PROMPT, &[], &note(b"again"));
    let sent = raw.give(&frame);
    assert!(!sent.is_empty() && !refused(&sent));
    assert_eq!(raw.host.received.len(), 1);
}

#[test]
fn a_refused_sender_that_asks_again_gets_a_slot_that_nobody_announced() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.host.slots = 0;
    let frame = raw.data(Some(raw.seq), 0, &[], &note(b"held"));
    raw.give(&frame);
    raw.host.slots = 1;
    raw.give(&frame);
    assert_eq!(raw.host.received.len(), 1);
}

#[test]
fn a_peer_that_vanishes_when_it_had_no_slot_is_noticed() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.engine.send(raw.now, raw.index, &[b"refused"], Op(1), false).expect("send");
    raw.poll();
    // The twin: as long as it says so, it is there.
    for _ in 0..120 {
        let frame = raw.data(None, flags::RNR, &[], &[]);
        raw.give(&frame);
        raw.wait(1_000_000);
    }
    assert!(raw.host.broken.is_empty());
    raw.wait(58_000_000);
    assert!(raw.host.broken.is_empty(), "not before a minute");
    raw.wait(10_000_000);
    assert_eq!(raw.host.broken, [(raw.index, Failure::TimedOut)]);
}
