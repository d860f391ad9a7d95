//! Handles, and the tables that they lead into.

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

    /// Of the interface itself.
    #[must_use]
    pub const fn of_interface(number: u32) -> Self {
        Self::first(Kind::Network, number)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_of_another_kind_finds_nothing() {
        let mut entries = Table::new(Handle::first(Kind::Entry, 1), 3);
        let mut queues = Table::new(Handle::first(Kind::Queue, 1), 3);
        let (entry, queue) = (entries.insert('a').expect("room"), queues.insert('q').expect("room"));
        assert!(entries.get(queue).is_none() && queues.get(entry).is_none());
        for made in [Handle::INVALID, Handle::NONE, Handle::NO_QUEUE] {
            assert!(entries.get(made).is_none() && queues.get(made).is_none());
        }
    }
}
