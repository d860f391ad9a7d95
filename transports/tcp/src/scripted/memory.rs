//! Memory that goes away, and peers that stop, in the middle of a transfer.

use super::rma::{FIRST, LONG, result};
use crate::fixture::{End, OPTIONS, Script, bytes_of, heap};
use crate::frame::{BEGIN, Fields, Kind, OPERATION, Target};
use cci_mem::memory::Memory;
use cci_mem::sync::Ordering;
use cci_proto::{Access, EventKind, Failure, Rights, RmaHandle, Status};
use cci_transport::{Connection, Transport};

fn deregister(end: &mut End, handle: &RmaHandle) {
    end.tcp.deregister(&mut end.core, handle).expect("a registration");
}

/// The lane has not ended.
fn lives(end: &mut End, script: &mut Script) {
    script.put(end, Kind::Ping, 0, 0, &[]);
    script.find(end, Kind::Pong);
    assert_eq!(end.tcp.shared.malformed, 0);
}

/// What a READ or WRITE of a registration from its beginning on names.
fn target(handle: &RmaHandle, total: usize) -> Target {
    let [index, secret, ..] = handle.words();
    Target { operation: FIRST, handle: [index, secret], offset: 0, total: total as u64 }
}

#[test]
fn a_target_that_is_deregistered_gets_no_more_bytes_and_says_so() {
    // In the buffer that streams are read into, and beyond it.
    for total in [1000, 300_000] {
        for fragments in [1, 2] {
            let (mut end, mut script, _) = Script::connected();
            let memory = heap(1, total);
            let handle = end.register(&memory, Rights::WRITE);
            let (first, rest) = (total / 2, total - total / 2);
            let begin = target(&handle, total).emit();
            let mut frames = script.emit(Kind::Write, 0, script.connection, &[&begin, &vec![7; total]]);
            if fragments == 2 {
                frames = script.emit(Kind::Write, 0, script.connection, &[&begin, &vec![7; first]]);
                frames.extend(script.emit(Kind::Data, 0, 0, &[&FIRST.to_le_bytes(), &vec![7; rest]]));
            }
            let (now, later) = frames.split_at(frames.len() - rest);
            script.write(&mut end, now);
            end.calls(20);
            deregister(&mut end, &handle);
            script.write(&mut end, later);
            assert_eq!(result(&script.find(&mut end, Kind::Result)), (FIRST, Err(Failure::RemoteHandle)));
            let bytes = bytes_of(&memory, total);
            assert!(bytes[..first].iter().all(|byte| *byte == 7) && bytes[first..].iter().all(|byte| *byte == 1));
            lives(&mut end, &mut script);
        }
    }
}

#[test]
fn memory_that_is_deregistered_while_a_peer_reads_it_does_not_leave() {
    let (mut end, mut script, _) = Script::connected();
    let memory = heap(1, LONG);
    let handle = end.register(&memory, Rights::READ);
    script.put(&mut end, Kind::Read, 0, script.connection, &[&target(&handle, LONG).emit()]);
    end.calls(20);
    deregister(&mut end, &handle);
    assert!(Memory::of_bytes(&memory).copy_in(0, &vec![0xee; LONG]));
    let mut total = 0;
    loop {
        let frame = script.frame(&mut end);
        match frame.0.kind {
            Kind::Answer => {
                total += frame.1.len() - OPERATION;
                assert!(frame.1[OPERATION..].iter().all(|byte| *byte <= 1), "bytes of another time");
            }
            Kind::Result => break assert_eq!(result(&frame), (FIRST, Err(Failure::RemoteHandle))),
            _ => {}
        }
    }
    assert!(total < LONG, "{total}");
    lives(&mut end, &mut script);
}

#[test]
fn a_source_that_is_deregistered_ends_its_write_and_cancels_it() {
    let (mut end, mut script, cell) = Script::connected();
    let memory = heap(1, LONG);
    let local = end.register(&memory, Rights::NONE);
    end.rma(cell, &local, LONG as u64, (Access::Write, false));
    end.calls(20);
    deregister(&mut end, &local);
    end.ends(EventKind::Send, Status::RmaHandle);
    assert!(Memory::of_bytes(&memory).copy_in(0, &vec![0xee; LONG]));
    loop {
        let (header, body) = script.frame(&mut end);
        match header.kind {
            Kind::Write => assert!(body[BEGIN..].iter().all(|byte| *byte <= 1), "bytes of another time"),
            Kind::Data => assert!(body[OPERATION..].iter().all(|byte| *byte <= 1), "bytes of another time"),
            Kind::Cancel => break,
            _ => {}
        }
    }
    lives(&mut end, &mut script);
}

/// The bytes of a read come in parts; in their middle the registration goes.
fn loses_its_memory(end: &mut End, script: &mut Script, cell: &'static Connection, checked: bool) {
    const LEN: usize = 300_000;
    let memory = heap(1, LEN);
    let local = end.register(&memory, Rights::NONE);
    end.rma(cell, &local, LEN as u64, (Access::Read, false));
    let (_, body) = script.find(end, Kind::Read);
    let number = Fields(&body).u32().to_le_bytes();
    let sum = cci_proto::wire::Crc::new().update(&vec![7; LEN]).value().to_le_bytes();
    let flags = if checked { crate::frame::CHECKED } else { 0 };
    let sum: &[u8] = if checked { &sum } else { &[] };
    let frame = script.emit(Kind::Answer, flags, 0, &[&number, sum, &vec![7; LEN]]);
    let (now, later) = frame.split_at(frame.len() - LEN / 2);
    script.write(end, now);
    end.calls(20);
    deregister(end, &local);
    script.write(end, later);
    end.ends(EventKind::Send, Status::RmaHandle);
    let bytes = bytes_of(&memory, LEN);
    assert!(bytes[LEN / 2..].iter().all(|byte| *byte == 1), "written when the program had it again");
    script.put(end, Kind::Result, 0, 0, &[&number, &crate::frame::emit_outcome(Ok(())), &[0; 8]]);
    lives(end, script);
}

#[test]
fn a_read_whose_memory_is_deregistered_fails_and_drops_the_rest() {
    for checked in [false, true] {
        let (mut end, mut script, cell) = Script::connected();
        // Each time another use of the number.
        for _ in 0..3 {
            loses_its_memory(&mut end, &mut script, cell, checked);
        }
        let lane = end.tcp.lanes.iter().flatten().next().expect("a lane");
        assert!(lane.work.as_ref().is_none_or(|work| work.is_empty()), "something of it is left");
    }
}

/// A peer that stops reading in the middle of a frame.
#[test]
fn a_peer_that_stops_reading_ends_its_own_operations_in_time() {
    for keys in [&[][..], &[("check", "always")]] {
        let mut end = End::with(keys, OPTIONS);
        let (mut stopped, to_stopped) = Script::connect(&mut end);
        let (mut other, to_other) = Script::connect(&mut end);
        other.put(&mut end, Kind::Grant, 0, 0, &[&100_u32.to_le_bytes()]);
        stopped.put(&mut end, Kind::Grant, 0, 0, &[&1_u32.to_le_bytes()]);
        end.calls(20);
        to_stopped.send_timeout.store(300_000, Ordering::Relaxed);
        let memory = heap(1, LONG);
        let local = end.register(&memory, Rights::NONE);
        end.rma(to_stopped, &local, LONG as u64, (Access::Write, false));
        end.send(to_stopped, b"behind it", 2);
        let head = stopped.take(&mut end, 100);
        let mut sent = 0;
        let mut ended = Vec::new();
        while ended.len() < 2 {
            end.send(to_other, b"others go on", 3);
            assert_eq!(other.find(&mut end, Kind::Message).1, b"others go on");
            sent += 1;
            other.taken = sent;
            other.put(&mut end, Kind::Grant, 0, 0, &[&(sent + 100).to_le_bytes()]);
            while let Some(slot) = end.call() {
                assert_eq!(slot.kind(), EventKind::Send as u32);
                if slot.words()[1] != 3 {
                    ended.push(slot.detail());
                }
                assert!(slot.give_back());
            }
        }
        assert_eq!(ended, [Status::TimedOut as u32; 2]);
        assert!(sent > 10, "{sent} messages meanwhile");
        // What was half sent is filled up, and the lane lives when the peer goes on.
        stopped.put_back(head);
        stopped.find(&mut end, Kind::Cancel);
        lives(&mut end, &mut stopped);
    }
}
