//! Operations that have begun: each ends once.

use crate::arrivals::Arrival;
use crate::code::Code;
use crate::segments::Segments;
use cci_matching::{Envelope, Ticket};

/// The two kinds of messages, which do not match each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "as libfabric has it")]
pub enum Space {
    /// `fi_msg(3)`.
    Message,
    /// `fi_tagged(3)`.
    Tagged,
}

impl Space {
    #[inline]
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Message => 0,
            Self::Tagged => 1,
        }
    }

    pub(crate) const fn of(is_tagged: bool) -> Self {
        if is_tagged { Self::Tagged } else { Self::Message }
    }
}

/// The bytes of a send that waits.
pub(crate) enum Outgoing {
    /// Copied, as the program wanted.
    Copied([u8; crate::wire::MOST_INLINE], usize),
    Memory(Segments),
}

impl Outgoing {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Copied(_, len) => *len as u64,
            Self::Memory(segments) => segments.len(),
        }
    }
}

/// A buffer that takes several messages.
pub(crate) struct Multi {
    pub(crate) memory: Segments,
    pub(crate) space: Space,
    /// Bytes that messages have.
    pub(crate) used: u64,
    /// It leaves the queue when less is free.
    pub(crate) least: u64,
    /// `None`: it has left the queue.
    pub(crate) ticket: Option<Ticket>,
    /// Reads into it.
    pub(crate) open: u32,
    /// The partner without which it cannot end well.
    pub(crate) source: Option<u32>,
    /// How its release ends, once the reads have, if it was ended before it was full.
    pub(crate) ended: Option<Code>,
}

/// What an operation waits for.
pub(crate) enum Stage {
    Free {
        next: u32,
    },
    /// A send: for its link, or for room.
    Queued {
        to: u32,
        body: Outgoing,
    },
    /// A send that has left: until the peer has it.
    Taken {
        to: u32,
    },
    /// A send that has left: until CCI has done its part, which it tells also where the link ends.
    Told,
    /// A send whose memory the peer reads.
    Offered {
        to: u32,
        offer: u32,
    },
    /// A send to this endpoint itself, whose memory waits for a receive.
    Own {
        segments: Segments,
    },
    Posted {
        segments: Segments,
        space: Space,
        /// `None`: it has left the queue.
        ticket: Option<Ticket>,
        /// The partner without which it cannot end well.
        source: Option<u32>,
    },
    Multi(Multi),
    /// A receive: until its reads have ended, which the sender's number is told then. Of a buffer
    /// that takes several the request is another one.
    Reading {
        number: u32,
        length: u64,
        source: u64,
        multi: Option<u32>,
        at: u64,
    },
    /// A message that was found for a receive with this context.
    Claimed {
        envelope: Envelope,
        arrival: Box<Arrival>,
        space: Space,
    },
    /// An access to remote memory.
    Remote(Box<crate::access::Access>),
}

pub(crate) struct Slot {
    pub(crate) context: u64,
    /// The flags of the call.
    pub(crate) flags: u64,
    pub(crate) tag: u64,
    pub(crate) data: Option<u64>,
    pub(crate) stage: Stage,
}

/// The table of operations that are open.
pub(crate) struct Requests {
    slots: Vec<Slot>,
    free: u32,
    /// Where the last search by a context has ended: programs cancel in the order in which they
    /// have posted.
    near: usize,
}

const NONE: u32 = u32::MAX;

impl Requests {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, near: 0 }
    }

    /// Makes room for one; `None`: there is no memory.
    #[inline]
    pub(crate) fn reserve(&mut self) -> Option<()> {
        if self.free != NONE {
            return Some(());
        }
        if self.slots.len() >= NONE as usize {
            return None;
        }
        self.slots.try_reserve(1).ok()
    }

    /// Enters an operation, for which there is room.
    #[inline]
    pub(crate) fn insert(&mut self, slot: Slot) -> u32 {
        if self.free == NONE {
            self.slots.push(slot);
            return self.slots.len() as u32 - 1;
        }
        let index = self.free;
        let place = &mut self.slots[index as usize];
        if let Stage::Free { next } = place.stage {
            self.free = next;
        }
        *place = slot;
        index
    }

    /// The number that the next operation gets.
    pub(crate) fn next(&self) -> u32 {
        if self.free == NONE { self.slots.len() as u32 } else { self.free }
    }

    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize).filter(|slot| !matches!(slot.stage, Stage::Free { .. }))
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> Option<Slot> {
        let next = self.free;
        let place = self.get(index)?;
        let free = Slot { context: 0, flags: 0, tag: 0, data: None, stage: Stage::Free { next } };
        let slot = std::mem::replace(place, free);
        self.free = index;
        Some(slot)
    }

    /// Those that are open, with their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &Slot)> {
        (0..).zip(&self.slots).filter(|(_, slot)| !matches!(slot.stage, Stage::Free { .. }))
    }

    /// An operation with this context.
    pub(crate) fn find(&mut self, context: u64, is_wanted: impl Fn(&Stage) -> bool) -> Option<u32> {
        let count = self.slots.len();
        let is_open = |slot: &Slot| !matches!(slot.stage, Stage::Free { .. });
        let fits = |slot: &Slot| slot.context == context && is_open(slot) && is_wanted(&slot.stage);
        let found = (0..count).map(|step| (self.near + step) % count).find(|at| fits(&self.slots[*at]))?;
        self.near = found + 1;
        Some(found as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(context: u64) -> Slot {
        Slot { context, flags: 0, tag: 0, data: None, stage: Stage::Taken { to: 0 } }
    }

    #[test]
    fn a_number_is_used_again_and_each_is_found_by_its_context() {
        let mut requests = Requests::new();
        for context in 0..100 {
            requests.reserve().expect("memory");
            assert_eq!(requests.next(), context as u32);
            assert_eq!(requests.insert(slot(context)), context as u32);
        }
        for context in [7, 8, 3, 99, 0] {
            assert_eq!(requests.find(context, |_| true), Some(context as u32));
            assert_eq!(requests.remove(context as u32).map(|slot| slot.context), Some(context));
            assert!(requests.remove(context as u32).is_none() && requests.get(context as u32).is_none());
            assert_eq!(requests.find(context, |_| true), None);
        }
        assert_eq!(requests.all().count(), 95);
        requests.reserve().expect("memory");
        assert_eq!(requests.insert(slot(1_000)), 0);
    }
}
