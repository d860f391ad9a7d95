//! The hot lane of a program that spins, which is not watched.

use crate::fixture::{End, LIMIT, OPTIONS, Script, heap};
use crate::frame::Kind;
use cci_proto::{Access, EventKind, Rights};
use cci_transport::{Connection, CoreOptions, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// More than make a lane leave the set of descriptors.
const STREAK: u32 = 300;

/// Messages that the endpoint finds by polling.
fn deliver(end: &mut End, script: &mut Script, count: u32) {
    for _ in 0..count {
        script.put(end, Kind::Message, 0, script.connection, &[b"message"]);
        assert!(end.next(EventKind::Recv).give_back());
    }
    script.read();
}

fn is_unwatched(end: &mut End, cell: &'static Connection) -> bool {
    end.tcp.lane_of(cell).expect("a lane").0.is_unwatched()
}

/// An endpoint, and a client whose lane is hot and not watched.
fn hot(options: CoreOptions) -> (End, Script, &'static Connection) {
    let mut end = End::with(&[], options);
    let (mut script, cell) = Script::connect(&mut end);
    deliver(&mut end, &mut script, STREAK);
    assert!(is_unwatched(&mut end, cell));
    (end, script, cell)
}

/// Whether a descriptor becomes readable within this time.
fn is_readable(descriptor: impl AsFd, limit: Duration) -> bool {
    let limit = Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: 0 };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)) == Ok(1)
}

/// Sends a message that the endpoint does not look for.
fn send_quietly(script: &mut Script) {
    let bytes = script.emit(Kind::Message, 0, script.connection, &[b"message"]);
    script.stream.write_all(&bytes).expect("room");
}

#[test]
fn an_armed_handle_reports_a_lane_that_was_not_watched() {
    let (mut end, mut script, cell) = hot(OPTIONS);
    end.calls(10);
    assert!(end.tcp.arm(&mut end.core), "there is nothing to do");
    assert!(!is_unwatched(&mut end, cell));
    send_quietly(&mut script);
    assert!(is_readable(end.tcp.handle(), LIMIT));
    assert!(end.next(EventKind::Recv).give_back());
}

#[test]
fn what_has_arrived_before_is_found_by_arming() {
    let (mut end, mut script, _) = hot(OPTIONS);
    end.calls(10);
    send_quietly(&mut script);
    assert!(!end.tcp.arm(&mut end.core) && is_readable(end.tcp.handle(), LIMIT));
}

#[test]
fn a_blocking_call_is_woken_by_a_lane_that_was_not_watched() {
    let (mut end, mut script, _) = hot(OPTIONS);
    end.calls(10);
    let descriptor = end.tcp.arm_in_call(&mut end.core).expect("there is nothing to do");
    send_quietly(&mut script);
    assert!(is_readable(&*descriptor, LIMIT));
}

#[test]
fn a_program_that_sleeps_between_messages_has_all_lanes_watched() {
    let (mut end, mut script, cell) = Script::connected();
    for _ in 0..STREAK {
        end.tcp.arm(&mut end.core);
        deliver(&mut end, &mut script, 1);
        assert!(!is_unwatched(&mut end, cell));
    }
}

#[test]
fn another_lane_that_delivers_has_the_first_watched_again() {
    let (mut end, mut script, cell) = hot(OPTIONS);
    let (mut second, other) = Script::connect(&mut end);
    deliver(&mut end, &mut second, 1);
    assert!(!is_unwatched(&mut end, cell));
    for _ in 0..STREAK {
        deliver(&mut end, &mut script, 1);
        deliver(&mut end, &mut second, 1);
    }
    assert!(!is_unwatched(&mut end, cell) && !is_unwatched(&mut end, other));
}

#[test]
fn a_full_stream_that_was_not_watched_is_watched_for_room() {
    const LEN: usize = 32 << 20;
    let (mut end, mut script, cell) = hot(OPTIONS);
    let memory = heap(1, LEN);
    let local = end.register(&memory, Rights::NONE);
    end.rma(cell, &local, LEN as u64, (Access::Write, false));
    end.calls(20);
    assert!(!is_unwatched(&mut end, cell));
    assert!(end.tcp.arm(&mut end.core), "nothing can leave");
    let begun = Instant::now();
    while !is_readable(end.tcp.handle(), Duration::ZERO) {
        assert!(script.read() && begun.elapsed() < LIMIT, "a sleeper is not told of room in the stream");
    }
    end.tcp.disarm(&mut end.core);
    script.take(&mut end, LEN);
    deliver(&mut end, &mut script, STREAK);
    assert!(is_unwatched(&mut end, cell), "it has room again");
}

#[test]
fn a_lane_without_a_slot_that_was_not_watched_goes_on_when_there_is_one() {
    let (mut end, mut script, cell) = hot(OPTIONS);
    end.core.set_recv_count(1).expect("fewer slots");
    for _ in 0..3 {
        script.put(&mut end, Kind::Message, 0, script.connection, &[b"message"]);
    }
    let first = end.next(EventKind::Recv);
    end.calls(20);
    assert!(!is_unwatched(&mut end, cell));
    assert!(first.give_back());
    for _ in 0..2 {
        end.tcp.refill(&mut end.core);
        assert!(end.next(EventKind::Recv).give_back());
    }
}
