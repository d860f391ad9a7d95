//! A path that comes to carry less than it did, and the slices in which frames then travel.

use super::*;
use crate::engine::flow::slices::Owner;
use crate::engine::flow::slices::Slices;
use crate::wire::emit_slice;
use std::cell::Cell;
use std::rc::Rc;

/// A path for large frames, of which not all are known to pass.
const WIDE: Config = Config { mtu: 9000, ..CONFIG };
/// Bytes of a message that is cut into parts where frames are small.
const LONG: usize = 8000;

/// A pair whose frames have grown to what the path carries, which the cell says; longer ones are
/// lost.
fn grown(attribute: Attribute, loss: u64) -> (Pair, Index, Rc<Cell<usize>>) {
    let mut pair = Pair::with(&WIDE, 0);
    let limit = Rc::new(Cell::new(9000));
    let passes = Rc::clone(&limit);
    pair.filter = std::boxed::Box::new(move |_, frame| frame.len() <= passes.get());
    let [client, _] = pair.connect(attribute);
    let mut next = 0;
    while pair.engines[0].report(client).mtu < 9000 {
        if pair.engines[0].send(pair.now, client, &[&message(next, LONG)], Op(next), false).is_ok() {
            next += 1;
        } else {
            assert!(pair.step());
        }
    }
    pair.run(|pair| pair.hosts[0].ended.len() as u32 == next);
    pair.hosts[0].ended.clear();
    pair.hosts[1].received.clear();
    pair.loss = loss;
    (pair, client, limit)
}

/// Sends messages and starts a write and a read, has the path shrink when all of that is under way,
/// and sees all of it end well.
fn shrink(attribute: Attribute, loss: u64, to: usize, told: bool) -> Pair {
    let (mut pair, client, limit) = grown(attribute, loss);
    let target = Target { handle: [7, 7], offset: 100, len: 30_000 };
    let rma = Rma { op: Op(1000), target, access: Access::Write, fence: false, message: Some(b"written") };
    // The read brings what the write takes: both have the same place here.
    pair.hosts[1].memory[1 << 15..].fill(5);
    for number in 0..100 {
        let bytes = message(number, if number % 3 == 0 { 10 } else { LONG });
        pair.engines[0].send(pair.now, client, &[&bytes], Op(number), false).expect("room");
        if number == 10 {
            pair.engines[0].rma(pair.now, client, &rma).expect("a write");
            let behind = Target { offset: 1 << 15, ..target };
            let read = Rma { op: Op(1001), target: behind, access: Access::Read, message: None, ..rma };
            pair.engines[0].rma(pair.now, client, &read).expect("a read");
        }
    }
    pair.pump();
    assert!(pair.engines[0].report(client).in_flight > 5, "{:?}", pair.engines[0].report(client));
    // What is on its way is lost too.
    limit.set(to);
    pair.wire.retain(|_, (_, frame)| frame.len() <= to);
    if told {
        let conn = pair.engines[0].table.get(client.0).expect("open");
        let header = Header { kind: Kind::Data, to: conn.peer, from: conn.id, number: 1, time: 0 };
        let mut quoted = vec![0; 64];
        header.emit(&mut quoted);
        crate::wire::seal(&mut quoted, 0, |check| check);
        pair.engines[0].handle_too_big(&ADDRESSES[1], &quoted, u16::try_from(to).expect("short"));
    }
    pair.run(|pair| pair.hosts[0].ended.len() == 102);
    assert!(pair.hosts[0].ended.values().all(Result::is_ok), "{:?}", pair.hosts[0].ended);
    assert!(pair.hosts[0].broken.is_empty() && pair.hosts[1].broken.is_empty());
    assert!(usize::from(pair.engines[0].report(client).mtu) <= to);
    assert!(pair.hosts[1].memory[100..30_100].iter().all(|byte| *byte == 5));
    pair
}

fn expected() -> Vec<Vec<u8>> {
    (0..100).map(|number| message(number, if number % 3 == 0 { 10 } else { LONG })).collect()
}

#[test]
fn a_path_that_shrinks_and_tells_nobody_loses_nothing() {
    for loss in [0, 10, 3] {
        let mut pair = shrink(Attribute::ReliableOrdered, loss, 1300, false);
        let announcement = pair.hosts[1].received.iter().position(|bytes| bytes == b"written").expect("delivered");
        pair.hosts[1].received.remove(announcement);
        assert_eq!(announcement, 11, "between what was sent before and after it");
        assert_eq!(pair.hosts[1].received, expected(), "loss {loss}");
        let until = pair.now.plus_micros(70_000_000);
        pair.run_until(until);
        assert!((0..2).all(|side| is_clean(&pair.engines[side], &pair.hosts[side])));
    }
}

#[test]
fn a_path_that_shrinks_and_says_so_loses_nothing() {
    for to in [1300, 5000] {
        let pair = shrink(Attribute::ReliableOrdered, 0, to, true);
        assert_eq!(pair.hosts[1].received.len(), 101);
    }
}

#[test]
fn unordered_messages_pass_a_path_that_shrinks_once() {
    for loss in [0, 5] {
        let mut pair = shrink(Attribute::ReliableUnordered, loss, 1300, false);
        pair.hosts[1].received.retain(|bytes| bytes != b"written");
        pair.hosts[1].received.sort();
        assert_eq!(pair.hosts[1].received, expected());
    }
}

#[test]
fn a_path_that_carries_less_than_every_path_ends_the_connection() {
    // The twin: below the smallest size nothing helps.
    let (mut pair, client, limit) = grown(Attribute::ReliableOrdered, 0);
    pair.engines[0].send(pair.now, client, &[&message(1, LONG)], Op(1), false).expect("room");
    limit.set(1100);
    pair.run(|pair| !pair.hosts[0].broken.is_empty());
    assert_eq!(pair.hosts[0].ended[&1], Err(Failure::TimedOut));
}

#[test]
fn frames_grow_again_after_an_interruption() {
    let (mut pair, client, limit) = grown(Attribute::ReliableOrdered, 0);
    limit.set(0);
    for number in 0..20 {
        pair.engines[0].send(pair.now, client, &[&message(number, LONG)], Op(number), false).expect("room");
    }
    let until = pair.now.plus_micros(2_000_000);
    pair.run_until(until);
    assert_eq!(pair.engines[0].report(client).mtu, 1200, "after so many probes in vain");
    limit.set(9000);
    pair.run(|pair| pair.hosts[0].ended.len() == 20);
    let mut next = 20;
    pair.run(|_| true);
    while pair.engines[0].report(client).mtu < 9000 {
        if pair.engines[0].send(pair.now, client, &[&message(next, LONG)], Op(next), false).is_ok() {
            next += 1;
        } else {
            assert!(pair.step());
        }
        assert!(next < 10_000, "frames do not grow: {:?}", pair.engines[0].report(client));
    }
}

#[test]
fn loss_of_any_frames_is_no_black_hole() {
    let (mut pair, client, _) = grown(Attribute::ReliableOrdered, 10);
    for number in 0..1000 {
        while pair.engines[0].send(pair.now, client, &[&message(number, LONG)], Op(number), false).is_err() {
            assert!(pair.step());
            assert_eq!(pair.engines[0].report(client).mtu, 9000, "one frame in ten is lost, whatever its size");
        }
    }
}

/// A slice of records.
fn slice(whole: &[u8], at: usize, len: usize) -> Vec<u8> {
    let [total, from] = [whole.len(), at].map(|bytes| u16::try_from(bytes).expect("short"));
    record(|frame| emit_slice(frame, 0, total, from, len), &whole[at..at + len])
}

/// The peer's slices, in this order, of the frame so many before its turn.
fn give_slices(raw: &mut Raw, early: u32, whole: &[u8], size: usize, order: &[usize]) {
    for number in order {
        let at = number * size;
        let bytes = slice(whole, at, size.min(whole.len() - at));
        let frame = raw.data(Some(raw.seq + early), 0, &[], &bytes);
        raw.give(&frame);
    }
}

#[test]
fn slices_come_in_any_order_and_more_than_once() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let whole = [note(b"first"), note(&[9; 700])].concat();
    give_slices(&mut raw, 0, &whole, 100, &[3, 0, 0, 7, 7, 1, 2, 6, 5]);
    assert!(raw.host.received.is_empty(), "the fourth is missing");
    give_slices(&mut raw, 0, &whole, 100, &[4, 1]);
    assert_eq!(raw.host.received, [b"first".to_vec(), vec![9; 700]]);
    raw.seq += 1;
    // The whole, late.
    let frame = raw.data(Some(raw.seq - 1), 0, &[], &note(b"again"));
    raw.give(&frame);
    raw.next(&note(b"next"));
    assert_eq!(raw.host.received.len(), 3);
}

#[test]
fn slices_that_contradict_each_other_deliver_nothing() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let whole = note(&[9; 700]);
    give_slices(&mut raw, 0, &whole, 100, &[0, 1, 2, 3, 4, 5]);
    // Of another size, of another whole, beyond the largest frame; then what is no record, and a
    // slice of a slice.
    give_slices(&mut raw, 0, &whole, 350, &[1]);
    give_slices(&mut raw, 0, &note(&[9; 500]), 100, &[5]);
    assert!(raw.host.received.is_empty());
    let huge = record(|frame| emit_slice(frame, 0, u16::MAX, 0, 10), &[0; 10]);
    for records in [huge, slice(&[77; 30], 0, 30), slice(&slice(&note(b"no"), 0, 6), 0, 14)] {
        let before = raw.engine.stats.malformed;
        let frame = raw.data(Some(raw.seq), 0, &[], &records);
        raw.give(&frame);
        assert_eq!(raw.engine.stats.malformed, before + 1);
    }
    assert!(raw.host.received.is_empty());
    raw.next(&note(b"whole"));
    assert_eq!(raw.host.received, [b"whole".to_vec()]);
}

#[test]
fn frames_that_are_never_whole_take_no_more_than_their_share() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let whole = note(&[9; 700]);
    for early in 0..1000 {
        give_slices(&mut raw, early, &whole, 100, &[0]);
    }
    assert!(raw.engine.slices.len() <= 8, "{} frames", raw.engine.slices.len());
    // The one whose turn it is passes all the same.
    give_slices(&mut raw, 0, &whole, 100, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(raw.host.received.len(), 1);
}

#[test]
fn a_path_that_shrinks_while_the_peer_has_no_slot_is_noticed() {
    let (mut pair, client, limit) = grown(Attribute::ReliableOrdered, 0);
    pair.hosts[1].slots = 0;
    for number in 0..5 {
        pair.engines[0].send(pair.now, client, &[&message(number, LONG)], Op(number), false).expect("room");
    }
    let until = pair.now.plus_micros(10_000);
    pair.run_until(until);
    limit.set(1300);
    // The peer's word that there are slots now is lost.
    pair.hosts[1].slots = 100;
    let until = pair.now.plus_micros(10_000_000);
    pair.run_until(until);
    assert_eq!(pair.hosts[1].received.len(), 5);
    assert_eq!(pair.hosts[0].ended.len(), 5);
}

#[test]
fn frames_in_slices_of_a_victim_arrive_whatever_others_begin() {
    // The attacker's connections; whether they come from the victim's own host, from another
    // endpoint; whether each begins many frames.
    for (connections, is_near, is_greedy) in [
        (4, false, true),
        (4, true, true),
        (31, true, false),
        (32, true, false),
        (100, true, false),
        (100, true, true),
        (100, false, false),
        (100, false, true),
    ] {
        let mut slices = Slices::default();
        let (mut now, mut complete, mut begun) = (Time(0), 0, 0);
        let endpoint = Address([1; 24]);
        let victim = Owner { id: 1, endpoint, network: 77 };
        for frame in 0..73 {
            for part in 0..4 {
                for _ in 0..40 {
                    begun += 1;
                    now = now.plus_micros(1);
                    let id = 100 + u64::from(begun % connections);
                    let attacker = Owner { id, endpoint: Address([2; 24]), network: if is_near { 77 } else { 78 } };
                    let seq = if is_greedy { begun } else { begun / 3 };
                    assert!(slices.take(now, attacker, seq, (400, 0, &[0; 100])).is_none());
                }
                now = now.plus_micros(1);
                let bytes = [part; 100];
                complete += u32::from(slices.take(now, victim, frame, (400, u16::from(part) * 100, &bytes)).is_some());
            }
        }
        assert_eq!(complete, 73, "{connections} connections, near: {is_near}, greedy: {is_greedy}");
        assert!(slices.len() <= 32);
    }
}
