//! What every endpoint has whatever its transport: slots, the queue of events, connections.

use cci_mem::guarded::Threading;
use cci_mem::slot::State;
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, EventKind, Failure, OptionError, Status, Unusable};
use cci_transport::{Connection, ConnectionState, Core, CoreOptions, Endpoint, Message, OpenError, Slot, Timeout};
use std::collections::{BTreeSet, HashSet};
use std::io::IoSlice;
use std::mem::offset_of;

const OPTIONS: CoreOptions = CoreOptions { recv_count: 8, send_count: 4, rma_count: 16, ..CoreOptions::DEFAULT };

/// A core without a transport, and its endpoint, which stays closed.
fn core(options: &CoreOptions) -> (Core, &'static Endpoint) {
    let mut core = None;
    let endpoint = Endpoint::open(Threading::Many, |endpoint| {
        core = Core::new(endpoint, options).ok();
        None
    });
    (core.expect("memory for slots"), endpoint.expect("memory for an endpoint"))
}

fn connection(core: &mut Core) -> &'static Connection {
    core.open_connection(Attribute::ReliableOrdered, 7, 1000).expect("memory")
}

/// Takes receive slots, queues them as events and hands them to the program, until none is left.
fn lend_all(core: &mut Core) -> Vec<&'static Slot> {
    let mut lent = Vec::new();
    while let Some(slot) = core.take_recv(|_| ()) {
        core.push(slot);
        lent.extend(core.pop());
    }
    lent
}

#[test]
fn every_sixteenth_call_makes_progress_although_events_wait() {
    let (mut core, _) = core(&CoreOptions { recv_count: 64, ..OPTIONS });
    assert!(core.pop_at_once().is_none(), "no event");
    for _ in 0..64 {
        let slot = core.take_recv(|_| ()).expect("a slot");
        core.push(slot);
    }
    let (mut at_once, mut after_progress) = (0, 0);
    while core.has_event() {
        if core.pop_at_once().is_some() {
            at_once += 1;
        } else {
            assert!(core.wants_progress());
            assert!(core.pop().is_some());
            after_progress += 1;
        }
    }
    assert_eq!((at_once, after_progress), (60, 4));
}

#[test]
fn a_program_that_returns_nothing_gets_as_many_events_as_there_are_slots() {
    let (mut core, endpoint) = core(&OPTIONS);
    assert!(!core.holds_all_recv());
    let lent = lend_all(&mut core);
    assert_eq!(lent.len(), 8);
    assert!(core.holds_all_recv());
    assert!(lent.iter().all(|slot| slot.owner.get().is_some_and(|owner| std::ptr::eq(owner, endpoint))));

    // From another thread, in an order of its own: each comes back once, and may be lent again.
    let mut order = lent.clone();
    order.rotate_left(3);
    let given = std::thread::scope(|scope| scope.spawn(|| order.iter().all(|slot| slot.give_back())).join());
    assert!(given.is_ok_and(|all| all));
    assert!(!core.holds_all_recv());
    let mut released = HashSet::new();
    core.sweep_recv(|slot| assert!(released.insert(slot.index.load(Ordering::Relaxed))));
    while let Some(slot) = core.take_recv(|slot| assert!(released.insert(slot.index.load(Ordering::Relaxed)))) {
        core.release(slot);
        if released.len() == 8 {
            break;
        }
    }
    assert_eq!(released.len(), 8);
    assert_eq!(lend_all(&mut core).len(), 8, "a slot was lost");
}

#[test]
fn the_number_of_slots_can_change_up_to_the_capacity() {
    let (mut core, _) = core(&OPTIONS);
    core.set_recv_count(3).expect("within the capacity");
    assert_eq!(core.recv_count(), (3, 8));
    let lent = lend_all(&mut core);
    assert_eq!(lent.len(), 3);
    for count in [0, 9] {
        assert_eq!(core.set_recv_count(count), Err(OptionError::Range));
    }
    for count in [0, 5] {
        assert_eq!(core.set_send_count(count), Err(OptionError::Range));
    }
    core.set_recv_count(8).expect("the capacity");
    assert_eq!(core.recv_count(), (8, 8));
    assert_eq!(lend_all(&mut core).len(), 5);
    core.set_send_count(1).expect("none is set aside");
    assert_eq!(core.send_count(), (1, 4));
    assert!(core.take_send().is_some() && core.take_send().is_none());
}

/// Takes slots for requests, until none of theirs is left.
fn ask_all(core: &mut Core) -> Vec<&'static Slot> {
    let mut asked = Vec::new();
    while let Some(slot) = core.take_recv_for_request(|_| ()) {
        slot.fill(EventKind::ConnectRequest as u32, 0, [0, 0]);
        core.push(slot);
        asked.extend(core.pop());
    }
    asked
}

/// Gives slots back, as the program does.
fn give_back(slots: Vec<&'static Slot>) {
    slots.into_iter().for_each(|slot| assert!(slot.give_back()));
}

#[test]
fn requests_and_messages_take_no_slots_of_each_other() {
    let (mut core, _) = core(&OPTIONS);
    let message = |core: &mut Core| {
        let slot = core.take_recv(|_| ())?;
        slot.fill(EventKind::Recv as u32, 0, [0, 0]);
        core.push(slot);
        core.pop()
    };
    let all = |core: &mut Core| std::iter::from_fn(|| message(core)).collect::<Vec<_>>();
    for limit in [8, 3] {
        core.set_recv_count(limit).expect("within the capacity");
        let limit = limit as usize;
        let requests = ask_all(&mut core);
        assert_eq!((requests.len(), core.recv_free()), (16, limit));
        let mut messages = all(&mut core);
        assert_eq!((messages.len(), core.recv_free()), (limit, 0));
        // What requests leave is for requests, and what messages leave for messages.
        give_back(requests);
        assert!(message(&mut core).is_none());
        let requests = ask_all(&mut core);
        assert_eq!(requests.len(), 16);
        give_back(messages.split_off(1));
        assert!(core.take_recv_for_request(|_| ()).is_none());
        messages.extend(all(&mut core));
        assert_eq!(messages.len(), limit);
        give_back(messages);
        give_back(requests);
        core.sweep_all_recv(|_| ());
        assert_eq!((core.recv_free(), core.recv_count().0), (limit, limit));
    }
}

#[test]
fn send_and_rma_slots_are_apart() {
    let (mut core, _) = core(&OPTIONS);
    let mut seen = BTreeSet::new();
    while let Some(slot) = core.take_send() {
        assert!(seen.insert(std::ptr::from_ref(slot).addr()), "a slot was taken twice");
    }
    assert_eq!(seen.len(), 4);
    while let Some(slot) = core.take_rma() {
        assert!(seen.insert(std::ptr::from_ref(slot).addr()), "a slot was taken twice");
    }
    assert_eq!(seen.len(), 20);
}

/// Once for each refusal, for slots of sends and of RMAs apart, and only to a program that has the
/// handle.
#[test]
fn room_is_told_to_who_was_refused() {
    let (mut core, endpoint) = core(&OPTIONS);
    let peer = connection(&mut core);
    let listens = || endpoint.starving.load(Ordering::Relaxed);
    let sends: Vec<_> = std::iter::from_fn(|| core.take_send()).collect();
    core.release(sends[0]);
    assert!(!core.has_room_again(), "nobody waits for the handle");
    core.set_handle_in_use();
    assert!(core.take_send().is_some() && core.take_send().is_none());
    assert!(!core.has_room_again() && listens());
    while core.take_rma().is_some() {}
    core.finish(sends[1], peer, 0, Ok(()));
    let event = core.pop().expect("an event");
    assert!(!core.has_room_again(), "the program holds the event");
    assert!(event.give_back());
    assert!(core.has_room_again() && core.has_room_again() && core.tells_room());
    assert!(!listens(), "returns need not call any more");
    assert!(core.take_send().is_some() && core.take_send().is_none());
    assert!(!core.has_room_again(), "refused once more before anybody was told");
    core.release(sends[2]);
    assert!(core.has_room_again());
    core.forget_room();
    assert!(!core.has_room_again() && !core.tells_room());
    core.begin_shortage();
    assert!(!core.has_room_again() && !listens(), "no event that comes back ends this");
    core.end_shortage();
    assert!(core.has_room_again());
    core.forget_room();
    core.end_shortage();
    assert!(!core.has_room_again());
}

#[test]
fn a_program_that_returns_events_as_they_come_uses_one_slot() {
    let (mut core, _) = core(&OPTIONS);
    let peer = connection(&mut core);
    let mut send = || {
        let slot = core.take_send().expect("a send slot");
        core.finish(slot, peer, 0, Ok(()));
        assert!(core.pop().is_some_and(|slot| slot.give_back()));
        std::ptr::from_ref(slot).addr()
    };
    let seen: BTreeSet<_> = (0..100).map(|_| send()).collect();
    assert_eq!(seen.len(), 1);
}

#[test]
fn events_come_in_the_order_of_their_causes() {
    let (mut core, _) = core(&OPTIONS);
    let peer = connection(&mut core);
    let [first, second, third] = std::array::from_fn(|_| core.take_send().expect("a send slot"));
    core.finish(first, peer, 11, Ok(()));
    core.finish_opening(second, EventKind::Connect, 12, Err(Failure::Refused));
    core.finish(third, peer, 13, Err(Failure::NotReady));
    assert!(core.has_event());

    let shown = |slot: &Slot| (slot.kind(), slot.detail(), slot.words());
    let (send, connect) = (EventKind::Send as u32, EventKind::Connect as u32);
    let events: Vec<_> = std::iter::from_fn(|| core.pop()).map(shown).collect();
    let expected = [
        (send, Status::Success as u32, [peer.address(), 11]),
        (connect, Status::ConnRefused as u32, [12, 0]),
        (send, Status::Rnr as u32, [peer.address(), 13]),
    ];
    assert_eq!(events, expected);
    assert!(!core.has_event());
    assert!([first, second, third].iter().all(|slot| slot.state() == State::Borrowed && slot.give_back()));

    let opened = core.take_send().expect("a send slot");
    core.finish_opening(opened, EventKind::Accept, 14, Ok(peer));
    assert_eq!(core.pop().map(shown), Some((EventKind::Accept as u32, 0, [14, peer.address()])));
    assert!(opened.connection.get().is_some_and(|found| std::ptr::eq(found, peer)));
}

#[test]
fn the_reason_of_a_failed_connect_is_not_the_next_ones() {
    let (mut core, _) = core(&OPTIONS);
    let slot = core.take_send().expect("a send slot");
    core.finish_opening(slot, EventKind::Connect, 1, Err(Failure::Refused));
    assert_eq!(core.reason(slot), None);
    core.explain(slot, "for a reason".into());
    assert_eq!(core.reason(slot), Some("for a reason"));
    assert!(core.pop().is_some_and(|slot| slot.give_back()));
    core.finish_opening(slot, EventKind::Connect, 2, Err(Failure::TimedOut));
    assert_eq!(core.reason(slot), None, "the reason of the one before");
}

#[test]
fn an_operation_that_is_waited_for_raises_no_event() {
    let (mut core, _) = core(&OPTIONS);
    let slot = core.take_rma().expect("an RMA slot");
    core.finish_waited(slot, Err(Failure::RemoteHandle));
    assert!(!core.has_event());
    assert_eq!((slot.state(), slot.detail()), (State::Ended, Status::RmaHandle as u32));
    assert!(!slot.give_back(), "it was never the program's");
    core.release(slot);
    assert_eq!((0..16).filter_map(|_| core.take_rma()).count(), 16, "the slot was lost");
}

#[test]
fn who_sleeps_for_an_operation_is_woken_by_its_end_and_by_no_other() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let is_readable = |waker: &std::os::fd::OwnedFd| {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(waker, PollFlags::IN)], Some(&now)) == Ok(1)
    };
    let (mut core, _) = core(&OPTIONS);
    let slots = [core.take_send(), core.take_rma()].map(|slot| slot.expect("a slot"));
    let wakers = slots.map(|slot| core.fall_asleep(slot).expect("a descriptor"));
    core.finish_waited(slots[1], Ok(()));
    assert_eq!([&wakers[0], &wakers[1]].map(|waker| is_readable(waker)), [false, true]);
    // A waker is used again, drained, whether it was written or not.
    let [first, second] = wakers;
    core.wake_up(slots[1], second);
    core.wake_up(slots[0], first);
    let wakers = slots.map(|slot| core.fall_asleep(slot).expect("a descriptor"));
    assert_eq!([&wakers[0], &wakers[1]].map(|waker| is_readable(waker)), [false; 2]);
    core.finish_waited(slots[0], Ok(()));
    assert_eq!([&wakers[0], &wakers[1]].map(|waker| is_readable(waker)), [true, false]);
}

#[test]
fn a_notice_without_a_slot_is_to_be_tried_again() {
    let (mut core, _) = core(&OPTIONS);
    let peer = connection(&mut core);
    let held: Vec<_> = std::iter::from_fn(|| core.take_send()).collect();
    assert!(!core.notify(EventKind::KeepaliveTimedOut, peer));
    assert!(!core.has_event());
    core.release(held[2]);
    assert!(core.notify(EventKind::KeepaliveTimedOut, peer));
    let event = core.pop().map(|slot| (slot.kind(), slot.words()[0]));
    assert_eq!(event, Some((EventKind::KeepaliveTimedOut as u32, peer.address())));
}

#[test]
fn a_connection_lives_once_per_generation() {
    let (mut core, endpoint) = core(&OPTIONS);
    core.set_send_timeout(Timeout::from_micros(5));
    core.set_keepalive(Timeout::from_micros(6));
    let peer = connection(&mut core);
    let generation = peer.generation();
    assert_eq!((peer.state(), peer.attribute()), (ConnectionState::Opening, Attribute::ReliableOrdered));
    assert_eq!(peer.context.load(Ordering::Relaxed), 7);
    assert_eq!(peer.max_send_size.load(Ordering::Relaxed), 1000);
    assert_eq!((peer.send_timeout.load(Ordering::Relaxed), peer.keepalive.load(Ordering::Relaxed)), (5, 6));
    assert!(peer.endpoint.get().is_some_and(|owner| std::ptr::eq(owner, endpoint)));
    peer.counters.on_sent();
    peer.counters.on_rma(1 << 40);

    core.end_connection(peer);
    core.end_connection(peer);
    assert_eq!((peer.state(), peer.generation()), (ConnectionState::Free, generation.wrapping_add(1)), "ended once");
    assert_eq!(core.connection_count(), 0);
    assert_eq!(peer.context.load(Ordering::Relaxed), 7, "the public part stays readable");
    assert_eq!(peer.counters.rma_bytes.load(Ordering::Relaxed), 1 << 40);

    let others: Vec<_> = (0..64).map(|_| connection(&mut core)).collect();
    assert!(others.iter().all(|other| !std::ptr::eq(*other, peer)), "a stale handle would mean another connection");
    assert!(others.iter().all(|other| other.counters.sent.load(Ordering::Relaxed) == 0));
    drop(core);
    assert!(others.iter().all(|other| other.state() == ConnectionState::Free), "ended with their endpoint");
}

#[test]
fn an_endpoint_without_a_body_is_closed() {
    let endpoint = Endpoint::open(Threading::Many, |_| None).expect("memory");
    assert!(endpoint.is_here());
    assert_eq!(endpoint.with(|_, _| ()), Err(Unusable::Closed));
    let generation = endpoint.generation();
    assert_eq!(endpoint.close().err(), Some(Unusable::Closed));
    assert_eq!(endpoint.generation(), generation, "only a life that was lived counts");
    endpoint.recycle();
    assert_eq!(endpoint.with(|_, _| ()), Err(Unusable::Closed), "a stale handle is refused");
}

#[test]
fn the_public_parts_are_where_programs_read_them() {
    assert_eq!(offset_of!(Endpoint, device), 0);
    assert_eq!(offset_of!(Connection, max_send_size), 0);
    assert_eq!(offset_of!(Connection, endpoint), 8);
    assert_eq!(offset_of!(Connection, context), 24);
    let connection = Connection::default();
    assert_eq!(connection.state(), ConnectionState::Free);
}

#[test]
fn a_message_in_pieces_is_the_message_in_one() {
    let bytes: Vec<u8> = (0..100).collect();
    let parts = [&bytes[..0], &bytes[..1], &bytes[1..60], &[], &bytes[60..]].map(IoSlice::new);
    for message in [Message::from(&bytes[..]), Message::from(&parts[..])] {
        let mut target = vec![0xaa; 104];
        message.copy_to(&mut target);
        assert_eq!((&target[..100], &target[100..]), (&bytes[..], &[0xaa; 4][..]));
        assert_eq!((message.len(), message.is_empty()), (100, false));
    }
    let no_parts: [IoSlice<'_>; 0] = [];
    assert!(Message::from(&[][..] as &[u8]).is_empty() && Message::from(&no_parts[..]).is_empty());
}

#[test]
fn an_error_of_the_system_keeps_its_cause_and_gets_a_status() {
    use std::error::Error;
    let statuses = [
        (errno::EADDRINUSE, Status::AddrNotAvail),
        (errno::EADDRNOTAVAIL, Status::AddrNotAvail),
        (errno::ENOMEM, Status::NoMem),
        (errno::EMFILE, Status::NoMem),
        (errno::ENFILE, Status::NoMem),
        (errno::ENOSPC, Status::NoMem),
        (errno::EINVAL, Status::Inval),
        (errno::EIO, Status::Error),
    ];
    for (number, status) in statuses {
        let error = OpenError::system("cannot open", std::io::Error::from_raw_os_error(number));
        assert_eq!(error.status, status, "{error}");
        assert!(error.source().is_some() && error.to_string().starts_with("cannot open: "), "{error}");
    }
    let remedy = |number| {
        let error = OpenError::system("cannot open", std::io::Error::from_raw_os_error(number));
        error.to_string().ends_with("; raise the limit of descriptors (ulimit -n), or close endpoints")
    };
    assert_eq!([errno::EMFILE, errno::ENFILE].map(remedy), [true, false]);
    let plain = OpenError::new(Status::NoDev, "no such device");
    assert!(plain.source().is_none());
    assert_eq!(plain.to_string(), "no such device");
}

/// Numbers of Linux.
mod errno {
    pub(crate) const EIO: i32 = 5;
    pub(crate) const ENOMEM: i32 = 12;
    pub(crate) const EINVAL: i32 = 22;
    pub(crate) const ENFILE: i32 = 23;
    pub(crate) const EMFILE: i32 = 24;
    pub(crate) const ENOSPC: i32 = 28;
    pub(crate) const EADDRINUSE: i32 = 98;
    pub(crate) const EADDRNOTAVAIL: i32 = 99;
}

/// One look tells whether the connection is open and whether the message is short enough.
#[test]
fn a_connection_takes_messages_up_to_its_largest_and_only_while_it_is_open() {
    let (mut core, _) = core(&OPTIONS);
    let cell = connection(&mut core);
    let states = [ConnectionState::Opening, ConnectionState::Open, ConnectionState::Broken, ConnectionState::Free];
    for max in [0, 1, 3, 1000, u32::MAX] {
        cell.max_send_size.store(max, Ordering::Relaxed);
        for state in states {
            cell.set_state(state);
            assert_eq!(cell.state(), state);
            let (open, max) = (state == ConnectionState::Open, max.min(u32::MAX - 4) as usize);
            assert_eq!((cell.takes(0), cell.takes(max), cell.takes(max + 1)), (open, open, false), "{state:?} {max}");
        }
    }
}
