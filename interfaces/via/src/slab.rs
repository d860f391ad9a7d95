//! Tables whose entries have numbers: index and generation, never 0. A stale number is refused.

use crate::attributes::MAX_OBJECTS;

struct Slot<V> {
    generation: u16,
    value: Option<V>,
}

pub(crate) struct Slab<V> {
    slots: Vec<Slot<V>>,
    free: Vec<u16>,
}

impl<V> Slab<V> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// The number of the value; none when the table is full.
    pub(crate) fn insert(&mut self, value: V) -> Option<u32> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() >= MAX_OBJECTS => return None,
            None => {
                self.slots.push(Slot { generation: 0, value: None });
                u16::try_from(self.slots.len() - 1).ok()?
            }
        };
        let slot = &mut self.slots[usize::from(index)];
        slot.generation = slot.generation.checked_add(1).unwrap_or(1);
        slot.value = Some(value);
        Some(u32::from(slot.generation) << 16 | u32::from(index))
    }

    #[inline]
    fn place(number: u32) -> (usize, u16) {
        ((number & 0xFFFF) as usize, (number >> 16) as u16)
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&V> {
        let (index, generation) = Self::place(number);
        self.slots.get(index).filter(|slot| slot.generation == generation)?.value.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut V> {
        let (index, generation) = Self::place(number);
        self.slots.get_mut(index).filter(|slot| slot.generation == generation)?.value.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<V> {
        let (index, generation) = Self::place(number);
        let value = self.slots.get_mut(index).filter(|slot| slot.generation == generation)?.value.take()?;
        self.free.push(index as u16);
        Some(value)
    }

    /// Undoes the last `remove`.
    pub(crate) fn restore(&mut self, number: u32, value: V) {
        if self.free.last() == Some(&(Self::place(number).0 as u16)) {
            self.free.pop();
            self.slots[Self::place(number).0].value = Some(value);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &V> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn a_number_is_never_zero_and_never_valid_again() {
        let mut slab = Slab::new();
        let first = slab.insert('a').expect("room");
        assert_ne!(first, 0);
        assert_eq!(slab.remove(first), Some('a'));
        let mut last = first;
        // Past the wrap of the generation.
        for _ in 0..70_000 {
            let number = slab.insert('b').expect("room");
            assert_ne!(number >> 16, 0);
            assert_eq!((slab.get(last), slab.get(number)), (None, Some(&'b')));
            assert_eq!(slab.remove(number), Some('b'));
            last = number;
        }
        assert_eq!(slab.len(), 0);
    }
}
