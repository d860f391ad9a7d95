//! Pacing, windows, timers, clocks.

use super::*;
use crate::engine::flow::congestion::{Congestion, Sample};

/// Sends this many messages of 1,000 bytes and runs until they have ended; how long that took,
/// nanoseconds.
fn transfer(pair: &mut Pair, client: Index, count: u32) -> u64 {
    let began = pair.now;
    let mut next = 0;
    pair.hosts[0].ended.clear();
    while (pair.hosts[0].ended.len() as u32) < count {
        if next < count && pair.engines[0].send(pair.now, client, &[&[1; 1000]], Op(next), false).is_ok() {
            next += 1;
        } else {
            assert!(pair.step());
        }
        assert!(pair.now.since(began) < 100_000_000_000, "stuck");
    }
    pair.now.since(began)
}

#[test]
fn a_transfer_after_slow_questions_and_answers_is_not_paced_by_them() {
    let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableOrdered);
    let fresh = transfer(&mut pair, client, 2000);
    for _ in 0..30 {
        let until = pair.now.plus_micros(900_000);
        pair.run_until(until);
        transfer(&mut pair, client, 1);
    }
    let later = transfer(&mut pair, client, 2000);
    assert!(later < 3 * fresh + 1_000_000, "{later} ns, and {fresh} ns at first");
}

#[test]
fn a_transfer_after_a_long_wait_for_slots_is_not_paced_by_it() {
    let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableOrdered);
    let fresh = transfer(&mut pair, client, 2000);
    pair.hosts[1].slots = 0;
    pair.hosts[0].ended.clear();
    for op in 0..200 {
        pair.engines[0].send(pair.now, client, &[&[1; 1000]], Op(op), false).expect("send");
    }
    for _ in 0..200 {
        let until = pair.now.plus_micros(50_000);
        pair.run_until(until);
        pair.hosts[1].slots += 1;
        pair.engines[1].refill(&mut pair.hosts[1]);
    }
    pair.run(|pair| pair.hosts[0].ended.len() == 200);
    pair.hosts[1].slots = 1 << 20;
    let later = transfer(&mut pair, client, 2000);
    assert!(later < 3 * fresh + 1_000_000, "{later} ns, and {fresh} ns at first");
}

#[test]
fn the_window_of_a_connection_that_says_little_does_not_grow() {
    let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableOrdered);
    for _ in 0..300 {
        transfer(&mut pair, client, 1);
    }
    let window = pair.engines[0].flows.iter().next().expect("a flow").congestion.window(1000);
    assert!(window <= 512 << 10, "{window} bytes at once");
}

#[test]
fn no_rate_is_so_small_that_the_connection_stands_still() {
    let mut congestion = Congestion::new();
    let mut now = Time(0);
    for number in 0..2000 {
        now = now.plus_micros(1_000_000);
        congestion.on_sent(now, 1200, 1200);
        congestion.on_lost(1 << 20);
        let sample = Sample {
            bytes: 1,
            rtt: Some(100 + number),
            base_rtt: 100,
            echoed: number,
            number: number + 1,
            marks: 1,
            is_app_limited: false,
        };
        congestion.on_ack(now, &sample);
    }
    assert!(congestion.window(1000) < 1 << 20, "nor so large as if nothing had been lost");
    // Frames may always leave a few in a round trip.
    for _ in 0..200 {
        congestion.on_sent(now, 1200, 1200);
    }
    assert!(congestion.next_at().since(now) < 200_000_000, "{:?}", congestion.next_at());
}

#[test]
fn a_jump_of_the_clock_breaks_nothing_that_lives() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
    for side in 0..2 {
        pair.engines[side].set_timeouts(pair.now, [client, server][side], 0, 1_000_000);
    }
    for op in 0..10 {
        pair.engines[0].send(pair.now, client, &[&message(op, 1000)], Op(op), false).expect("send");
    }
    pair.pump();
    // The machine slept; what was on its way is lost.
    pair.wire.clear();
    pair.now = pair.now.plus_micros(3_600_000_000);
    pair.run(|pair| pair.hosts[0].ended.len() == 10);
    assert!(pair.hosts.iter().all(|host| host.broken.is_empty() && host.silent == 0));
}

#[test]
fn a_peer_that_is_gone_is_told_within_three_keepalive_intervals() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.engine.set_timeouts(raw.now, raw.index, 0, 400_000);
    raw.wait(399_000);
    assert_eq!(raw.host.silent, 0);
    raw.wait(801_000);
    assert_eq!(raw.host.silent, 1);
}

#[test]
fn a_busy_connection_keeps_few_timers() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
    for side in 0..2 {
        pair.engines[side].set_timeouts(pair.now, [client, server][side], 60_000_000, 60_000_000);
    }
    let target = Target { handle: [7, 7], offset: 0, len: 10 };
    for _ in 0..5000 {
        let rma = Rma { op: Op(1), target, access: Access::Read, fence: false, message: None };
        pair.engines[0].rma(pair.now, client, &rma).expect("rma");
        pair.run(|pair| pair.hosts[0].ended.len() == 1);
        pair.hosts[0].ended.clear();
        let until = pair.now.plus_micros(2_000);
        pair.run_until(until);
    }
    for engine in &pair.engines {
        assert!(engine.timers.len() < 2000, "{} entries", engine.timers.len());
    }
}

#[test]
fn a_probe_of_the_path_is_answered_between_frames_of_data() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.engine.send(raw.now, raw.index, &[b"busy"], Op(1), false).expect("send");
    let head = raw.data(None, flags::PROMPT, &[], &[]).len();
    let mut probe = raw.data(None, flags::PROMPT, &[], &[]);
    probe.resize(1400, 0);
    wire::emit_probe(&mut probe, head, 1400);
    let sent = raw.give(&probe);
    assert!(records(&sent).contains(&Record::ProbeReply { size: 1400 }));
}

#[test]
fn a_frame_that_leaves_its_memory_unchecked_counts_only_where_both_agreed() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    let frame = raw.data(Some(raw.seq), flags::UNCHECKED, &[], &write(1, 7, 4, 0, b"oops"));
    raw.give(&frame);
    assert_eq!(raw.host.memory[..4], [3; 4]);
    assert_eq!(raw.engine.stats.malformed, 1);
}

#[test]
fn acknowledgements_of_what_was_never_sent_change_nothing() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    for op in 0..5 {
        raw.engine.send(raw.now, raw.index, &[&message(op, 1100)], Op(op), false).expect("send");
    }
    raw.poll();
    let start = raw.ack;
    for ack in [start.wrapping_add(6), start.wrapping_add(1 << 30), start.wrapping_sub(7), start ^ 1 << 31] {
        raw.ack = ack;
        let frame = raw.data(None, 0, &[], &[]);
        raw.give(&frame);
    }
    raw.ack = start;
    // A number beyond the newest, with everything acknowledged.
    let mut frame = raw.data(None, 0, &[u64::MAX; 64], &[]);
    frame[44..48].copy_from_slice(&[0x70, 0, 0, 0]);
    raw.give(&frame);
    assert!(raw.host.ended.is_empty());
    // Sack beyond what is in flight, and of what is in it; then the rest.
    let frame = raw.data(None, 0, &[u64::MAX; 64], &[]);
    raw.give(&frame);
    assert!(raw.host.ended.is_empty(), "the first was not accepted");
    raw.accept_all();
    assert_eq!(raw.host.ended.len(), 5);
    raw.wait(5_000_000);
    assert!(is_clean(&raw.engine, &raw.host));
}

#[test]
fn thousands_of_reads_at_once_lose_nothing() {
    let mut pair = Pair::with(&Config { frames: 8192, ..CONFIG }, 0);
    let [client, _] = pair.connect(Attribute::ReliableUnordered);
    let target = Target { handle: [7, 7], offset: 0, len: 10 };
    for op in 0..5000 {
        let read = Rma { op: Op(op), target, access: Access::Read, fence: false, message: None };
        pair.engines[0].rma(pair.now, client, &read).expect("read");
    }
    pair.run(|pair| pair.hosts[0].ended.len() == 5000);
    assert_eq!(pair.engines[1].stats.unheld, 0);
}

#[test]
fn a_frame_that_is_lost_again_and_again_goes_alone() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    for op in 0..10 {
        raw.engine.send(raw.now, raw.index, &[&message(op, 1100)], Op(op), false).expect("send");
    }
    // The peer says that it hears, and accepts nothing: the first never comes, and the others find
    // no room to wait for it.
    let (mut rounds, mut sent) = (0, raw.poll());
    loop {
        let seqs: Vec<u32> = sent.iter().filter_map(|frame| Data::parse(frame)).map(|(data, ..)| data.seq).collect();
        if rounds >= 10 {
            assert!(seqs.iter().all(|seq| *seq == raw.ack), "{seqs:?} behind {}", raw.ack);
        }
        rounds += 1;
        if rounds == 20 {
            break;
        }
        raw.now = raw.now.plus_micros(200);
        let heard = raw.data(None, 0, &[], &[]);
        sent = raw.give(&heard);
        sent.extend(raw.wait(3_000));
    }
    raw.accept_all();
    raw.wait(100_000);
    raw.accept_all();
    assert_eq!(raw.host.ended.len(), 10);
}

#[test]
fn the_time_between_two_bursts_is_no_part_of_the_rate() {
    let (mut congestion, mut now, mut number) = (Congestion::new(), Time(0), 0);
    let mut heard = |congestion: &mut Congestion, now: Time, bytes: u64, is_app_limited: bool| {
        number += 10;
        let sample =
            Sample { bytes, rtt: Some(100), base_rtt: 100, echoed: number - 5, number, marks: 0, is_app_limited };
        congestion.on_ack(now, &sample);
    };
    for _ in 0..12 {
        now = now.plus_micros(10_000_000);
        congestion.on_restart();
        heard(&mut congestion, now.plus_micros(100), 2400, false);
        assert!(congestion.rate() == 0 || congestion.rate() > 1_000_000, "{} bytes a second", congestion.rate());
        heard(&mut congestion, now.plus_micros(200), 60_000, true);
        assert!(congestion.rate() == 0 || congestion.rate() > 1_000_000, "{} bytes a second", congestion.rate());
    }
}

#[test]
fn what_says_little_earns_no_window() {
    let mut congestion = Congestion::new();
    let before = congestion.window(1200);
    for number in 0..1000 {
        let sample = Sample {
            bytes: 10_000,
            rtt: Some(100),
            base_rtt: 100,
            echoed: number,
            number: number + 1,
            marks: 0,
            is_app_limited: true,
        };
        congestion.on_ack(Time(u64::from(number) * 1_000_000), &sample);
    }
    assert_eq!(congestion.window(1200), before);
}

#[test]
fn a_peer_that_is_heard_and_accepts_nothing_is_given_up_after_a_minute() {
    let mut raw = Raw::new(Attribute::ReliableOrdered);
    raw.engine.send(raw.now, raw.index, &[&message(1, 1000)], Op(1), false).expect("send");
    raw.poll();
    for seconds in 0..70 {
        assert!(seconds < 65 || !raw.host.broken.is_empty());
        assert!(seconds > 58 || raw.host.broken.is_empty());
        raw.wait(1_000_000);
        let heard = raw.data(None, 0, &[], &[]);
        raw.give(&heard);
    }
    assert_eq!(raw.host.ended[&1], Err(Failure::TimedOut));
}
