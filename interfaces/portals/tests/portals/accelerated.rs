//! Interfaces whose progress is an engine's.

use crate::world::{PUT, anything, bytes, device, other, pattern, put, two_modes, zeroes};
use cci_portals::{Descriptor, Error, EventKind, Unlink, buffer};
use cci_testkit::LIMIT;
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
