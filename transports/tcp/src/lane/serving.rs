//! The operations of the peer that this side serves.

use crate::frame::OPERATIONS;
use cci_proto::{Failure, Registration};
use std::collections::VecDeque;

/// Bits of a number that name one of the operations on the wire, as the other side gives them.
const INDEX: u32 = (1 << 16) - 1;

/// Reads that are looked at for one of another connection.
const LOOKED_AT: usize = 64;

/// An operation of the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) number: u32,
    /// This side's number of its connection.
    pub(crate) connection: u32,
    pub(crate) registration: Registration,
    /// The peer reads: nothing of it is written.
    pub(crate) is_read: bool,
    /// Offset of the next byte in the registration.
    pub(crate) at: u64,
    /// Bytes that are missing.
    pub(crate) left: u64,
    pub(crate) outcome: Result<(), Failure>,
    /// A message follows, which is to find out how it ended: until then there is no RESULT.
    pub(crate) has_message: bool,
    /// Its bytes go in parts, over all streams of the lane.
    pub(crate) parts: Option<ServedParts>,
}

/// What an operation in parts has besides. Its `at` and `left` are about parts that have begun.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServedParts {
    /// Offset of the first byte in the registration, and all bytes.
    pub(crate) offset: u64,
    pub(crate) total: u64,
    /// Parts that have begun to come, or to leave, and have not ended.
    pub(crate) moving: u32,
    /// The peer has given it up.
    pub(crate) is_abandoned: bool,
}

#[derive(Default)]
pub(crate) struct Serving {
    entries: Vec<Option<Served>>,
    count: usize,
    /// Numbers of reads with bytes to send, in the order of their requests.
    pub(crate) reads: VecDeque<u32>,
    /// The connection whose read was served last: others have their turn.
    last_served: Option<u32>,
}

impl Serving {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds an operation. False: its number is none that the peer may use now.
    pub(crate) fn add(&mut self, served: Served) -> bool {
        let index = (served.number & INDEX) as usize;
        if index >= OPERATIONS as usize {
            return false;
        }
        if index >= self.entries.len() {
            self.entries.resize(index + 1, None);
        }
        let is_free = self.entries[index].is_none();
        if is_free {
            self.entries[index] = Some(served);
            self.count += 1;
        }
        is_free
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Served> {
        self.entries.get_mut((number & INDEX) as usize)?.as_mut().filter(|served| served.number == number)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Served> {
        self.entries.get((number & INDEX) as usize)?.as_ref().filter(|served| served.number == number)
    }

    /// The read whose bytes leave next: of a connection, the first; and the connections have their
    /// turns, as far as the first few tell.
    pub(crate) fn next_read(&self) -> Option<u32> {
        let is_others = |number: &&u32| {
            let served = self.entries.get((**number & INDEX) as usize).copied().flatten();
            served.is_some_and(|served| Some(served.connection) != self.last_served)
        };
        self.reads.iter().take(LOOKED_AT).find(is_others).or(self.reads.front()).copied()
    }

    /// The read in parts whose next part leaves.
    pub(crate) fn next_in_parts(&self) -> Option<u32> {
        let entry = |number: &u32| self.entries.get((*number & INDEX) as usize).copied().flatten();
        let mut reads = self.reads.iter().take(LOOKED_AT);
        reads.find(|number| entry(number).is_some_and(|served| served.parts.is_some())).copied()
    }

    /// Bytes of a read of this connection leave.
    pub(crate) fn on_served(&mut self, connection: u32) {
        self.last_served = Some(connection);
    }

    /// Takes an operation that is over.
    pub(crate) fn take(&mut self, number: u32) -> Option<Served> {
        self.get_mut(number)?;
        self.count -= 1;
        self.reads.retain(|other| *other != number);
        self.entries[(number & INDEX) as usize].take()
    }

    /// A connection has ended: what it began touches no memory any more.
    pub(crate) fn refuse_all_of(&mut self, connection: u32) {
        for served in self.entries.iter_mut().flatten().filter(|served| served.connection == connection) {
            served.outcome = Err(Failure::RemoteHandle);
        }
    }
}
