//! Operations that have begun and not ended.

use crate::handles::Handle;
use crate::queue::Facts;
use crate::types::MAX_SWAP;
use crate::wire::Request;
use cci::{Memory, Registration, RmaHandle};
use cci_peers::Peer;
use cci_slab::Slab;
use std::sync::Arc;

/// Operations of an interface at most.
pub(crate) const MOST: usize = 65_536;

/// With whom an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// This process.
    Own,
    Peer(Peer),
}

/// What an operation is, at which side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of the initiator.
    Put,
    Get,
    GetPut,
    /// Of the target: it reads what a put offers.
    Take,
    /// Of the target: it replies.
    Supply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its message waits to be sent.
    Queued,
    /// Its message was sent.
    Sent,
    /// Its memory was offered, and the peer reads.
    Offered,
    /// Its END event is there, and an ack is due.
    AckDue,
    /// This side reads.
    Reading,
}

/// What only some operations have. It stays in its place in the table, where the next operation
/// finds it empty, so that others do not carry it about.
#[derive(Debug, Default)]
pub(crate) struct Bulk {
    /// The peer's memory.
    pub(crate) remote: Vec<(u64, RmaHandle)>,
    /// Bytes for which reads were begun, and reads that have not ended.
    pub(crate) begun: u64,
    pub(crate) open: u32,
    pub(crate) has_failed: bool,
    /// What is offered.
    pub(crate) registered: Vec<Registration<Memory>>,
    /// What is read into: the parts of the memory descriptor.
    pub(crate) own: Option<Own>,
    /// What a swap has found.
    pub(crate) swapped: Swapped,
}

/// The parts of a memory descriptor, registered for this side's own reads: peers have no right.
pub(crate) type Own = Arc<[Registration<Memory>]>;

#[derive(Debug)]
pub(crate) struct Swapped(pub(crate) [u8; MAX_SWAP]);

impl Default for Swapped {
    fn default() -> Self {
        Self([0; MAX_SWAP])
    }
}

impl Bulk {
    /// Ends registrations, and leaves nothing for the next operation.
    fn clear(&mut self) {
        self.registered.clear();
        self.remote.clear();
        self.own = None;
        (self.begun, self.open, self.has_failed) = (0, 0, false);
    }
}

#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    pub(crate) phase: Phase,
    pub(crate) whom: Whom,
    /// The link on which it is answered.
    pub(crate) on_link: u32,
    /// Its memory descriptor; that of the get, of a swap.
    pub(crate) memory: Handle,
    /// That of the put of a swap, and the link of its events.
    pub(crate) source: Handle,
    pub(crate) source_link: u32,
    /// Where in the memory, and how many bytes.
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// As it is sent, or was received.
    pub(crate) request: Request,
    /// What its events have.
    pub(crate) facts: Facts,
}

/// Operations by number. A number is never that of another operation, until 2^24 have been in its
/// place.
#[derive(Debug)]
pub(crate) struct Operations {
    all: Slab<Operation, u64, 32, 24>,
    /// By index.
    bulks: Vec<Bulk>,
}

impl Operations {
    pub(crate) const fn new() -> Self {
        Self { all: Slab::new(0, MOST as u32), bulks: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Makes room for one more; false: there is none.
    pub(crate) fn reserve(&mut self) -> bool {
        self.all.has_free() || self.all.reserve().is_some() && self.bulks.try_reserve(1).is_ok()
    }

    /// Enters an operation, for which there is room, and returns its number, of which it is made.
    #[inline]
    pub(crate) fn insert(&mut self, operation: impl FnOnce(u64) -> Operation) -> u64 {
        if !self.all.has_free() {
            self.bulks.push(Bulk::default());
        }
        self.all.insert_with(operation)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, wanted: u64) -> Option<&mut Operation> {
        self.all.get_mut(wanted)
    }

    #[inline]
    pub(crate) fn get(&self, wanted: u64) -> Option<&Operation> {
        self.all.get(wanted)
    }

    /// An operation with what only some have.
    pub(crate) fn get_whole(&mut self, wanted: u64) -> Option<(&mut Operation, &mut Bulk)> {
        self.all.get_mut(wanted).zip(self.bulks.get_mut(wanted as u32 as usize))
    }

    /// Ends an operation that has nothing but what all have.
    #[inline]
    pub(crate) fn release(&mut self, wanted: u64) {
        self.all.remove(wanted);
    }

    /// Takes an operation out. Its registrations end.
    #[inline]
    pub(crate) fn remove(&mut self, wanted: u64) -> Option<Operation> {
        let operation = self.all.remove(wanted)?;
        self.bulks[wanted as u32 as usize].clear();
        Some(operation)
    }

    /// The numbers of the operations with a partner.
    pub(crate) fn with(&self, whom: Whom) -> Vec<u64> {
        self.all.iter().filter(|(_, operation)| operation.whom == whom).map(|(number, _)| number).collect()
    }
}
