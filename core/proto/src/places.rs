//! A table whose entries keep their places, in memory that grows by small steps.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Entries by their places: numbers from 0 on, each of which is used again after a removal.
///
/// `CHUNK` entries get memory together. So a growing table has at most that many free entries,
/// where a vector that doubles has as many as it uses.
#[derive(Debug)]
pub struct Places<T, const CHUNK: usize> {
    chunks: Vec<Box<[Option<T>]>>,
    free: Vec<u32>,
    used: u32,
}

impl<T, const CHUNK: usize> Places<T, CHUNK> {
    /// Creates an empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), used: 0 }
    }

    /// Returns a free place below `most`, and keeps it free until [`Places::put`]. `None`: no
    /// memory, or no such place.
    pub fn reserve(&mut self, most: u32) -> Option<u32> {
        if let Some(place) = self.free.last() {
            return Some(*place);
        }
        let place = self.used;
        if place >= most {
            return None;
        }
        self.free.try_reserve(1).ok()?;
        if place as usize == self.chunks.len() * CHUNK {
            let mut chunk = Vec::new();
            chunk.try_reserve_exact(CHUNK).ok()?;
            chunk.resize_with(CHUNK, || None);
            self.chunks.try_reserve(1).ok()?;
            self.chunks.push(chunk.into_boxed_slice());
        }
        self.used += 1;
        self.free.push(place);
        Some(place)
    }

    /// Puts an entry at the place that [`Places::reserve`] returned last.
    pub fn put(&mut self, place: u32, entry: T) {
        if self.free.last() == Some(&place)
            && let Some(free) = self.entry(place)
        {
            *free = Some(entry);
            self.free.pop();
        }
    }

    /// Removes the entry at a place. `None`: there is none.
    pub fn remove(&mut self, place: u32) -> Option<T> {
        let removed = self.entry(place)?.take()?;
        self.free.push(place);
        Some(removed)
    }

    /// Returns the entry at a place.
    #[inline]
    #[must_use]
    pub fn get(&self, place: u32) -> Option<&T> {
        self.chunks.get(place as usize / CHUNK)?.get(place as usize % CHUNK)?.as_ref()
    }

    /// As [`Places::get`], for a change.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.entry(place)?.as_mut()
    }

    #[inline]
    fn entry(&mut self, place: u32) -> Option<&mut Option<T>> {
        self.chunks.get_mut(place as usize / CHUNK)?.get_mut(place as usize % CHUNK)
    }

    /// Returns all entries, by place.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().flatten())
    }

    /// Returns the number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.used as usize - self.free.len()
    }

    /// Returns whether there are no entries.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of places that were ever used.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used as usize
    }
}

impl<T, const CHUNK: usize> Default for Places<T, CHUNK> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_has_what_was_put_there_and_nothing_else(steps in proptest::collection::vec(0..40_u32, 0..400)) {
            let (mut places, mut model) = (Places::<usize, 8>::new(), BTreeMap::new());
            for (step, choice) in steps.into_iter().enumerate() {
                if choice < 25 {
                    let Some(place) = places.reserve(30) else {
                        prop_assert_eq!(model.len(), 30);
                        continue;
                    };
                    prop_assert_eq!(places.get(place), None);
                    places.put(place, step);
                    prop_assert_eq!(model.insert(place, step), None);
                } else {
                    let place = choice - 10;
                    prop_assert_eq!(places.remove(place), model.remove(&place));
                }
                prop_assert_eq!(places.len(), model.len());
                prop_assert!(places.iter().eq(model.values()));
                prop_assert!((0..32).all(|place| places.get(place) == model.get(&place)));
                prop_assert!(places.chunks.len() * 8 < places.used() + 8, "no chunk too many");
            }
        }
    }

    #[test]
    fn a_place_that_is_not_reserved_is_not_overwritten() {
        let mut places = Places::<u32, 8>::new();
        let place = places.reserve(8).expect("memory");
        places.put(place, 1);
        places.put(place, 2);
        assert_eq!((places.get(place), places.len()), (Some(&1), 1));
    }
}
