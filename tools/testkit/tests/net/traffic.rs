//! What goes over a network that is tested: messages, and RMA of which every byte is looked at.

use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connection, Endpoint, EventKind, Rights, Rma, RmaHandle};
use cci_conformance::memory::{Bytes, Origin};
use cci_conformance::{World, pattern};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Longest message of the exchange, bytes: more than any frame here.
const LONGEST: usize = 8000;
/// How long an exchange may take: many times what it does.
const LIMIT: Duration = Duration::from_secs(120);

/// Bytes of a message, by its number.
pub(crate) fn length(number: u64) -> usize {
    match number % 5 {
        0 => LONGEST,
        1 => 0,
        rest => usize::try_from(rest * 97).expect("small"),
    }
}

/// What the message behind the data of a write is.
pub(crate) const WRITTEN: &[u8] = b"written";

/// Sends this many messages of many lengths on a reliable, ordered connection, both ways at once;
/// each comes once, in order, whole.
pub(crate) fn messages(ends: [&Endpoint; 2], connections: [Connection; 2], count: u64) {
    let (mut sent, mut ended, mut received) = ([0_u64; 2], [0_u64; 2], [0_u64; 2]);
    let deadline = Instant::now() + LIMIT;
    while ended != [count; 2] || received != [count; 2] {
        assert!(Instant::now() < deadline, "sent {sent:?}, ended {ended:?}, received {received:?} of {count}");
        for at in 0..2 {
            if sent[at] < count && sent[at] < ended[at] + 64 {
                let message = pattern(sent[at], length(sent[at]));
                if ends[at].send(connections[at], &message, sent[at]).is_ok() {
                    sent[at] += 1;
                }
            }
            let Some(event) = ends[at].get_event().expect("an endpoint") else { continue };
            match event.kind() {
                EventKind::Send => {
                    assert_eq!((event.outcome(), event.context()), (Ok(()), ended[at]));
                    ended[at] += 1;
                }
                EventKind::Recv => {
                    let number = received[at];
                    let message = event.received().expect("a message").to_vec();
                    assert!(message == pattern(number, length(number)), "message {number} of {} bytes", message.len());
                    received[at] += 1;
                }
                kind => panic!("{kind:?}"),
            }
        }
    }
}

/// Memory of both ends, registered.
pub(crate) struct Areas {
    bytes: [Bytes; 2],
    handles: [RmaHandle; 2],
}

impl Areas {
    pub(crate) fn new(ends: [&Endpoint; 2], len: usize) -> Self {
        let bytes = [(); 2].map(|()| Origin::Program.allocate(len));
        let register =
            |at: usize| ends[at].register_memory(bytes[at].memory(), Rights::READ_WRITE).expect("a registration");
        let handles = [register(0), register(1)];
        Self { bytes, handles }
    }

    /// Sets the memory of the first end.
    pub(crate) fn fill(&self, bytes: &[u8]) {
        self.bytes[0].write(0, bytes);
    }

    /// What is in the memory of the second end.
    pub(crate) fn written(&self) -> Vec<u8> {
        self.bytes[1].to_vec(0, usize::try_from(self.bytes[1].memory().len()).expect("a length"))
    }

    /// Of the first end, and of the second.
    pub(crate) fn handles(&self) -> [&RmaHandle; 2] {
        self.handles.each_ref()
    }
}

/// Writes to the other side's memory, with a message behind the data, and reads it back from there;
/// every byte is right.
pub(crate) fn transfers(world: &World<'_>, ends: [&Endpoint; 2], connection: Connection, areas: &Areas, rounds: u64) {
    let len = areas.bytes[0].memory().len();
    let whole = usize::try_from(len).expect("a length");
    for round in 0..rounds {
        let expected = pattern(1000 + round, whole);
        areas.bytes[0].write(0, &expected);
        let rma = |message| Rma::new(&areas.handles[0], &areas.handles[1], len).message(message);
        ends[0].rma(connection, &rma(Some(WRITTEN)), 2 * round, Flags::WRITE).expect("a write");
        assert_eq!(world.message(1), WRITTEN);
        assert!(areas.bytes[1].to_vec(0, whole) == expected, "round {round}: what was written");
        assert_eq!(world.sent(0), 2 * round);
        areas.bytes[0].write(0, &vec![0; whole]);
        ends[0].rma(connection, &rma(None), 2 * round + 1, Flags::READ).expect("a read");
        assert_eq!(world.sent(0), 2 * round + 1);
        assert!(areas.bytes[0].to_vec(0, whole) == expected, "round {round}: what was read");
    }
}

/// Messages both ways, then transfers, over a connection of these two; its largest frame at the
/// end.
pub(crate) fn everything(ends: [&Endpoint; 2], count: u64, len: usize, rounds: u64) -> u32 {
    let areas = Areas::new(ends, len);
    let world = World::new(ends);
    let (here, there) = world.connect(0, 1, Attribute::ReliableOrdered);
    messages(ends, [here, there], count);
    transfers(&world, ends, here, &areas, rounds);
    ends[0].report(here).expect("a report").mtu
}

/// Takes all messages that an endpoint has now.
pub(crate) fn take(endpoint: &Endpoint, into: &mut VecDeque<Vec<u8>>) {
    while let Some(event) = endpoint.get_event().expect("an endpoint") {
        if let Some(message) = event.received() {
            into.push_back(message.to_vec());
        }
    }
}
