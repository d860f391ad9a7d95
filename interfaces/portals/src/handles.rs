//! Handles, and the tables that they lead into.

use std::collections::VecDeque;

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

    pub(crate) const fn make(kind: Kind, interface: u32, life: u32, index: u32) -> Self {
        let life = life & ((1 << LIFE_BITS) - 1);
        Self((kind as u32) << 29 | interface << (INDEX_BITS + LIFE_BITS) | life << INDEX_BITS | index)
    }

    /// Of the interface itself.
    #[must_use]
    pub const fn of_interface(number: u32) -> Self {
        Self::make(Kind::Network, number, 0, 0)
    }

    pub(crate) const fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
}

#[derive(Debug)]
struct Place<V> {
    life: u32,
    /// That of the value which is here, or will be next.
    handle: Handle,
    value: Option<V>,
}

/// Objects of one kind. An index is used again after all other free ones.
#[derive(Debug)]
pub(crate) struct Table<V> {
    kind: Kind,
    interface: u32,
    most: u32,
    places: Vec<Place<V>>,
    free: VecDeque<u32>,
}

impl<V> Table<V> {
    pub(crate) const fn new(kind: Kind, interface: u32, most: u32) -> Self {
        Self { kind, interface, most, places: Vec::new(), free: VecDeque::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.len() < self.most as usize
    }

    /// Enters a value; `None`: the table is full, or there is no memory.
    pub(crate) fn insert(&mut self, value: V) -> Option<Handle> {
        let index = if self.places.len() < self.most as usize {
            self.places.try_reserve(1).ok()?;
            self.free.try_reserve(self.places.len() + 1 - self.free.len()).ok()?;
            let index = u32::try_from(self.places.len()).ok()?;
            let handle = Handle::make(self.kind, self.interface, 0, index);
            self.places.push(Place { life: 0, handle, value: None });
            index
        } else {
            self.free.pop_front()?
        };
        let place = &mut self.places[index as usize];
        place.value = Some(value);
        Some(place.handle)
    }

    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> Option<&V> {
        self.places.get(handle.index()).filter(|place| place.handle == handle)?.value.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut V> {
        self.places.get_mut(handle.index()).filter(|place| place.handle == handle)?.value.as_mut()
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Option<V> {
        let index = handle.index();
        let place = self.places.get_mut(index).filter(|place| place.handle == handle)?;
        let value = place.value.take()?;
        let index = u32::try_from(index).ok()?;
        place.life = place.life.wrapping_add(1);
        place.handle = Handle::make(self.kind, self.interface, place.life, index);
        self.free.push_back(index);
        Some(value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.places.iter_mut().filter_map(|place| place.value.as_mut())
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_was_freed_or_is_of_another_kind_finds_nothing() {
        let mut entries = Table::new(Kind::Entry, 1, 3);
        let mut queues = Table::new(Kind::Queue, 1, 3);
        let (first, queue) = (entries.insert('a').expect("room"), queues.insert('q').expect("room"));
        assert!(entries.get(queue).is_none() && queues.get(first).is_none());
        assert_eq!((entries.remove(first), entries.remove(first)), (Some('a'), None));
        for _ in 0..1_000 {
            let next = entries.insert('b').expect("room");
            assert!(next != first && entries.get(first).is_none() && entries.get(next) == Some(&'b'));
            entries.remove(next);
        }
        for made in [Handle::INVALID, Handle::NONE, Handle::NO_QUEUE] {
            assert!(entries.get(made).is_none() && queues.get(made).is_none());
        }
    }

    #[test]
    fn a_full_table_takes_no_more_until_one_is_removed() {
        let mut table = Table::new(Kind::Memory, 0, 2);
        let held = [table.insert(1), table.insert(2)];
        assert!(table.insert(3).is_none() && !table.has_room());
        assert_eq!(table.remove(held[0].expect("room")), Some(1));
        assert!(table.has_room() && table.insert(4).is_some() && table.len() == 2);
    }
}
