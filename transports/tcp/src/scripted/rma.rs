//! RMA with peers that break the protocol, or test its corners.

use crate::fixture::{End, Frame, NUMBER, OPTIONS, Script, bytes_of, heap};
use crate::frame::{BEGIN, CHECKED, Fields, Kind, OF_OPERATION, SUM, Target, emit_outcome, parse_outcome};
use crate::lane::SILENCE;
use cci_mem::memory::Memory;
use cci_proto::engine::MAX_LARGE;
use cci_proto::wire::Crc;
use cci_proto::{Access, Attribute, EventKind, Failure, Rights, Status, Time};
use cci_transport::{Connection, Posted, Transport};
use std::io::Write;

/// More than the buffers of a stream hold.
pub(super) const LONG: usize = 32 << 20;
/// A number that a peer may give its first operation.
pub(super) const FIRST: u32 = 1 << 16;

/// What a RESULT says: the operation, and how it has ended.
pub(super) fn result(frame: &Frame) -> (u32, Result<(), Failure>) {
    let mut fields = Fields(&frame.1);
    (fields.u32(), parse_outcome(&mut fields))
}

#[test]
fn a_long_write_that_is_refused_gets_its_result() {
    let (mut end, mut script, _) = Script::connected();
    // More than the buffer that streams are read into.
    let bytes = vec![7; 300_000];
    let target = Target { operation: FIRST, handle: [1, 2], offset: 0, total: bytes.len() as u64 };
    script.put(&mut end, Kind::Write, 0, script.connection, &[&target.emit(), &bytes]);
    let refused = script.find(&mut end, Kind::Result);
    assert_eq!(result(&refused), (FIRST, Err(Failure::RemoteHandle)));
}

/// A peer that reads, and whose frame of another kind names the number of that read.
fn misnames_a_read(kind: Kind, flags: u8, rest: &[u8]) {
    let (mut end, mut script, _) = Script::connected();
    let memory = heap(1, LONG);
    let handle = end.register(&memory, Rights::READ);
    let [index, secret, ..] = handle.words();
    let target = Target { operation: FIRST, handle: [index, secret], offset: 0, total: LONG as u64 };
    script.put(&mut end, Kind::Read, 0, script.connection, &[&target.emit()]);
    end.calls(10);
    script.put(&mut end, kind, flags, script.connection, &[&FIRST.to_le_bytes(), rest]);
    end.until_violated();
    assert!(bytes_of(&memory, LONG).iter().all(|byte| *byte == 1), "memory was written that may be read only");
}

#[test]
fn data_for_a_read_break_the_protocol_and_touch_no_memory() {
    misnames_a_read(Kind::Data, 0, &[0xee; 100]);
}

#[test]
fn a_message_of_a_read_breaks_the_protocol() {
    misnames_a_read(Kind::Message, OF_OPERATION, b"message");
}

#[test]
fn a_read_is_not_cancelled_as_a_write() {
    misnames_a_read(Kind::Cancel, 0, b"");
}

#[test]
fn a_read_is_no_large_message() {
    misnames_a_read(Kind::Landed, 0, &emit_outcome(Ok(())));
}

#[test]
fn a_result_before_the_bytes_have_left_breaks_the_protocol() {
    let (mut end, mut script, cell) = Script::connected();
    let memory = heap(1, LONG);
    let local = end.register(&memory, Rights::NONE);
    end.rma(cell, &local, LONG as u64, (Access::Write, false));
    end.calls(10);
    // The script does not read: the number is that of an endpoint's first operation.
    let parts: [&[u8]; 3] = [&FIRST.to_le_bytes(), &emit_outcome(Ok(())), &[0; 8]];
    script.put(&mut end, Kind::Result, 0, 0, &parts);
    end.until_violated();
    end.ends(EventKind::Send, Status::Disconnected);
}

/// The bytes of an operation that has ended are the program's again, though the stream still owes
/// them.
#[test]
fn bytes_of_a_write_that_has_ended_do_not_leave() {
    let (mut end, mut script, cell) = Script::connected();
    let memory = heap(1, LONG);
    let local = end.register(&memory, Rights::NONE);
    end.rma(cell, &local, LONG as u64, (Access::Write, false));
    end.calls(10);
    end.tcp.disconnect(&mut end.core, cell);
    end.ends(EventKind::Send, Status::Disconnected);
    let after = Memory::of_bytes(&memory);
    assert!(after.copy_in(0, &vec![0xee; LONG]));
    loop {
        let (header, body) = script.frame(&mut end);
        match header.kind {
            Kind::Write => assert!(body[BEGIN..].iter().all(|byte| *byte != 0xee), "bytes of another time"),
            Kind::Cancel => break,
            Kind::Data => panic!("more of it leaves"),
            _ => {}
        }
    }
    assert_eq!(script.find(&mut end, Kind::Disconnect).0.connection, NUMBER);
}

#[test]
fn answers_that_the_peer_reads_are_no_flood() {
    let (mut end, mut script, cell) = Script::connected();
    // A message waits in each round, so that the answers are never alone in what leaves. Together
    // they are more than the limit of answers that wait.
    for round in 0..60_u32 {
        script.taken = round;
        end.send(cell, b"waits", round.into());
        let grant = script.emit(Kind::Grant, 0, 0, &[&(round + 1).to_le_bytes()]);
        let cancel = script.emit(Kind::Cancel, 0, 0, &[&FIRST.to_le_bytes()]);
        script.write(&mut end, &[grant, cancel.repeat(1000)].concat());
        let mut answers = 0;
        while answers < 1000 {
            answers += u32::from(script.frame(&mut end).0.kind == Kind::Result);
        }
        assert_eq!(end.tcp.shared.malformed, 0, "in round {round}");
        while let Some(slot) = end.call() {
            assert!(slot.give_back());
        }
    }
}

/// A peer that does not read, and asks for an answer in each call: it gets one of these when it
/// reads.
fn asks_without_reading(kind: Kind, flags: u8, body: &[u8], answer: Kind) {
    let (mut end, mut script, _) = Script::connected();
    let memory = heap(1, LONG);
    let [index, secret, ..] = end.register(&memory, Rights::READ).words();
    let target = Target { operation: FIRST, handle: [index, secret], offset: 0, total: LONG as u64 };
    script.put(&mut end, Kind::Read, 0, script.connection, &[&target.emit()]);
    end.calls(20);
    for _ in 0..1000 {
        script.put(&mut end, kind, flags, 0, &[body]);
        // One that finds it, and one that finds nothing, which answers.
        end.calls(2);
    }
    let mut answers = 0;
    loop {
        let (header, _) = script.frame(&mut end);
        answers += u32::from(header.kind == answer);
        if header.kind == Kind::Result {
            break;
        }
    }
    end.calls(20);
    answers += u32::from(script.frames(&mut end, 20).iter().any(|(header, _)| header.kind == answer));
    assert!((1..=2).contains(&answers), "{answers} frames {answer:?}");
}

#[test]
fn answers_to_pings_that_nobody_reads_are_one() {
    asks_without_reading(Kind::Ping, 0, &[], Kind::Pong);
}

#[test]
fn answers_to_wishes_for_grants_that_nobody_reads_are_one() {
    asks_without_reading(Kind::Grant, crate::frame::WANT, &[0; 4], Kind::Grant);
}

/// Sends large messages, so many, without a reliable order.
fn send_large(end: &mut End, cell: &'static Connection, count: usize) {
    let memory = heap(5, 20_000);
    for _ in 0..count {
        let memory = Memory::of_bytes(&memory);
        end.tcp.send_large(&mut end.core, cell, memory, Posted::Event(1)).expect("a send");
    }
}

/// Large messages that the peer is asked for in these frames, by their numbers.
fn asked_for(frames: &[Frame]) -> Vec<u32> {
    let asked = frames.iter().filter(|(header, _)| header.kind == Kind::Large);
    asked.map(|(_, body)| Fields(body).u32()).collect()
}

#[test]
fn large_messages_beyond_those_on_their_way_follow_when_one_is_refused() {
    let mut end = End::new();
    let (mut script, cell) = Script::connect_by(&mut end, Attribute::ReliableUnordered);
    send_large(&mut end, cell, MAX_LARGE + 1);
    let asked = asked_for(&script.frames(&mut end, 20));
    assert_eq!(asked.len(), MAX_LARGE);
    let refusal: [&[u8]; 3] = [&asked[0].to_le_bytes(), &emit_outcome(Err(Failure::TooLong)), &[0; 16]];
    script.put(&mut end, Kind::Landing, 0, 0, &refusal);
    end.ends(EventKind::Send, Status::MsgSize);
    assert_eq!(asked_for(&script.frames(&mut end, 20)).len(), 1, "the last one sleeps");
}

#[test]
fn large_messages_of_one_connection_follow_when_another_ends() {
    let mut end = End::new();
    let (mut script, first) = Script::connect_by(&mut end, Attribute::ReliableUnordered);
    script.ask(&mut end, Attribute::ReliableUnordered, b"");
    let second = end.accept();
    send_large(&mut end, first, 2 * MAX_LARGE);
    send_large(&mut end, second, 1);
    assert_eq!(asked_for(&script.frames(&mut end, 20)).len(), MAX_LARGE);
    end.tcp.disconnect(&mut end.core, first);
    for _ in 0..2 * MAX_LARGE {
        end.ends(EventKind::Send, Status::Disconnected);
    }
    assert_eq!(asked_for(&script.frames(&mut end, 20)).len(), 1, "the other connection's sleeps");
}

#[test]
fn a_message_that_a_fence_lets_go_asks_for_grants() {
    let (mut end, mut script, cell) = Script::connected();
    let memory = heap(1, 8);
    let local = end.register(&memory, Rights::NONE);
    end.rma(cell, &local, 8, (Access::Write, true));
    end.send(cell, b"behind", 1);
    let (_, body) = script.find(&mut end, Kind::Write);
    let number = Fields(&body).u32();
    let parts: [&[u8]; 3] = [&number.to_le_bytes(), &emit_outcome(Ok(())), &[0; 8]];
    script.put(&mut end, Kind::Result, 0, 0, &parts);
    end.ends(EventKind::Send, Status::Success);
    while script.find(&mut end, Kind::Grant).0.flags & crate::frame::WANT == 0 {}
    script.put(&mut end, Kind::Grant, 0, 0, &[&1_u32.to_le_bytes()]);
    assert_eq!(script.find(&mut end, Kind::Message).1, b"behind");
}

#[test]
fn a_silent_peer_of_an_operation_without_a_timeout_is_asked() {
    let (mut end, mut script, cell) = Script::connected();
    script.put(&mut end, Kind::Grant, 0, 0, &[&1_u32.to_le_bytes()]);
    end.calls(100);
    assert_eq!(end.tcp.shared.check_at, None, "an idle lane needs no timer");
    end.send(cell, b"silence", 1);
    let check_at = end.tcp.shared.check_at.expect("somebody looks again");
    assert!(check_at <= end.tcp.shared.now + SILENCE);
    assert_eq!(script.find(&mut end, Kind::Message).1, b"silence");
    // So long ago.
    let now = end.tcp.shared.now;
    let lane = end.tcp.lanes.iter_mut().flatten().next().expect("a lane");
    (lane.heard, lane.pinged) = (Time(1), Time(1));
    end.tcp.shared.check_by(now);
    script.find(&mut end, Kind::Ping);
}

/// An operation with bytes of which each fragment is checked, and how the peer sees it.
fn checked_write(spoil: bool) {
    let (mut end, mut script, _) = Script::connected();
    let memory = heap(1, 100_000);
    let [index, secret, ..] = end.register(&memory, Rights::WRITE).words();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let target = Target { operation: FIRST, handle: [index, secret], offset: 0, total: 100_000 };
    let (first, rest) = bytes.split_at(60_000);
    let sum = |bytes: &[u8]| Crc::new().update(bytes).value().to_le_bytes();
    let parts: [&[u8]; 3] = [&target.emit(), &sum(first), first];
    script.put(&mut end, Kind::Write, CHECKED, script.connection, &parts);
    end.calls(5);
    let mut sent = rest.to_vec();
    sent[30_000] ^= u8::from(spoil);
    let parts: [&[u8]; 3] = [&FIRST.to_le_bytes(), &sum(rest), &sent];
    script.put(&mut end, Kind::Data, CHECKED, 0, &parts);
    let outcome = if spoil { Err(Failure::Copy) } else { Ok(()) };
    assert_eq!(result(&script.find(&mut end, Kind::Result)), (FIRST, outcome));
    assert!(spoil || bytes_of(&memory, 100_000) == bytes);
    // The lane lives.
    script.put(&mut end, Kind::Ping, 0, 0, &[]);
    script.find(&mut end, Kind::Pong);
}

#[test]
fn bytes_of_a_write_that_do_not_match_their_sum_fail_it_alone() {
    checked_write(false);
    checked_write(true);
}

#[test]
fn bytes_of_a_read_that_do_not_match_their_sum_fail_it_alone() {
    for spoil in [false, true] {
        let (mut end, mut script, cell) = Script::connected();
        let memory = heap(1, 1000);
        let local = end.register(&memory, Rights::NONE);
        end.rma(cell, &local, 1000, (Access::Read, false));
        let (_, body) = script.find(&mut end, Kind::Read);
        let number = &body[..4];
        let sum = Crc::new().update(&[7; 1000]).value().to_le_bytes();
        let bytes = [&[7; 999][..], &[7 ^ u8::from(spoil)]].concat();
        script.put(&mut end, Kind::Answer, CHECKED, 0, &[number, &sum, &bytes]);
        script.put(&mut end, Kind::Result, 0, 0, &[number, &emit_outcome(Ok(())), &[0; 8]]);
        end.ends(EventKind::Send, if spoil { Status::RmaOp } else { Status::Success });
        script.put(&mut end, Kind::Ping, 0, 0, &[]);
        script.find(&mut end, Kind::Pong);
    }
}

/// What leaves is the copy that was summed, though the memory changes until it leaves.
#[test]
fn fragments_that_are_checked_match_their_sums_whatever_the_memory_becomes() {
    let mut end = End::with(&[("check", "always")], OPTIONS);
    let (mut script, cell) = Script::connect(&mut end);
    let memory = heap(1, LONG);
    let local = end.register(&memory, Rights::NONE);
    end.rma(cell, &local, LONG as u64, (Access::Write, false));
    end.rma(cell, &local, 100, (Access::Write, false));
    let mut left = LONG + 100;
    let mut round = 0_u8;
    while left > 0 {
        round = round.wrapping_add(1);
        assert!(Memory::of_bytes(&memory).copy_in(u64::from(round) * 1000, &[round; 1000]));
        let (header, body) = script.frame(&mut end);
        if matches!(header.kind, Kind::Write | Kind::Data) {
            assert_eq!(header.flags & CHECKED, CHECKED);
            let (head, bytes) = body.split_at(header.needed());
            assert_eq!(head[head.len() - SUM..], Crc::new().update(bytes).value().to_le_bytes());
            left -= bytes.len();
        }
    }
}

#[test]
fn peers_on_this_host_are_not_remote() {
    let mut end = End::with(&[("check", "remote")], OPTIONS);
    let (mut script, cell) = Script::connect(&mut end);
    let memory = heap(1, 100);
    let local = end.register(&memory, Rights::NONE);
    end.rma(cell, &local, 100, (Access::Write, false));
    assert_eq!(script.find(&mut end, Kind::Write).0.flags & CHECKED, 0);
}

/// A peer that asks again and again, each time for an answer of its own, and reads none of them.
fn floods(kind: Kind, body: &[u8]) {
    let (mut end, mut script, _) = Script::connected();
    let frames = script.emit(kind, 0, script.connection, &[body]).repeat(1000);
    let mut sent = 0;
    let begun = std::time::Instant::now();
    while end.tcp.shared.malformed == 0 {
        assert!(begun.elapsed() < crate::fixture::LIMIT, "answers wait without a limit");
        // An error: the endpoint has closed the stream, or reads no more for now.
        if let Ok(count) = script.stream.write(&frames[sent..]) {
            sent = (sent + count) % frames.len();
        }
        end.tcp.progress(&mut end.core);
        let left = end.tcp.lanes.iter().flatten().map(|lane| lane.out.left().len()).max().unwrap_or(0);
        assert!(left < 2 << 20, "{left} bytes of answers");
    }
}

#[test]
fn floods_of_questions_whose_answers_nobody_reads_end_the_lane() {
    let target = Target { operation: FIRST, handle: [7, 7], offset: 0, total: 8 };
    floods(Kind::Read, &target.emit());
    floods(Kind::Cancel, &FIRST.to_le_bytes());
    floods(Kind::Large, &[&u64::from(FIRST).to_le_bytes()[..], &100_000_u64.to_le_bytes()].concat());
    let token = crate::frame::ConnectBody { attribute: Attribute::ReliableOrdered, identity: [1, 2], token: 9 };
    floods(Kind::Connect, &token.emit());
    floods(Kind::Accept, &[0; 8]);
}
