//! Handles, and the tables that they lead into.

use cci_mem::sync::{AtomicU32, Ordering};
use cci_slab::{Key, Slab};

/// Names an object of an interface: its kind, the interface, a life and an index. One that is
/// stale, invented or of another kind is refused.
///
/// # Example
///
/// ```
/// use cci_portals::Handle;
///
/// assert_eq!(Handle::from_bits(Handle::NO_QUEUE.bits()), Handle::NO_QUEUE);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(u32);

/// What a handle names. No kind makes one of the constants of [`Handle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Network = 0,
    Entry = 1,
    Memory = 2,
    Queue = 4,
}

const INDEX_BITS: u32 = 18;
const LIFE_BITS: u32 = 9;
const NUMBER_BITS: u32 = 2;
/// Lives between those with which the handles of two interfaces begin that are opened one after the
/// other. Odd, so that all 512 lives come before one comes again. Near 2^9 / 1.618, so that the
/// lives of interfaces with few between them lie far apart.
const STEP: u32 = 317;

impl Handle {
    /// No object.
    pub const INVALID: Self = Self(0xffff_ffff);
    /// No object, where one may be left out.
    pub const NONE: Self = Self(0x7fff_ffff);
    /// No event queue.
    pub const NO_QUEUE: Self = Self(0xbfff_ffff);

    /// Of the bits that a program has.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the number of the interface, 0 to 3, that the object would be of.
    #[must_use]
    pub const fn interface(self) -> u32 {
        self.0 >> (INDEX_BITS + LIFE_BITS) & ((1 << NUMBER_BITS) - 1)
    }

    /// The first handle of a kind.
    pub(crate) const fn first(kind: Kind, interface: u32) -> Self {
        Self((kind as u32) << 29 | interface << (INDEX_BITS + LIFE_BITS))
    }

    /// The handle of an interface that is opened now. Its life is that of the first handles of the
    /// interface's objects. It is none of the last 511 interfaces that this process, and those that
    /// it was forked from, have opened: their handles name nothing here.
    pub(crate) fn of_new_interface(number: u32) -> Self {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        // Publishes nothing.
        let life = OPENED.fetch_add(1, Ordering::Relaxed).wrapping_mul(STEP) & ((1 << LIFE_BITS) - 1);
        Self(Self::first(Kind::Network, number).0 | life << INDEX_BITS)
    }

    /// The first handle of a kind in this interface, whose own handle this is.
    pub(crate) const fn fresh(self, kind: Kind) -> Self {
        Self((kind as u32) << 29 | self.0)
    }

    pub(crate) const fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
}

impl Key for Handle {
    #[inline]
    fn from_u64(bits: u64) -> Self {
        Self(bits as u32)
    }

    #[inline]
    fn to_u64(self) -> u64 {
        self.0.into()
    }
}

/// Objects of one kind. An index is used again after all other free ones.
pub(crate) type Table<V> = Slab<V, Handle, INDEX_BITS, LIFE_BITS, true>;

/// Creates the table of at most `most` objects of a kind of an interface.
pub(crate) const fn table<V>(kind: Kind, interface: Handle, most: u32) -> Table<V> {
    Slab::beginning(Handle::first(kind, interface.interface()), interface.fresh(kind), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_of_another_kind_finds_nothing() {
        let interface = Handle::of_new_interface(1);
        let (mut entries, mut queues) = (table(Kind::Entry, interface, 3), table(Kind::Queue, interface, 3));
        let (entry, queue) = (entries.insert('a').expect("room"), queues.insert('q').expect("room"));
        assert!(entries.get(queue).is_none() && queues.get(entry).is_none());
        for made in [Handle::INVALID, Handle::NONE, Handle::NO_QUEUE] {
            assert!(entries.get(made).is_none() && queues.get(made).is_none());
        }
    }

    #[test]
    fn handles_of_interfaces_that_follow_are_others() {
        let mut seen = std::collections::HashSet::new();
        // Other tests open some as well.
        for _ in 0..1 << (LIFE_BITS - 1) {
            let interface = Handle::of_new_interface(1);
            let entry = table(Kind::Entry, interface, 3).insert('a').expect("room");
            assert!(seen.insert(interface) && seen.insert(entry), "{interface:?}");
            assert_eq!((interface.interface(), entry.interface(), entry.index()), (1, 1, 0));
        }
    }
}
