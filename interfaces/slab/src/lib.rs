//! Tables whose entries have keys: an index, and a generation, which tells an entry from the next
//! one in its slot. A key whose entry is gone is refused.

#![forbid(unsafe_code)]

use std::ops::Range;

/// The bits of a key. From the lowest: index, generation, and a prefix that is the same in all keys
/// of a table.
pub trait Key: Copy + Eq {
    /// Returns the key of its bits.
    fn from_u64(bits: u64) -> Self;
    /// Returns the bits of the key.
    fn to_u64(self) -> u64;
}

impl Key for u64 {
    #[inline]
    fn from_u64(bits: u64) -> Self {
        bits
    }

    #[inline]
    fn to_u64(self) -> u64 {
        self
    }
}

impl Key for u32 {
    /// Prefix, generation and index of a table with such keys have 32 bits together.
    #[inline]
    fn from_u64(bits: u64) -> Self {
        bits as Self
    }

    #[inline]
    fn to_u64(self) -> u64 {
        self.into()
    }
}

#[derive(Debug)]
struct Slot<V, K> {
    /// Without a value: prefix and generation of the next key, and the index of the next free slot.
    key: K,
    value: Option<V>,
}

/// Values by key. Each removal changes the generation of the slot, which wraps to the first one.
///
/// The slot that has become free last is used first, and the table grows when there is none. With
/// `OLDEST_FIRST` the table grows to its limit before a slot is used again, and the slot that has
/// become free first is used first: a key comes back as late as possible.
///
/// # Example
///
/// ```
/// // Keys of 32 bits: 16 of index, 16 of generation. None is 0, because the first generation is 1.
/// let mut slab = cci_slab::Slab::<&str, u32, 16, 16>::new(1 << 16, 1_000);
/// let key = slab.insert("first").expect("room");
/// assert_eq!((key, slab.get(key)), (0x1_0000, Some(&"first")));
/// assert_eq!(slab.remove(key), Some("first"));
/// assert_eq!((slab.insert("second"), slab.get(key)), (Some(0x2_0000), None));
/// ```
#[derive(Debug)]
pub struct Slab<V, K, const INDEX_BITS: u32, const GENERATION_BITS: u32, const OLDEST_FIRST: bool = false> {
    slots: Vec<Slot<V, K>>,
    /// Free slots: the one that is used next, and the one that has become free last.
    next: u32,
    last: u32,
    len: u32,
    most: u32,
    /// The key that follows the last generation, and that of a new slot; their indices are 0.
    first: K,
    fresh: K,
}

impl<V, K: Key, const INDEX_BITS: u32, const GENERATION_BITS: u32, const OLDEST_FIRST: bool>
    Slab<V, K, INDEX_BITS, GENERATION_BITS, OLDEST_FIRST>
{
    const INDEX: u64 = u64::MAX >> (64 - INDEX_BITS);
    const GENERATION: u64 = (u64::MAX >> (64 - GENERATION_BITS)) << INDEX_BITS;
    /// No slot.
    const NONE: u32 = Self::INDEX as u32;

    /// Creates an empty table of at most `most` entries, which is below 2^`INDEX_BITS`. The key of
    /// the first entry has the prefix and the first generation of all, and the index 0.
    #[must_use]
    pub const fn new(first: K, most: u32) -> Self {
        Self::beginning(first, first, most)
    }

    /// As [`Slab::new`], where new slots begin with the generation of `fresh` instead: the keys of
    /// a table that follows another one are others. `fresh` has the prefix of all, and the index 0.
    #[must_use]
    pub const fn beginning(first: K, fresh: K, most: u32) -> Self {
        Self { slots: Vec::new(), next: Self::NONE, last: Self::NONE, len: 0, most, first, fresh }
    }

    #[inline]
    fn index(key: K) -> u32 {
        (key.to_u64() & Self::INDEX) as u32
    }

    #[inline]
    fn with_index(bits: u64, index: u32) -> K {
        K::from_u64(bits & !Self::INDEX | u64::from(index))
    }

    /// The bits of the next key in the slot of this one; those of the index are any.
    #[inline]
    fn after(key: K, first: K) -> u64 {
        let bits = key.to_u64().wrapping_add(1 << INDEX_BITS);
        if bits & Self::GENERATION == 0 { first.to_u64() } else { bits }
    }

    /// Returns the number of entries.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether there are no entries.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether the next entry gets a slot that was used before, without an allocation.
    #[inline]
    #[must_use]
    pub const fn has_free(&self) -> bool {
        self.next != Self::NONE && (!OLDEST_FIRST || self.slots.len() >= self.most as usize)
    }

    /// Makes room for another entry. `None`: the table is full, or there is no memory.
    #[inline]
    pub fn reserve(&mut self) -> Option<()> {
        if self.has_free() { Some(()) } else { self.grow() }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Option<()> {
        if self.slots.len() < self.most as usize { self.slots.try_reserve(1).ok() } else { None }
    }

    /// Inserts a value. `None`: the table is full, or there is no memory.
    #[inline]
    pub fn insert(&mut self, value: V) -> Option<K> {
        self.reserve()?;
        Some(self.insert_with(|_| value))
    }

    /// Inserts a value that is made of its key. There is room: [`Slab::reserve`] has made it, or
    /// the table has no limit. Inlined, so that the value is written once, where it stays.
    #[inline(always)]
    pub fn insert_with(&mut self, make: impl FnOnce(K) -> V) -> K {
        if !self.has_free() {
            self.add_slot();
        }
        let index = self.next;
        let slot = &mut self.slots[index as usize];
        self.next = Self::index(slot.key);
        slot.key = Self::with_index(slot.key.to_u64(), index);
        slot.value = Some(make(slot.key));
        self.len += 1;
        slot.key
    }

    /// Adds a slot, which is used next.
    #[cold]
    #[inline(never)]
    fn add_slot(&mut self) {
        let index = u32::try_from(self.slots.len()).unwrap_or(Self::NONE);
        self.slots.push(Slot { key: Self::with_index(self.fresh.to_u64(), self.next), value: None });
        self.next = index;
    }

    /// Returns a value; `None`: it is gone.
    #[inline]
    #[must_use]
    pub fn get(&self, key: K) -> Option<&V> {
        self.slots.get(Self::index(key) as usize).filter(|slot| slot.key == key)?.value.as_ref()
    }

    /// As [`Slab::get`], to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.slots.get_mut(Self::index(key) as usize).filter(|slot| slot.key == key)?.value.as_mut()
    }

    /// Returns the value at an index.
    #[inline]
    #[must_use]
    pub fn at(&self, index: u32) -> Option<&V> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    /// As [`Slab::at`], to be changed.
    #[inline]
    pub fn at_mut(&mut self, index: u32) -> Option<&mut V> {
        self.slots.get_mut(index as usize)?.value.as_mut()
    }

    /// Returns the key of the value at an index; where there is none, that of the next one there.
    ///
    /// # Panics
    ///
    /// There was never a value.
    #[inline]
    #[must_use]
    pub fn key(&self, index: u32) -> K {
        Self::with_index(self.slots[index as usize].key.to_u64(), index)
    }

    /// Removes a value; `None`: it is gone.
    #[inline]
    pub fn remove(&mut self, key: K) -> Option<V> {
        self.get(key)?;
        self.remove_at(Self::index(key))
    }

    /// Removes the value at an index.
    #[inline]
    pub fn remove_at(&mut self, index: u32) -> Option<V> {
        let slot = self.slots.get_mut(index as usize)?;
        let value = slot.value.take()?;
        let bits = Self::after(slot.key, self.first);
        let behind = if OLDEST_FIRST { Self::NONE } else { self.next };
        slot.key = Self::with_index(bits, behind);
        self.len -= 1;
        if OLDEST_FIRST {
            let before = std::mem::replace(&mut self.last, index);
            if self.next != Self::NONE
                && let Some(slot) = self.slots.get_mut(before as usize)
            {
                slot.key = Self::with_index(slot.key.to_u64(), index);
                return Some(value);
            }
        }
        self.next = index;
        Some(value)
    }

    /// Returns the indices of all slots, free ones too.
    #[must_use]
    pub fn indices(&self) -> Range<u32> {
        0..self.slots.len() as u32
    }

    /// Returns the entries, by index.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref().map(|value| (slot.key, value)))
    }

    /// Returns the values, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }
}

impl<V, K: Key, const INDEX_BITS: u32, const GENERATION_BITS: u32> Slab<V, K, INDEX_BITS, GENERATION_BITS> {
    /// Undoes the last removal, of the value with this key. Of another value it does nothing.
    pub fn restore(&mut self, key: K, value: V) {
        let (index, next) = (Self::index(key), Self::with_index(Self::after(key, self.first), 0));
        let is_last = |slot: &&mut Slot<V, K>| index == self.next && Self::with_index(slot.key.to_u64(), 0) == next;
        if let Some(slot) = self.slots.get_mut(index as usize).filter(is_last) {
            self.next = Self::index(slot.key);
            (slot.key, slot.value) = (key, Some(value));
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const PREFIX: u32 = 5 << 6;

    /// Keys of 4 bits of index and 2 of generation, of which 0 is not used.
    fn slab<const OLDEST_FIRST: bool>(most: u32) -> Slab<char, u32, 4, 2, OLDEST_FIRST> {
        Slab::new(PREFIX | 1 << 4, most)
    }

    #[test]
    fn generations_wrap_to_the_first_one_and_stale_keys_are_refused() {
        let mut slab = slab::<false>(2);
        let mut stale = slab.insert('a').expect("room");
        assert_eq!((slab.remove(stale), slab.remove(stale)), (Some('a'), None));
        for generation in [2, 3, 1, 2] {
            let key = slab.insert('b').expect("room");
            assert_eq!(key, PREFIX | generation << 4);
            assert_eq!((slab.get(stale), slab.get(key)), (None, Some(&'b')));
            assert!(slab.get_mut(stale).is_none() && slab.get_mut(key).is_some());
            assert_eq!((slab.get(key & 0x3f), slab.key(0), slab.at(1)), (None, key, None), "another prefix or index");
            assert_eq!((slab.remove(stale), slab.remove_at(0), slab.remove_at(0)), (None, Some('b'), None));
            stale = key;
        }
        assert!(slab.is_empty());
    }

    #[test]
    fn new_slots_begin_with_any_generation_and_have_all_of_them() {
        let mut slab = Slab::<char, u32, 4, 2>::beginning(PREFIX | 1 << 4, PREFIX | 3 << 4, 2);
        for generation in [3, 1, 2, 3] {
            let key = slab.insert('a').expect("room");
            assert_eq!((key, slab.remove(key)), (PREFIX | generation << 4, Some('a')));
        }
        let keys = ['b', 'c'].map(|value| slab.insert(value));
        assert_eq!(keys, [Some(PREFIX | 1 << 4), Some(PREFIX | 3 << 4 | 1)], "of a used slot, and of a new one");
    }

    /// The indices of keys of three entries, of which two are removed, and of three more.
    fn order<const OLDEST_FIRST: bool>(most: u32) -> Vec<u32> {
        let mut slab = slab::<OLDEST_FIRST>(most);
        let keys = ['a', 'b', 'c'].map(|value| slab.insert(value).expect("room"));
        assert_eq!([keys[1], keys[0]].map(|key| slab.remove(key)), [Some('b'), Some('a')]);
        (0..3).filter_map(|_| slab.insert('d')).map(|key| key & 15).collect()
    }

    #[test]
    fn free_slots_are_used_in_the_order_of_the_table() {
        assert_eq!(order::<false>(9), [0, 1, 3]);
        assert_eq!(order::<true>(4), [3, 1, 0], "it grows to its limit first");
    }

    #[test]
    fn a_removal_is_undone() {
        let mut slab = slab::<false>(9);
        let keys = ['a', 'b', 'c'].map(|value| slab.insert(value).expect("room"));
        let removed = [keys[0], keys[1]].map(|key| slab.remove(key).expect("there"));
        slab.restore(keys[0], removed[0]);
        assert_eq!(slab.get(keys[0]), None, "it is not the last one");
        slab.restore(keys[1], removed[1]);
        assert_eq!((slab.get(keys[1]), slab.len()), (Some(&'b'), 2));
        let again = slab.insert('d').expect("room");
        assert_eq!((again, slab.remove(again)), (keys[0] + (1 << 4), Some('d')));
        slab.restore(keys[0], removed[0]);
        assert_eq!(slab.get(keys[0]), None, "another one had its slot since");
    }

    /// Against a map, where keys come back when their generations have wrapped.
    fn compare<const OLDEST_FIRST: bool>() {
        let (mut slab, mut model) = (slab::<OLDEST_FIRST>(15), BTreeMap::new());
        let mut bits = 1_u32;
        for step in 0..20_000 {
            // Marsaglia, "Xorshift RNGs", 2003.
            bits ^= bits << 13;
            bits ^= bits >> 17;
            bits ^= bits << 5;
            let (value, key) = (char::from(bits as u8), PREFIX | bits >> 8 & 0x3f);
            if bits >> 20 & 1 == 0 {
                match slab.insert(value) {
                    Some(key) => assert_eq!(model.insert(key, value), None, "step {step}"),
                    None => assert_eq!(model.len(), 15, "step {step}"),
                }
            } else {
                assert_eq!(slab.remove(key), model.remove(&key), "step {step}");
            }
            assert!(slab.len() == model.len() && slab.get(key) == model.get(&key), "step {step}");
        }
        assert!(slab.iter().collect::<BTreeMap<_, _>>() == model.iter().map(|(key, value)| (*key, value)).collect());
    }

    #[test]
    fn it_has_what_was_inserted_and_nothing_else() {
        compare::<false>();
        compare::<true>();
    }
}
