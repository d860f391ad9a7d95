//! Operations that have begun and not ended.

use crate::handles::Handle;
use crate::queue::Facts;
use crate::types::MAX_SWAP;
use crate::wire::Request;
use cci::{Memory, Registration, RmaHandle};
use cci_peers::Peer;
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

#[derive(Debug)]
struct Place {
    life: u32,
    operation: Option<Operation>,
    bulk: Bulk,
}

/// Operations by number. A number is never that of another operation, until 2^24 have been in its
/// place.
#[derive(Debug)]
pub(crate) struct Operations {
    places: Vec<Place>,
    free: Vec<u32>,
}

const LIFE: u32 = (1 << 24) - 1;

fn number(life: u32, index: u32) -> u64 {
    u64::from(life & LIFE) << 32 | u64::from(index)
}

impl Operations {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Makes room for one more; false: there is none.
    pub(crate) fn reserve(&mut self) -> bool {
        if !self.free.is_empty() {
            return true;
        }
        let has_room = self.places.len() < MOST && self.places.try_reserve(1).is_ok();
        has_room && self.free.try_reserve(self.places.capacity()).is_ok()
    }

    /// Enters an operation, for which there is room, and returns its number, of which it is made.
    #[inline]
    pub(crate) fn insert(&mut self, operation: impl FnOnce(u64) -> Operation) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { life: 0, operation: None, bulk: Bulk::default() });
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let place = &mut self.places[index as usize];
        let number = number(place.life, index);
        place.operation = Some(operation(number));
        number
    }

    fn index(&self, wanted: u64) -> Option<usize> {
        let index = (wanted & u64::from(u32::MAX)) as usize;
        let place = self.places.get(index)?;
        (number(place.life, index as u32) == wanted).then_some(index)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, wanted: u64) -> Option<&mut Operation> {
        let index = self.index(wanted)?;
        self.places[index].operation.as_mut()
    }

    #[inline]
    pub(crate) fn get(&self, wanted: u64) -> Option<&Operation> {
        self.places[self.index(wanted)?].operation.as_ref()
    }

    /// An operation with what only some have.
    pub(crate) fn get_whole(&mut self, wanted: u64) -> Option<(&mut Operation, &mut Bulk)> {
        let index = self.index(wanted)?;
        let Place { operation, bulk, .. } = &mut self.places[index];
        operation.as_mut().map(|operation| (operation, bulk))
    }

    /// Ends an operation that has nothing but what all have.
    #[inline]
    pub(crate) fn release(&mut self, wanted: u64) {
        if let Some(index) = self.index(wanted) {
            let place = &mut self.places[index];
            place.operation = None;
            place.life = place.life.wrapping_add(1);
            self.free.push(index as u32);
        }
    }

    /// Takes an operation out. Its registrations end.
    #[inline]
    pub(crate) fn remove(&mut self, wanted: u64) -> Option<Operation> {
        let index = self.index(wanted)?;
        let place = &mut self.places[index];
        let operation = place.operation.take()?;
        place.life = place.life.wrapping_add(1);
        place.bulk.clear();
        self.free.push(index as u32);
        Some(operation)
    }

    /// The numbers of the operations with a partner.
    pub(crate) fn with(&self, whom: Whom) -> Vec<u64> {
        let all = (0_u32..).zip(&self.places);
        let of = |(index, place): (u32, &Place)| {
            place.operation.as_ref().filter(|operation| operation.whom == whom)?;
            Some(number(place.life, index))
        };
        all.filter_map(of).collect()
    }
}
