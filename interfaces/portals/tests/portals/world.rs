//! Interfaces of one process, driven by one thread.

pub(crate) use cci_conformance::local_device as device;

use cci::{Device, Endpoint, Memory};
use cci_conformance::LIMIT;
use cci_peers::{Name, Table};
use cci_portals::{
    Descriptor, Error, Event, EventKind, Handle, Interface, Limits, Match, Place, Position, ProcessId, Target, Unlink,
    buffer, endpoint_options, options,
};
use std::time::Instant;

/// The transports that tests run over.
pub(crate) const TRANSPORTS: [&str; 4] = ["sm", "sim", "sock", "tcp"];

pub(crate) fn id(number: u32) -> ProcessId {
    ProcessId { nid: 9, pid: number }
}

/// An interface with a queue that is long enough.
pub(crate) struct Side {
    pub(crate) ni: Interface,
    pub(crate) queue: Handle,
}

pub(crate) fn side(endpoint: Endpoint, number: u32, table: &Table, limits: Limits) -> Side {
    let place = Place::of(endpoint, id(number), Box::new(table.clone()));
    of(Interface::new(place, 0, limits).expect("an interface"))
}

fn of(ni: Interface) -> Side {
    let queue = ni.queue(1024, false).expect("a queue");
    Side { ni, queue }
}

/// Sides 0 and 1 that know each other, made of their endpoints.
fn two_of(device: &Device, side: impl Fn(Endpoint, u32, &Table) -> Side) -> Vec<Side> {
    let open = || Endpoint::open(device, &endpoint_options()).expect("an endpoint");
    let ends = [open(), open()];
    let mut table = Table::new();
    (0..).zip(&ends).for_each(|(number, end)| table.insert(Name::Number(9 << 32 | number), end.uri()));
    (0..).zip(ends).map(|(number, end)| side(end, number, &table)).collect()
}

pub(crate) fn two_with(device: &Device, limits: Limits) -> Vec<Side> {
    two_of(device, |end, number, table| side(end, number, table, limits))
}

/// A side that knows those in the table, with or without an engine.
pub(crate) fn side_of_mode(endpoint: Endpoint, number: u32, table: &Table, has_engine: bool) -> Side {
    let place = Place::of(endpoint, id(number), Box::new(table.clone()));
    let open = if has_engine { Interface::accelerated } else { Interface::new };
    of(open(place, 0, Limits::default()).expect("an interface"))
}

/// Sides 0 and 1; those named have an engine.
pub(crate) fn two_modes(device: &Device, has_engine: [bool; 2]) -> Vec<Side> {
    two_of(device, |end, number, table| side_of_mode(end, number, table, has_engine[number as usize]))
}

pub(crate) fn two(transport: &str) -> Vec<Side> {
    two_with(&device(transport), Limits::default())
}

/// Closes all at once: the time of a virtual network stands still while its ends do not poll.
pub(crate) fn close(sides: Vec<Side>) {
    std::thread::scope(|scope| sides.into_iter().for_each(|side| drop(scope.spawn(|| drop(side)))));
}

pub(crate) fn anything() -> Match {
    Match { source: ProcessId::ANY, bits: 0, ignore: !0 }
}

pub(crate) fn bits(bits: u64) -> Match {
    Match { source: ProcessId::ANY, bits, ignore: 0 }
}

/// The other side of two.
pub(crate) fn other(number: u32) -> Target {
    Target::at(id(number), 4)
}

impl Side {
    /// An entry at the end of the list of index 4, with memory.
    pub(crate) fn post(&self, wanted: Match, memory: &Memory, bits: u32) -> (Handle, Handle) {
        self.post_descriptor(wanted, Descriptor::new(memory).options(bits), Unlink::Retain)
    }

    pub(crate) fn post_descriptor(&self, wanted: Match, descriptor: Descriptor, unlink: Unlink) -> (Handle, Handle) {
        let entry = self.ni.attach(4, wanted, unlink, Position::After).expect("room");
        let descriptor = descriptor.events(self.queue);
        (entry, self.ni.attach_memory(entry, descriptor, unlink).expect("room"))
    }

    pub(crate) fn bind(&self, memory: &Memory) -> Handle {
        self.ni.bind(Descriptor::new(memory).events(self.queue), Unlink::Retain).expect("room")
    }

    pub(crate) fn event(&self) -> Option<Event> {
        match self.ni.event(self.queue) {
            Ok((event, is_lost)) => {
                assert!(!is_lost, "the queue is long enough");
                Some(event)
            }
            Err(why) => {
                assert_eq!(why, Error::QueueEmpty);
                None
            }
        }
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.ni.status(0).expect("a register")
    }
}

/// Makes progress for all until there is a result.
pub(crate) fn until<R>(sides: &[Side], what: &str, mut done: impl FnMut() -> Option<R>) -> R {
    let begun = Instant::now();
    loop {
        if let Some(result) = done() {
            return result;
        }
        assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
        for side in sides {
            side.ni.status(0).expect("usable");
        }
    }
}

/// The next events of a side, of which there is one of each of these kinds, in order.
pub(crate) fn events(sides: &[Side], at: usize, kinds: &[EventKind]) -> Vec<Event> {
    kinds
        .iter()
        .map(|kind| {
            let event = until(sides, &format!("{kind:?} at {at}"), || sides[at].event());
            assert_eq!(event.kind, *kind, "{event:?}");
            event
        })
        .collect()
}

pub(crate) fn bytes(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0; memory.len() as usize];
    assert!(memory.is_empty() || memory.copy_out(0, &mut bytes));
    bytes
}

pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

pub(crate) fn zeroes(len: usize) -> Memory {
    buffer(vec![0; len])
}

/// Puts a few bytes to the other side, and ends the send.
pub(crate) fn put(sides: &[Side], from: usize, bytes: &[u8], to: &Target) -> Event {
    let source = sides[from].bind(&buffer(bytes.to_vec()));
    sides[from].ni.put(source, None, false, to).expect("room");
    let ended = events(sides, from, &[EventKind::SendStart, EventKind::SendEnd]);
    sides[from].ni.unlink_memory(source).expect("nothing is pending");
    ended[1]
}

pub(crate) const PUT: u32 = options::OP_PUT;
pub(crate) const GET: u32 = options::OP_GET;
