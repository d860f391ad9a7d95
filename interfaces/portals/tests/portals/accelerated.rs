//! Interfaces whose progress is an engine's.

use crate::world::{PUT, Side, anything, bytes, device, id, other, pattern, put, two_modes, zeroes};
use cci_conformance::LIMIT;
use cci_portals::{Descriptor, Error, EventKind, Handle, Target, Unlink, buffer, options};
use std::time::Instant;

const TRANSPORTS: [&str; 3] = ["sm", "sock", "tcp"];
/// Short, and longer than any message.
const SIZES: [usize; 3] = [8, 5_000, 300_000];

/// Waits for an event of side 0, and makes no call of side 1.
fn wait(sides: &[crate::world::Side], kind: EventKind) -> cci_portals::Event {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < LIMIT, "waited in vain for {kind:?}");
        if let Some(event) = sides[0].event()
            && event.kind == kind
        {
            return event;
        }
    }
}

#[test]
fn a_put_ends_at_a_target_that_makes_no_calls() {
    for transport in TRANSPORTS {
        for has_engine in [false, true] {
            let sides = two_modes(&device(transport), [has_engine, true]);
            for size in SIZES {
                let memory = zeroes(size);
                let (entry, descriptor) = sides[1].post(anything(), &memory, PUT);
                let sent = pattern(size, 3);
                let source = sides[0].bind(&buffer(sent.clone()));
                sides[0].ni.put(source, None, true, &other(1)).expect("room");
                let ack = wait(&sides, EventKind::Ack);
                assert_eq!((ack.failure, ack.mlength, bytes(&memory) == sent), (0, size as u64, true), "{transport}");
                // Its events are there.
                let kinds = [sides[1].event(), sides[1].event()].map(|event| event.map(|event| event.kind));
                assert_eq!(kinds, [Some(EventKind::PutStart), Some(EventKind::PutEnd)], "{transport}");
                sides[1].ni.unlink_memory(descriptor).expect("nothing is pending");
                sides[1].ni.unlink_entry(entry).expect("nothing is pending");
            }
        }
    }
}

#[test]
fn an_engine_serves_a_put_to_its_own_process() {
    let sides = two_modes(&device("sm"), [true, true]);
    let memory = zeroes(8);
    sides[0].post(anything(), &memory, PUT);
    let ended = put(&sides, 0, b"to self!", &other(0));
    wait(&sides, EventKind::PutEnd);
    assert_eq!((ended.failure, bytes(&memory)), (0, b"to self!".to_vec()));
}

/// The program sleeps, and the engine wakes it.
#[test]
fn a_wait_ends_with_an_event_and_with_the_interface() {
    let sides = two_modes(&device("sm"), [false, true]);
    let (here, there) = (&sides[0], &sides[1]);
    there.post(anything(), &zeroes(8), PUT);
    let (sender, seen) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..3 {
                let event = there.ni.wait(there.queue).map(|(event, _)| event.kind);
                sender.send(event).expect("somebody reads it");
            }
        });
        let source = here.ni.bind(Descriptor::new(&zeroes(8)).events(here.queue), Unlink::Retain).expect("room");
        here.ni.put(source, None, true, &other(1)).expect("room");
        wait(&sides, EventKind::Ack);
        let next = || seen.recv_timeout(LIMIT).expect("the wait ends");
        assert_eq!([next(), next()], [Ok(EventKind::PutStart), Ok(EventKind::PutEnd)]);
        there.ni.close().expect("it is open");
        assert_eq!(next(), Err(Error::Network));
    });
}

/// Commands that are on their way count for the calls behind them.
#[test]
fn a_call_with_a_result_follows_the_puts_before_it() {
    for transport in ["sm", "tcp"] {
        let sides = two_modes(&device(transport), [true, true]);
        sides[1].post(anything(), &zeroes(8), PUT | options::MANAGE_REMOTE);
        for round in 0..2_000 {
            let source = sides[0].bind(&zeroes(8));
            sides[0].ni.put(source, None, false, &other(1)).expect("room");
            let begun = Instant::now();
            while let Err(why) = sides[0].ni.unlink_memory(source) {
                assert_eq!(why, Error::MemoryInUse, "{transport}, {round}");
                assert!(begun.elapsed() < LIMIT, "its end cannot be seen");
            }
            // Not pending, so its events are there; gone, so that the next call names nothing.
            let kinds = [(); 2].map(|()| sides[0].event().map(|event| event.kind));
            assert_eq!(kinds, [Some(EventKind::SendStart), Some(EventKind::SendEnd)], "{transport}, {round}");
            assert_eq!(sides[0].ni.put(source, None, false, &other(1)), Err(Error::Memory));
        }
    }
}

/// More puts than the ring of commands has lines, by two threads that poll nothing meanwhile.
#[test]
fn puts_of_each_thread_come_once_and_in_order() {
    const PUTS: u64 = 3_000;
    let sides = two_modes(&device("sm"), [true, true]);
    let long = sides[1].ni.queue(4 * PUTS, false).expect("room");
    let entry = sides[1].ni.attach(4, anything(), Unlink::Retain, cci_portals::Position::After).expect("room");
    let memory = Descriptor::new(&zeroes(8)).options(PUT | options::MANAGE_REMOTE | options::EVENT_START_DISABLE);
    sides[1].ni.attach_memory(entry, memory.events(long), Unlink::Retain).expect("room");
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let Side { ni, .. } = &sides[0];
            scope.spawn(move || {
                let source = ni.bind(Descriptor::new(&zeroes(8)), Unlink::Retain).expect("room");
                for number in 0..PUTS {
                    let to = Target { header: thread << 32 | number, ..other(1) };
                    ni.put(source, None, false, &to).expect("room");
                }
            });
        }
    });
    let mut next = [0, 0];
    for _ in 0..2 * PUTS {
        let (_, event, is_lost) = sides[1].ni.poll(&[long], Some(LIMIT)).expect("each comes");
        let (thread, number) = ((event.header >> 32) as usize, event.header & u64::from(u32::MAX));
        assert_eq!((number, is_lost), (next[thread], false));
        next[thread] += 1;
    }
    assert_eq!((next, sides[1].ni.event(long)), ([PUTS; 2], Err(Error::QueueEmpty)));
}

#[test]
fn calls_return_the_codes_that_the_engine_would() {
    let sides = two_modes(&device("sm"), [true, false]);
    let ni = &sides[0].ni;
    let source = sides[0].bind(&zeroes(8));
    let to = other(1);
    for region in [(0, 9), (8, 1), (u64::MAX, 2), (9, 0)] {
        assert_eq!(ni.put(source, Some(region), false, &to), Err(Error::IllegalMemory), "{region:?}");
        assert_eq!(ni.get(source, Some(region), &to), Err(Error::IllegalMemory), "{region:?}");
    }
    assert_eq!(ni.put(source, None, false, &Target { portal: 1 << 16, ..to }), Err(Error::PortalIndex));
    assert_eq!(ni.get(source, None, &Target { access: 1 << 16, ..to }), Err(Error::AccessIndex));
    // Shorter, then inactive, then steady again.
    let new = |len| Descriptor::new(&zeroes(len));
    ni.update(source, Some(new(4)), Handle::NO_QUEUE).expect("nothing is tested");
    assert_eq!(ni.put(source, Some((0, 8)), false, &to), Err(Error::IllegalMemory));
    ni.update(source, Some(new(4).threshold(0)), Handle::NO_QUEUE).expect("nothing is tested");
    assert_eq!(ni.put(source, None, false, &to), Err(Error::Memory));
    ni.update(source, Some(new(4)), Handle::NO_QUEUE).expect("nothing is tested");
    // Nobody is there: operations stay open, all that there may be.
    let absent = Target::at(id(7), 4);
    let begun = (0..100_000).find(|_| ni.get(source, None, &absent) != Ok(()));
    assert_eq!((begun, ni.put(source, None, false, &absent)), (Some(65_536), Err(Error::NoSpace)));
    // A descriptor that its entry takes along.
    let (entry, memory) = sides[0].post_descriptor(anything(), new(8), Unlink::Unlink);
    ni.unlink_entry(entry).expect("nothing is pending");
    assert_eq!(ni.put(memory, None, false, &to), Err(Error::Memory));
    ni.close().expect("it is open");
    assert_eq!(
        (ni.put(source, None, false, &to), ni.event(sides[0].queue)),
        (Err(Error::Network), Err(Error::Network))
    );
}

#[test]
fn a_queue_that_an_engine_fills_keeps_the_newest() {
    let sides = two_modes(&device("sm"), [true, true]);
    // Rounded up to 8.
    let queue = sides[1].ni.queue(5, false).expect("room");
    let (_, target) = sides[1].post(anything(), &zeroes(8), PUT | options::MANAGE_REMOTE);
    let new = Descriptor::new(&zeroes(8)).options(PUT | options::MANAGE_REMOTE | options::EVENT_START_DISABLE);
    sides[1].ni.update(target, Some(new.events(queue)), Handle::NO_QUEUE).expect("nothing is tested");
    let source = sides[0].bind(&zeroes(8));
    for header in 0..11 {
        sides[0].ni.put(source, None, true, &Target { header, ..other(1) }).expect("room");
        wait(&sides, EventKind::Ack);
    }
    let read = || sides[1].ni.event(queue).map(|(event, is_lost)| (event.header, is_lost));
    assert_eq!(read(), Ok((3, true)));
    assert!((4..11).all(|header| read() == Ok((header, false))));
    assert_eq!(read(), Err(Error::QueueEmpty));
}

/// A call with a result is behind those before it, which the engine may still have to follow.
#[test]
fn a_job_that_is_set_later_is_not_that_of_earlier_puts() {
    let sides = two_modes(&device("sm"), [true, true]);
    let source = sides[0].bind(&zeroes(8));
    for round in 1..=300_u32 {
        let own = sides[0].ni.identity().1;
        for _ in 0..3 {
            sides[0].ni.put(source, None, false, &other(1)).expect("room");
        }
        sides[0].ni.set_job(round);
        for _ in 0..3 {
            assert_eq!(wait(&sides, EventKind::SendEnd).jid, own, "round {round}");
        }
    }
}

#[test]
fn the_last_portal_index_is_not_any_in_either_mode() {
    for has_engine in [false, true] {
        let sides = two_modes(&device("sm"), [has_engine, false]);
        let source = sides[0].bind(&zeroes(8));
        sides[0].ni.put(source, None, false, &Target { portal: 65_535, ..other(1) }).expect("room");
        assert_eq!(wait(&sides, EventKind::SendStart).portal, 65_535);
    }
}
