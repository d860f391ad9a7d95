//! Operations end once, and memory is touched only while they live.

use super::*;
use crate::engine::flow::limits::WINDOW;
use crate::engine::flow::refused_writes::MAX_REFUSED;

/// The operation number on the wire of the first WRITE or READ among these frames.
fn wire_op(frames: &[Vec<u8>]) -> u32 {
    records(frames)
        .into_iter()
        .find_map(|record| match record {
            Record::Write { op, .. } | Record::Read { op, .. } => Some(op),
            _ => None,
        })
        .expect("an RMA")
}

#[test]
fn a_result_that_comes_twice_ends_a_write_with_message_once() {
    let mut raw = Raw::new(Attribute::ReliableUnordered);
    raw.rma(3, false, 100, Some(b"done"));
    let op = wire_op(&raw.poll());
    raw.next(&result(op, 0));
    raw.next(&result(op, 0));
    assert!(raw.host.ended.is_empty(), "its message was not acknowledged");
    raw.accept_all();
    assert_eq!(raw.host.ended[&3], Ok(()));
}

#[test]
fn a_result_before_everything_was_sent_is_not_believed() {
    let mut raw = Raw::new(Attribute::ReliableUnordered);
    raw.rma(3, false, 60_000, None);
    raw.credit = 0;
    let op = wire_op(&raw.poll());
    let unsent = raw.engine.rmas[3].expect("open").at < 60_000;
    raw.next(&result(op, 0));
    assert_eq!(raw.host.ended.is_empty(), unsent);
    for _ in 0..100 {
        raw.accept_all();
        raw.wait(10_000);
    }
    raw.next(&result(op, 0));
    assert_eq!(raw.host.ended[&3], Ok(()));
    raw.engine.send(raw.now, raw.index, &[b"on"], Op(4), false).expect("send");
    raw.wait(10_000);
    raw.accept_all();
    assert_eq!(raw.host.ended[&4], Ok(()), "the queue goes on");
}

#[test]
fn bytes_of_a_read_that_come_twice_end_it_once_and_write_no_more() {
    let mut raw = Raw::new(Attribute::ReliableUnordered);
    raw.rma(3, true, 10, Some(b"done"));
    let op = wire_op(&raw.poll());
    let bytes = |fill: u8| record(|frame| wire::emit_read_bytes(frame, 0, op, 0, 10), &[fill; 10]);
    raw.next(&bytes(1));
    raw.next(&bytes(2));
    raw.next(&result(op, 1));
    assert_eq!(raw.host.local[..10], [1; 10]);
    assert!(raw.host.ended.is_empty(), "its message was not acknowledged");
    raw.accept_all();
    assert_eq!(raw.host.ended[&3], Ok(()));
}

#[test]
fn a_write_that_lost_its_memory_ends_once_whatever_the_target_says() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.rma(3, false, 3000, Some(b"done"));
    let op = wire_op(&raw.poll());
    raw.host.dead = true;
    raw.wait(100_000);
    raw.next(&result(op, 0));
    raw.accept_all();
    raw.wait(100_000);
    raw.accept_all();
    assert_eq!(raw.host.ended[&3], Err(Failure::Copy));
}

#[test]
fn a_frame_of_an_operation_that_has_ended_carries_nothing_of_the_next_with_its_number() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.rma(3, false, 8000, None);
    let old = wire_op(&raw.poll());
    raw.host.dead = true;
    raw.wait(25_000);
    assert_eq!(raw.host.ended.remove(&3), Some(Err(Failure::Copy)));
    raw.host.dead = false;
    raw.rma(3, false, 5000, None);
    let sent = raw.wait(500_000);
    let (mut seqs, mut found) = (std::collections::BTreeSet::new(), 0);
    for frame in &sent {
        let (data, _, records) = Data::parse(frame).expect("DATA");
        for record in records {
            if let Record::Write { op, target, at, .. } = record
                && op != old
            {
                assert_eq!(target.len, 5000);
                found += u64::from(seqs.insert((data.seq, at)));
            }
        }
    }
    assert_eq!(found, 5000_u64.div_ceil(1200 - 56 - 52), "each piece in one frame of its own");
}

#[test]
fn no_completion_message_follows_a_write_whose_memory_went_away() {
    for len in [9, 3000] {
        let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableOrdered);
        // The second piece is lost, and before it is sent again the memory is deregistered.
        let mut count = 0;
        pair.filter = std::boxed::Box::new(move |side, frame| {
            let is_write = records(&[frame.to_vec()]).iter().any(|record| matches!(record, Record::Write { .. }));
            count += u32::from(side == 0 && is_write);
            count != 2
        });
        let target = Target { handle: [7, 7], offset: 0, len: 5000 };
        let note = vec![1; len];
        let rma = Rma { op: Op(1), target, access: Access::Write, fence: false, message: Some(&note) };
        pair.engines[0].rma(pair.now, client, &rma).expect("rma");
        pair.pump();
        pair.hosts[0].dead = true;
        pair.run(|pair| pair.hosts[0].ended.contains_key(&1) && pair.engines.iter().all(Engine::is_quiet));
        assert_eq!(pair.hosts[0].ended[&1], Err(Failure::Copy));
        assert!(pair.hosts[1].received.is_empty(), "bytes are missing");
        assert!((0..2).all(|side| is_clean(&pair.engines[side], &pair.hosts[side])));
        // And the connection goes on.
        pair.hosts[0].dead = false;
        pair.engines[0].send(pair.now, client, &[&message(2, 3000)], Op(2), false).expect("send");
        pair.run(|pair| pair.hosts[0].ended.contains_key(&2));
        assert_eq!(pair.hosts[1].received.len(), 1);
    }
}

#[test]
fn a_range_that_wraps_is_refused_by_the_target_and_the_connection_goes_on() {
    let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableOrdered);
    for read in [false, true] {
        let target = Target { handle: [7, 7], offset: u64::MAX, len: 10 };
        let rma = Rma { op: Op(1), target, access: access(read), fence: false, message: None };
        pair.engines[0].rma(pair.now, client, &rma).expect("rma");
        pair.run(|pair| pair.hosts[0].ended.contains_key(&1));
        assert_eq!(pair.hosts[0].ended.remove(&1), Some(Err(Failure::RemoteHandle)));
    }
}

#[test]
fn a_result_for_the_operation_of_another_connection_ends_nothing() {
    let mut pair = Pair::new(0);
    let first = pair.connect(Attribute::ReliableOrdered);
    let second = pair.connect(Attribute::ReliableOrdered);
    let target = Target { handle: [7, 7], offset: 0, len: 10 };
    let rma = Rma { op: Op(1), target, access: Access::Read, fence: false, message: None };
    pair.engines[0].rma(pair.now, first[0], &rma).expect("rma");
    pair.pump();
    let op = pair.engines[0].rmas[1].expect("open").wire;
    // The peer's other connection says that it failed.
    let conn = pair.engines[1].table.get(second[1].0).expect("open").clone();
    let ack = Ack { echo_number: conn.newest, ack: conn.recv_next, credit: 9, ..Ack::default() };
    let header = Header { kind: Kind::Data, to: conn.peer, from: conn.id, number: conn.number, time: 0 };
    let data = Data { header, seq: conn.next_seq, flags: flags::SEQUENCED, ack, sack_words: 0 };
    let mut frame = vec![0; 56];
    data.emit(&[], &mut frame);
    frame.extend(result(op, 1));
    pair.engines[0].handle_verified(pair.now, &PEER, &frame, false, &mut pair.hosts[0]);
    assert!(pair.hosts[0].ended.is_empty());
}

#[test]
fn writes_that_are_refused_and_never_finished_cost_no_more_than_a_window_of_notes() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    for op in 0..20_000 {
        raw.next(&write(op, 8, 100, 0, b"x"));
    }
    let flow = raw.engine.flows.iter().next().expect("a flow");
    assert!(flow.refused_writes.len() <= MAX_REFUSED);
}

#[test]
fn a_peer_that_writes_and_never_acknowledges_gets_no_more_results_queued_than_a_window() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    for op in 0..1_000_000 {
        let before = raw.engine.stats.received;
        raw.next(&write(op, 7, 1, 0, b"x"));
        assert_eq!(raw.engine.stats.received, before + 1);
        let flow = raw.engine.flows.iter().next().expect("a flow");
        if flow.requests.results().len() > 2 * WINDOW {
            panic!("{} results wait", flow.requests.results().len());
        }
        if op > 40_000 {
            break;
        }
    }
}

/// The peer is there and says so, however long that takes, and is asked seldom. Then it is silent,
/// which ends the connection after a minute.
fn answers_and_then_vanishes(raw: &mut Raw) {
    for _ in 0..200 {
        let asked = raw.wait(1_000_000);
        assert!(asked.len() < 5, "{} frames in a second", asked.len());
        if !asked.is_empty() {
            let frame = raw.data(None, 0, &[], &[]);
            raw.give(&frame);
        }
    }
    assert!(raw.host.broken.is_empty() && raw.host.ended.is_empty());
    raw.wait(59_000_000);
    assert!(raw.host.broken.is_empty(), "not before a minute");
    raw.wait(10_000_000);
    assert_eq!(raw.host.broken, [(raw.index, Failure::TimedOut)]);
}

#[test]
fn a_peer_that_vanishes_with_a_read_that_it_has_taken_is_noticed() {
    for read in [true, false] {
        let mut raw = Raw::new(Attribute::ReliableOrdered);
        raw.rma(1, read, 100, None);
        raw.poll();
        raw.accept_all();
        answers_and_then_vanishes(&mut raw);
        assert_eq!(raw.host.ended[&1], Err(Failure::TimedOut));
    }
}

/// Its farewells are lost too. What it has begun holds a frame buffer or a receive slot until its
/// end is known.
#[test]
fn a_peer_that_vanishes_behind_a_gap_is_noticed() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let ahead = raw.data(Some(raw.seq.wrapping_add(1)), 0, &[], &write(1, 7, 1, 0, b"x"));
    raw.give(&ahead);
    assert!(!raw.engine.is_quiet(), "nothing is held back");
    answers_and_then_vanishes(&mut raw);
    assert!(raw.engine.is_quiet());
}

/// Between the two the connection was idle for so long that nothing is kept of it but what it
/// needs.
#[test]
fn the_message_of_a_refused_write_is_not_delivered_however_late_it_comes() {
    for (handle, delivered) in [(8, 0), (7, 1)] {
        let mut raw = Raw::new(Attribute::ReliableOrdered);
        raw.next(&write(1, handle, 1, 0, b"x"));
        raw.wait(100_000);
        raw.accept_all();
        raw.wait(5_000_000);
        assert_eq!(raw.engine.flows.iter().count(), 0, "it is not idle");
        let message = record(|frame| wire::emit_message(frame, 0, true, &[b"it is there"]), &[]);
        raw.next(&message);
        assert_eq!(raw.host.received.len(), delivered);
    }
}

fn read_of(op: u32, handle: u64) -> Vec<u8> {
    let target = Target { handle: [handle; 2], offset: 0, len: 10 };
    record(|frame| wire::emit_read(frame, 0, op, &target), &[])
}

/// Frames of 20 requests and a message that finds no slot.
fn requests_before_a_message(handle: u64) -> Vec<u8> {
    (0..20).flat_map(|op| read_of(op, handle)).chain(note(b"behind them")).collect()
}

fn asked_of(raw: &Raw) -> usize {
    raw.engine.flows.iter().map(|flow| flow.requests.len()).sum()
}

#[test]
fn requests_before_a_message_without_slot_are_applied_once_however_often_the_peer_asks() {
    // With hold buffers and without, requests that are served and requests that are refused.
    for (holds, handle) in [(256, 7), (256, 8), (0, 7), (0, 8)] {
        let mut raw = Raw::with(&Config { holds, ..CONFIG }, Attribute::ReliableOrdered);
        raw.host.slots = 0;
        let records = requests_before_a_message(handle);
        let give = |raw: &mut Raw, records: &[u8]| {
            let frame = raw.data(Some(raw.seq), 0, &[], records);
            raw.engine.handle_verified(raw.now, &PEER, &frame, false, &mut raw.host);
        };
        give(&mut raw, &records);
        assert_eq!(asked_of(&raw), 20);
        for _ in 0..100 {
            // A frame that is held is asked for by its number alone.
            give(&mut raw, if holds > 0 { &[] } else { &records });
            raw.engine.refill(&mut raw.host);
        }
        assert_eq!(asked_of(&raw), 20, "{holds} hold buffers, handle {handle}");
        raw.host.slots = 1;
        give(&mut raw, &records);
        assert_eq!(raw.host.received, [b"behind them".to_vec()]);
        assert_eq!(asked_of(&raw), 20);
        give(&mut raw, &records);
        assert_eq!((raw.host.received.len(), asked_of(&raw)), (1, 20), "its number has passed");
    }
}

#[test]
fn an_early_frame_that_cannot_be_held_is_not_applied_in_part() {
    // A frame that no hold buffer takes: they are as large as a frame of messages.
    let config = Config { mtu: 9000, ..CONFIG };
    let mut raw = Raw::with(&config, Attribute::ReliableUnordered);
    raw.host.claim = Some(1000);
    raw.host.slots = 1;
    let records: Vec<u8> = note(b"first").into_iter().chain((0..9).flat_map(|_| note(&[3; 950]))).collect();
    let early = raw.seq.wrapping_add(1);
    for _ in 0..3 {
        let frame = raw.data(Some(early), 0, &[], &records);
        raw.engine.handle_verified(raw.now, &PEER, &frame, false, &mut raw.host);
        raw.host.slots = 1;
    }
    assert!(raw.host.received.len() < 2, "the first message was delivered {} times", raw.host.received.len());
}

#[test]
fn requests_that_are_held_back_cost_no_more_results_than_a_window() {
    let mut raw = Raw::with(&Config { holds: 1024, ..CONFIG }, Attribute::ReliableOrdered);
    let records = requests_before_a_message(8);
    let first = raw.seq;
    for at in (0..1000).rev() {
        let frame = raw.data(Some(first.wrapping_add(at)), 0, &[], &records);
        raw.engine.handle_verified(raw.now, &PEER, &frame, false, &mut raw.host);
    }
    assert_eq!(raw.host.received.len(), 1000);
    let results = raw.engine.flows.iter().map(|flow| flow.requests.results().len()).sum::<usize>();
    assert!(results <= WINDOW, "{results} results wait");
}

/// Gives the peer's next frame, and repeats its number if it was dropped. Returns what comes back.
fn give_next(raw: &mut Raw, records: &[u8]) -> Vec<Vec<u8>> {
    let sent = raw.next(records);
    raw.seq = raw.engine.table.get(raw.index.0).expect("open").recv_next;
    sent
}

#[test]
fn no_refused_write_succeeds_however_many_others_are_unfinished() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    for op in 0..5000 {
        give_next(&mut raw, &write(op, 8, 100, 0, b"x"));
    }
    let results = |frames: &[Vec<u8>]| -> Vec<u8> {
        let status = |record| if let Record::Result { status, .. } = record { Some(status) } else { None };
        records(frames).into_iter().filter_map(status).collect()
    };
    let mut sent = give_next(&mut raw, &write(9999, 8, 2, 0, b"x"));
    sent.extend(give_next(&mut raw, &write(9999, 8, 2, 1, b"x")));
    assert!(!results(&sent).contains(&0), "a refused write has succeeded");
    // One that is finished leaves room for another.
    assert_eq!(results(&give_next(&mut raw, &write(1, 8, 100, 99, b"x"))), [1]);
    give_next(&mut raw, &write(9999, 8, 2, 0, b"x"));
    assert_eq!(results(&give_next(&mut raw, &write(9999, 8, 2, 1, b"x"))), [1]);
}
