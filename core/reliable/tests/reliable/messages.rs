//! Messages: every length, in order, under faults, without slots, in rows.

use crate::memory_link::{Faults, Hub};
use crate::world::{End, How, LARGEST, join, message, next, outcome, two, until, waiting};
use cci_instruments::pattern;
use cci_mem::guarded::Threading;
use cci_proto::{Attribute, EventKind, SendError, Status};
use cci_transport::{Core, CoreOptions, Posted, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::Duration;

const RO: Attribute = Attribute::ReliableOrdered;
const BAD: Faults = Faults { lost: 50, doubled: 50, late: 100, spoilt: 50 };

#[test]
fn every_length_arrives_on_every_kind_of_connection() {
    let (_, a, b) = two();
    let ends = [&a, &b];
    for attribute in [RO, Attribute::ReliableUnordered, Attribute::Unreliable] {
        let (to_b, to_a) = join(&ends, attribute);
        for len in [0, 1, 7, 8, 55, 56, 57, 1000, 1100, 1200, 4000, 4096, 5000, LARGEST as usize] {
            a.send(to_b, &pattern(len as u64, len), len as u64);
            assert_eq!(message(&ends, 1), pattern(len as u64, len), "{len} bytes, {attribute:?}");
            assert_eq!(outcome(&ends, 0, EventKind::Send), (Some(Status::Success), len as u64));
            b.send(to_a, &pattern(1, len), 5);
            assert_eq!(message(&ends, 0), pattern(1, len), "{len} bytes back, {attribute:?}");
            assert_eq!(outcome(&ends, 1, EventKind::Send), (Some(Status::Success), 5));
        }
        let report = a.report(to_b);
        assert_eq!((report.sent, report.received, report.open, report.transport), (14, 14, 0, "mem"));
    }
}

#[test]
fn a_bad_network_changes_nothing_but_the_time() {
    let (hub, a, b) = two();
    let ends = [&a, &b];
    let (to_b, _) = join(&ends, RO);
    hub.set_faults(BAD);
    let (mut sent, mut got) = (0u64, 0u64);
    while got < 2000 {
        while sent < 2000 && sent < got + 100 {
            a.send(to_b, &pattern(sent, 8 + sent as usize % 2000), sent);
            sent += 1;
        }
        assert_eq!(message(&ends, 1), pattern(got, 8 + got as usize % 2000), "message {got}");
        assert_eq!(outcome(&ends, 0, EventKind::Send), (Some(Status::Success), got));
        got += 1;
    }
}

#[test]
fn a_receiver_that_holds_every_slot_gets_one_more_for_each_that_it_returns() {
    let hub = Hub::new();
    let few = CoreOptions { recv_count: 8, ..How::default().core };
    let (a, b) = (End::open(&hub, How::default()), End::open(&hub, How { core: few, ..How::default() }));
    let ends = [&a, &b];
    let (to_b, to_a) = join(&ends, RO);
    for number in 0..100 {
        a.send(to_b, &pattern(number, 100), number);
    }
    until(&ends, || waiting(&b, EventKind::Recv) == 8);
    // It can still send, and hears of its end.
    b.send(to_a, b"still there", 3);
    assert_eq!(message(&ends, 0), b"still there");
    assert_eq!(outcome(&ends, 1, EventKind::Send), (Some(Status::Success), 3));
    assert_eq!(waiting(&b, EventKind::Recv), 8, "more events than slots");
    for number in 0..100 {
        assert_eq!(message(&ends, 1), pattern(number, 100));
    }
    // Those that shared a frame end together, when the last of them has found a slot.
    for number in 0..100 {
        assert_eq!(outcome(&ends, 0, EventKind::Send), (Some(Status::Success), number));
    }
}

#[test]
fn a_sender_without_buffers_is_told_and_goes_on() {
    let (hub, a, b) = two();
    let ends = [&a, &b];
    let (to_b, _) = join(&ends, RO);
    for len in [8, LARGEST as usize] {
        hub.set_full(true);
        let mut count = 0;
        let error = loop {
            match a.post(to_b, &pattern(count, len), Posted::Event(count)) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, SendError::NoBuffers);
        assert!((8..=256).contains(&count), "{count} sends accepted");
        hub.set_full(false);
        for number in 0..count {
            assert_eq!(message(&ends, 1), pattern(number, len));
            assert_eq!(outcome(&ends, 0, EventKind::Send), (Some(Status::Success), number));
        }
    }
}

#[test]
fn silent_messages_raise_no_event() {
    let (_, a, b) = two();
    let ends = [&a, &b];
    let (to_b, _) = join(&ends, RO);
    for number in 0..1000 {
        a.post(to_b, &pattern(number, 60), Posted::Silent(0)).expect("a send");
        assert_eq!(message(&ends, 1), pattern(number, 60));
    }
    a.send(to_b, b"last", 7);
    assert_eq!(message(&ends, 1), b"last");
    assert_eq!(outcome(&ends, 0, EventKind::Send), (Some(Status::Success), 7));
    assert_eq!(waiting(&a, EventKind::Send), 0);
}

/// What `b` can take without a call of `a`.
#[test]
fn a_lone_message_leaves_in_the_call_and_a_row_shares_frames() {
    let hub = Hub::new();
    let one = How { threading: Threading::One, ..How::default() };
    let (a, b) = (End::open(&hub, one), End::open(&hub, How::default()));
    let ends = [&a, &b];
    let (to_b, _) = join(&ends, RO);
    for number in 0..50u64 {
        // Between two messages `a` polls: none of them is one of a row.
        a.send(to_b, &pattern(number, 10), 0);
        let slot = next(&[&b], 0, EventKind::Recv);
        assert_eq!(slot.detail(), 10, "the message waits for another call");
        b.give_back(slot);
        outcome(&ends, 0, EventKind::Send);
    }
    hub.stop_clock();
    let send = |number| a.send(to_b, &pattern(number, 10), number);
    // After a pause the first four leave alone.
    (0..5).for_each(send);
    let (before, _) = hub.sent();
    (5..205).for_each(send);
    let frames = hub.sent().0 - before;
    // 128 leave together, in two frames, and the rest waits.
    assert!(frames <= 2, "{frames} frames for 200 messages in a row");
    for number in 0..205 {
        assert_eq!(message(&ends, 1), pattern(number, 10));
    }
}

/// An acknowledgement is no message that the program could be answering: it does not let the next
/// one of a row leave alone.
#[test]
fn acknowledgements_do_not_break_a_row() {
    let hub = Hub::new();
    let one = How { threading: Threading::One, ..How::default() };
    let (a, b) = (End::open(&hub, one), End::open(&hub, one));
    let ends = [&a, &b];
    let (to_b, to_a) = join(&ends, RO);
    hub.stop_clock();
    let sent = |number| {
        let (before, _) = hub.sent();
        a.send(to_b, b"row", number);
        hub.sent().0 - before
    };
    // The first four leave alone; the fifth waits for more, until something comes.
    assert_eq!((0..5).map(sent).collect::<Vec<_>>(), [1, 1, 1, 1, 0]);
    until(&ends, || waiting(&a, EventKind::Send) == 4);
    assert_eq!(sent(5), 0, "only acknowledgements have come");
    b.send(to_a, b"message", 0);
    assert_eq!(message(&ends, 0), b"message");
    assert_eq!(sent(6), 1, "it may be the answer");
    (0..7).for_each(|_| assert_eq!(message(&ends, 1), b"row"));
}

#[test]
fn an_answer_comes_before_the_end_of_what_it_answers() {
    let hub = Hub::new();
    let one = How { threading: Threading::One, ..How::default() };
    let (a, b) = (End::open(&hub, one), End::open(&hub, one));
    let ends = [&a, &b];
    let (to_b, to_a) = join(&ends, RO);
    for number in 0..50 {
        a.send(to_b, b"asked", number);
        b.give_back(next(&[&b], 0, EventKind::Recv));
        // The answer brings the acknowledgement along.
        b.post(to_a, b"answered", Posted::Silent(0)).expect("a send");
        let kinds = [(); 2].map(|()| {
            let slot = std::iter::repeat_with(|| a.poll()).take(1000).flatten().next().expect("an event");
            let kind = slot.kind();
            a.give_back(slot);
            kind
        });
        assert_eq!(kinds, [EventKind::Recv as u32, EventKind::Send as u32], "round {number}");
    }
}

/// Setting a timer can be a trap into the host of a virtual machine: the message does not wait for
/// that of its acknowledgement.
#[test]
fn a_message_that_wakes_does_not_wait_for_a_timer() {
    let (hub, a, b) = two();
    let (to_b, _) = join(&[&a, &b], RO);
    let arm = |core: &mut Core, transport: &mut dyn Transport| {
        core.set_handle_in_use();
        transport.arm(core)
    };
    let handle = b.cell.with(|_, transport| transport.handle().try_clone_to_owned()).expect("usable").expect("a copy");
    let is_readable = || {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&none)) == Ok(1)
    };
    for number in 0..10 {
        while !b.cell.with(arm).expect("usable") {
            assert!(b.poll().is_none());
        }
        assert!(!is_readable(), "it does not sleep");
        a.send(to_b, b"woken", number);
        assert!(is_readable(), "nobody woke it");
        let before = hub.arms();
        let slot = b.poll().expect("the message");
        assert_eq!(hub.arms(), before, "round {number}");
        b.give_back(slot);
        // A program that sleeps now is woken for the call that sets it.
        assert!(is_readable(), "round {number}");
        assert!(b.poll().is_none());
        assert!(hub.arms() > before && !is_readable(), "round {number}");
        outcome(&[&a, &b], 0, EventKind::Send);
    }
}

#[test]
fn calls_that_find_nothing_write_to_no_descriptor() {
    let hub = Hub::new();
    let end = End::open(&hub, How::default());
    let waker = end.cell.with(|_, transport| transport.waker()).expect("usable");
    for _ in 0..1000 {
        assert!(end.poll().is_none());
    }
    let mut count = [0; 8];
    rustix::io::read(&*waker, &mut count[..]).expect("readable: nobody has armed the handle");
    assert_eq!(u64::from_ne_bytes(count), 1, "once, when the endpoint was opened");
}

#[test]
fn one_flood_leaves_room_for_others() {
    let hub = Hub::new();
    let few = CoreOptions { recv_count: 64, ..How::default().core };
    let (flooder, quiet) = (End::open(&hub, How::default()), End::open(&hub, How::default()));
    let b = End::open(&hub, How { core: few, ..How::default() });
    let (flood, _) = join(&[&flooder, &b], RO);
    let (other, _) = join(&[&quiet, &b], RO);
    let ends = [&flooder, &quiet, &b];
    while flooder.post(flood, &[1; 60], Posted::Event(0)).is_ok() {}
    until(&ends, || waiting(&b, EventKind::Recv) >= 48);
    let mut looks = 0;
    until(&ends, || {
        looks += 1;
        looks > 2000
    });
    assert!(waiting(&b, EventKind::Recv) < 64, "one peer has every slot");
    quiet.send(other, b"me too", 0);
    until(&ends, || {
        looks += 1;
        looks > 4000
    });
    let mut returned = 0;
    loop {
        let slot = next(&ends, 2, EventKind::Recv);
        if slot.detail() == 6 {
            break;
        }
        b.give_back(slot);
        returned += 1;
        assert!(returned <= 128, "one peer takes every slot that becomes free");
    }
}

/// Nothing arrives for ten minutes, as at a job that is stopped: what becomes of the end of a send.
fn silence_of_ten_minutes(patient: bool) -> (Hub, End, End, Option<(u32, u64)>) {
    let hub = Hub::new();
    let core = CoreOptions { patient, ..How::default().core };
    let (a, b) = (End::open(&hub, How { core, ..How::default() }), End::open(&hub, How::default()));
    let (to_b, _) = join(&[&a, &b], RO);
    hub.stop_clock();
    hub.set_faults(Faults { lost: 1000, ..Faults::default() });
    a.send(to_b, b"waits", 5);
    let ended = (0..600).find_map(|_| {
        hub.advance(Duration::from_secs(1));
        let slot = a.poll()?;
        assert_eq!(slot.kind(), EventKind::Send as u32);
        let ended = (slot.detail(), slot.words()[1]);
        a.give_back(slot);
        Some(ended)
    });
    hub.set_faults(Faults::default());
    (hub, a, b, ended)
}

#[test]
fn a_patient_endpoint_goes_on_after_ten_minutes_of_silence() {
    let (hub, a, b, ended) = silence_of_ten_minutes(true);
    assert_eq!(ended, None);
    hub.advance(Duration::from_secs(1));
    assert!(a.poll().is_none());
    assert_eq!(message(&[&a, &b], 1), b"waits");
    hub.advance(Duration::from_millis(1));
    assert_eq!(outcome(&[&a, &b], 0, EventKind::Send), (Some(Status::Success), 5));
}

#[test]
fn any_other_endpoint_gives_its_peer_up_meanwhile() {
    let (.., ended) = silence_of_ten_minutes(false);
    assert_eq!(ended, Some((Status::TimedOut as u32, 5)));
}
