//! Where interfaces are when nobody says more than the number of a process.

use crate::world::{device, zeroes};
use cci_portals::EventKind::{Ack, SendEnd, SendStart};
use cci_portals::{
    ANY, Descriptor, Error, Interface, Limits, Match, Place, Position, ProcessId, Target, Unlink, options,
};

/// A number that no other test has.
fn number(of: u32) -> u32 {
    (std::process::id() * 31 + of) % 22_000
}

#[test]
fn a_number_that_another_interface_has_is_refused_and_any_other_is_found() {
    for (of, transport) in (0..).step_by(3).zip(["sm", "sock", "tcp", "auto"]) {
        let device = device(transport);
        let place = Place::by_rule(&device, Some(number(of))).expect("it is free");
        let own = place.own();
        assert_eq!((own.nid, own.pid), (0x7f00_0001, number(of)), "{transport}");
        let refused = Place::by_rule(&device, Some(number(of))).expect_err("it is taken");
        assert_eq!(refused.code(), Error::ProcessNumber, "{transport}: {refused}");
        let beyond = Place::by_rule(&device, Some(22_528)).expect_err("there is no such number");
        assert_eq!(beyond.code(), Error::ProcessNumber);
        let others = [(); 2].map(|()| Place::by_rule(&device, None).expect("one is free"));
        assert!(others[0].own() != own && others[0].own() != others[1].own());
    }
}

/// Each finds the other by its number alone.
#[test]
fn interfaces_find_each_other_by_numbers() {
    for (of, transport) in (100..).step_by(3).zip(["sm", "sock", "tcp", "auto"]) {
        let device = device(transport);
        let make = |pid| {
            let place = Place::by_rule(&device, Some(pid)).expect("it is free");
            Interface::new(place, 0, Limits::default()).expect("an interface")
        };
        let sides = [make(number(of)), make(number(of) + 1)];
        let anything = Match { source: ProcessId::ANY, bits: 0, ignore: !0 };
        let entry = sides[1].attach(4, anything, Unlink::Retain, Position::After).expect("room");
        let bits = options::OP_PUT | options::MANAGE_REMOTE;
        sides[1].attach_memory(entry, Descriptor::new(&zeroes(8)).options(bits), Unlink::Retain).expect("room");
        let queue = sides[0].queue(8, false).expect("room");
        let source = sides[0].bind(Descriptor::new(&zeroes(8)).events(queue), Unlink::Retain).expect("room");
        sides[0].put(source, None, true, &Target::at(sides[1].id(), 4)).expect("room");
        // Both wait in threads of their own.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| [(); 3].map(|()| sides[0].wait(queue).expect("an event").0));
            while !waiting.is_finished() {
                sides[1].make_progress(std::time::Duration::from_millis(5)).expect("open");
            }
            let events = waiting.join().expect("no panic");
            assert_eq!(events.map(|event| (event.kind, event.failure)), [(SendStart, 0), (SendEnd, 0), (Ack, 0)]);
        });
        assert_eq!(sides[0].distance(sides[1].id()), Ok(1));
        assert_eq!(sides[0].distance(ProcessId { nid: ANY, pid: 1 }), Err(Error::Process));
    }
}
