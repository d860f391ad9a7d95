//! Grants with peers that are asked to give them back.

use super::rma::FIRST;
use crate::fixture::{End, Frame, LIMIT, OPTIONS, Script, heap};
use crate::frame::{Fields, Kind, Target, WANT};
use cci_proto::{Access, Attribute, EventKind, Rights};
use cci_transport::{CoreOptions, PollSet, Transport};
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// An endpoint with so few receive slots.
fn with_slots(recv_count: usize) -> End {
    End::with(&[], CoreOptions { recv_count, ..OPTIONS })
}

fn kinds(frames: &[Frame]) -> Vec<Kind> {
    frames.iter().map(|(header, _)| header.kind).collect()
}

/// The last limit in these frames.
fn limit(frames: &[Frame]) -> Option<u32> {
    let grants = frames.iter().filter(|(header, _)| header.kind == Kind::Grant);
    grants.map(|(_, body)| Fields(body).u32()).next_back()
}

/// Sends as many messages as there are grants; the program keeps their events. How many.
fn use_all(end: &mut End, script: &mut Script) -> u32 {
    let mut sent = 0;
    loop {
        let frames = script.frames(end, 20);
        let most = limit(&frames).unwrap_or(sent);
        if most == sent {
            return sent;
        }
        for _ in sent..most {
            script.put(end, Kind::Message, 0, script.connection, &[b"kept"]);
            assert_eq!(end.next(EventKind::Recv).kind(), EventKind::Recv as u32);
        }
        sent = most;
    }
}

/// An endpoint with six slots; a lane with four grants that it was asked to give back; and a lane
/// that wants some and has none.
fn recalled() -> (End, Script, Script, &'static cci_transport::Connection) {
    let mut end = with_slots(6);
    let (mut first, cell) = Script::connect(&mut end);
    assert_eq!(limit(&first.frames(&mut end, 20)), Some(4));
    let (mut second, _) = Script::connect(&mut end);
    assert_eq!(use_all(&mut end, &mut second), 2, "the other four are the first one's");
    second.put(&mut end, Kind::Grant, WANT, 0, &[&[0; 4]]);
    let frames = first.frames(&mut end, 20);
    assert_eq!(kinds(&frames), [Kind::Recall]);
    (end, first, second, cell)
}

#[test]
fn nothing_revives_grants_that_a_peer_is_asked_for() {
    let (mut end, mut first, mut second, cell) = recalled();
    // It had its grant when it sent this, and learns that it was taken.
    first.put(&mut end, Kind::Message, 0, first.connection, &[b"crosses"]);
    assert_eq!(end.next(EventKind::Recv).kind(), EventKind::Recv as u32);
    let frames = first.frames(&mut end, 20);
    assert_eq!(kinds(&frames), [Kind::Pong]);
    assert_eq!(frames[0].0.taken, 1);
    // A wish for grants says nothing of limits either.
    end.send(cell, b"waits", 1);
    let frames = first.frames(&mut end, 20);
    assert_eq!(kinds(&frames), [Kind::Pong]);
    assert_eq!(frames[0].0.flags, WANT);
    first.put(&mut end, Kind::Return, 0, 0, &[&1_u32.to_le_bytes()]);
    end.calls(20);
    assert_eq!(end.tcp.shared.malformed, 0);
    assert!(limit(&second.frames(&mut end, 20)).is_some_and(|limit| limit > 2), "who waits gets what came back");
}

#[test]
fn a_wish_for_grants_that_crosses_their_recall_is_kept() {
    let (mut end, mut first, _second, _) = recalled();
    first.put(&mut end, Kind::Grant, WANT, 0, &[&[0; 4]]);
    first.put(&mut end, Kind::Return, 0, 0, &[&[0; 4]]);
    let frames = first.frames(&mut end, 20);
    assert!(limit(&frames).is_some_and(|limit| limit > 0), "{:?}", kinds(&frames));
}

#[test]
fn a_wish_for_grants_may_travel_on_a_pong() {
    let mut end = with_slots(6);
    let (mut script, _) = Script::connect(&mut end);
    let mut held = Vec::new();
    let mut sent = 0;
    while let Some(most) = limit(&script.frames(&mut end, 20)).filter(|most| *most > sent) {
        for _ in sent..most {
            script.put(&mut end, Kind::Message, 0, script.connection, &[b"kept"]);
            held.push(end.next(EventKind::Recv));
        }
        sent = most;
    }
    assert_eq!(sent, 6, "every slot is taken");
    script.put(&mut end, Kind::Pong, WANT, 0, &[]);
    script.frames(&mut end, 20);
    for slot in held {
        assert!(slot.give_back());
    }
    assert!(end.core.is_starving(), "the return of an event calls the endpoint");
    end.tcp.refill(&mut end.core);
    let frames = script.frames(&mut end, 20);
    assert!(limit(&frames).is_some_and(|limit| limit > sent), "{:?}", kinds(&frames));
}

/// Whether the handle of an armed endpoint becomes readable within this time.
fn wakes(end: &mut End, limit: Duration) -> bool {
    end.core.set_handle_in_use();
    let is_armed = end.tcp.arm(&mut end.core);
    let limit = Timespec::try_from(limit).expect("short");
    !is_armed || poll(&mut [PollFd::new(&end.tcp.handle(), PollFlags::IN)], Some(&limit)) == Ok(1)
}

const SHORT: Duration = Duration::from_millis(200);

/// What the stream makes the handle readable for.
fn flags(end: &End) -> Option<EventFlags> {
    let key = end.tcp.lanes.iter().flatten().next().expect("a lane").key();
    let mut events = [PollSet::NO_EVENT; 8];
    let count = end.tcp.shared.set.ready(&mut events).expect("descriptors");
    events[..count].iter().find(|event| event.data.u64() == key).map(|event| event.flags)
}

/// The stream makes the handle readable once its peer reads. Timers do so too, in time.
fn wakes_for_room(end: &mut End, script: &mut Script) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < LIMIT, "a sleeper is not told of room in the stream");
        script.read();
        if let Some(flags) = flags(end) {
            return assert!(flags.contains(EventFlags::OUT) && !flags.contains(EventFlags::IN), "{flags:?}");
        }
    }
}

/// A lane whose messages wait for slots: the program has lowered their number since.
fn stall(end: &mut End, script: &mut Script) {
    end.core.set_recv_count(1).expect("fewer");
    for _ in 0..3 {
        script.put(end, Kind::Message, 0, script.connection, &[b"stalled"]);
    }
    assert_eq!(end.next(EventKind::Recv).kind(), EventKind::Recv as u32);
    end.calls(20);
}

#[test]
fn a_lane_whose_messages_wait_sends_what_its_peer_reads() {
    let (mut end, mut script, _) = Script::connected();
    let memory = heap(1, 32 << 20);
    let [index, secret, ..] = end.register(&memory, Rights::READ).words();
    let target = Target { operation: 1 << 16, handle: [index, secret], offset: 0, total: 32 << 20 };
    script.put(&mut end, Kind::Read, 0, script.connection, &[&target.emit()]);
    end.calls(20);
    stall(&mut end, &mut script);
    assert!(!wakes(&mut end, SHORT), "nothing can be done");
    wakes_for_room(&mut end, &mut script);
}

#[test]
fn a_lane_whose_messages_wait_wakes_nobody() {
    let (mut end, mut script, cell) = Script::connected();
    stall(&mut end, &mut script);
    let memory = heap(1, 32 << 20);
    let local = end.register(&memory, Rights::NONE);
    // It lies in the stream unread.
    script.put(&mut end, Kind::Ping, 0, 0, &[]);
    end.rma(cell, &local, 32 << 20, (Access::Write, false));
    assert_eq!(flags(&end), None, "bytes that are not read wake the program");
    end.calls(20);
    assert!(!wakes(&mut end, SHORT), "bytes that are not read wake the program again and again");
    wakes_for_room(&mut end, &mut script);
}

/// A lane alone gets many grants at a time; where there are many lanes, each gets its share, so
/// that a burst of one does not hold the others up.
#[test]
fn lanes_share_the_slots() {
    for (others, most) in [(0, 128), (7, 16), (60, 4)] {
        let mut end = with_slots(512);
        let (mut script, _) = Script::connect(&mut end);
        let _others: Vec<_> = (0..others).map(|_| Script::connect(&mut end)).collect();
        let (mut sent, mut largest) = (0, 0);
        for _ in 0..20 {
            let granted = limit(&script.frames(&mut end, 20)).unwrap_or(sent);
            largest = largest.max(granted - sent);
            for _ in sent..granted {
                script.put(&mut end, Kind::Message, 0, script.connection, &[b"returned"]);
                assert!(end.next(EventKind::Recv).give_back());
            }
            sent = granted;
        }
        assert_eq!(largest, most, "beside {others} others");
    }
}

/// While the program has events to take, slots are not handed out one at a time.
#[test]
fn lanes_that_wait_get_several_grants_at_once() {
    let mut end = with_slots(64);
    let mut scripts: Vec<_> = (0..4).map(|_| Script::connect(&mut end).0).collect();
    let mut sent = vec![0; scripts.len()];
    // Sends what a lane has grants for. How many.
    let fill = |end: &mut End, (script, sent): (&mut Script, &mut u32)| {
        for _ in 0..20 {
            end.tcp.progress(&mut end.core);
        }
        let frames: Vec<_> = std::iter::from_fn(|| script.poll()).collect();
        let before = *sent;
        for _ in before..limit(&frames).unwrap_or(before) {
            script.put(end, Kind::Message, 0, script.connection, &[b"waits"]);
            *sent += 1;
        }
        *sent - before
    };
    while scripts.iter_mut().zip(&mut sent).map(|lane| fill(&mut end, lane)).sum::<u32>() > 0 {}
    // The last slots are for lanes that ask.
    scripts[1].put(&mut end, Kind::Grant, WANT, 0, &[&[0; 4]]);
    assert_eq!(fill(&mut end, (&mut scripts[1], &mut sent[1])), 4);
    for _ in 0..20 {
        end.tcp.progress(&mut end.core);
    }
    // Every slot has an event that the program has not taken.
    end.tcp.shared.inbox.sweep(&mut end.core);
    assert_eq!(end.core.recv_free(), 0);
    scripts[0].put(&mut end, Kind::Grant, WANT, 0, &[&[0; 4]]);
    for _ in 0..20 {
        end.tcp.progress(&mut end.core);
    }
    for taken in 1..=8 {
        assert!(end.core.pop().expect("an event").give_back());
        for _ in 0..20 {
            end.tcp.progress(&mut end.core);
        }
        let frames: Vec<_> = std::iter::from_fn(|| scripts[0].poll()).collect();
        if let Some(granted) = limit(&frames).filter(|limit| *limit > sent[0]) {
            // The second lane, which has asked before, waits too.
            assert_eq!((taken, granted - sent[0]), (8, 4));
            return;
        }
    }
    panic!("no grants");
}

/// The program has lowered the number of its receive buffers to what was granted already: unused
/// grants are asked back for a large message.
#[test]
fn grants_are_asked_back_for_what_needs_a_slot_of_its_own() {
    let mut end = End::with(&[], CoreOptions { recv_count: 16, ..OPTIONS });
    let (mut script, _) = Script::connect(&mut end);
    end.calls(10);
    end.core.set_recv_count(4).expect("a number");
    end.core.landings().set_limit(1 << 20);
    let (number, len) = (u64::from(FIRST).to_le_bytes(), 10_000_u64.to_le_bytes());
    script.put(&mut end, Kind::Large, 0, script.connection, &[&number, &len]);
    script.find(&mut end, Kind::Recall);
    script.put(&mut end, Kind::Return, 0, 0, &[&0_u32.to_le_bytes()]);
    script.find(&mut end, Kind::Landing);
}

/// Requests have slots of their own.
#[test]
fn a_request_is_delivered_though_every_slot_is_granted() {
    let mut end = End::with(&[], CoreOptions { recv_count: 16, ..OPTIONS });
    let (mut script, _) = Script::connect(&mut end);
    end.calls(10);
    end.core.set_recv_count(4).expect("a number");
    script.ask(&mut end, Attribute::ReliableOrdered, b"");
    end.next(EventKind::ConnectRequest);
}

/// Peers that never call again answer no RECALL: they hold no slot that requests need, nor those
/// that other peers ask for.
#[test]
fn peers_that_are_silent_leave_slots_to_others() {
    const SLOTS: usize = 16;
    let mut end = with_slots(SLOTS);
    let silent: Vec<_> = (0..SLOTS).map(|_| Script::connect(&mut end)).collect();
    let spare = |end: &mut End| {
        end.tcp.shared.inbox.sweep(&mut end.core);
        end.tcp.shared.inbox.spare(&mut end.core)
    };
    assert!(spare(&mut end) >= SLOTS / 8);
    // Those that have sent something keep no more of the last slots than they use.
    let spoke: Vec<_> = (0..SLOTS)
        .map(|_| {
            let (mut script, cell) = Script::connect(&mut end);
            if limit(&script.frames(&mut end, 20)).is_none() {
                script.put(&mut end, Kind::Grant, WANT, 0, &[&[0; 4]]);
                assert!(limit(&script.frames(&mut end, 20)).is_some(), "who asks gets a grant");
            }
            script.put(&mut end, Kind::Message, 0, script.connection, &[b"one"]);
            assert!(end.next(EventKind::Recv).give_back());
            (script, cell)
        })
        .collect();
    let (mut last, _) = Script::connect(&mut end);
    last.put(&mut end, Kind::Grant, WANT, 0, &[&[0; 4]]);
    assert!(limit(&last.frames(&mut end, 20)).is_some());
    drop((silent, spoke));
}
