//! A ring of values that stay where they are: a place is filled, emptied and filled again, and
//! nothing is moved. It grows by doubling, and does not shrink.

pub(crate) struct Ring<E> {
    /// As many as a power of two; those in use are `len` from `first` on.
    places: Vec<E>,
    first: usize,
    len: usize,
}

impl<E: Default> Ring<E> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), first: 0, len: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn place(&self, at: usize) -> usize {
        (self.first + at) & self.places.len().wrapping_sub(1)
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&E> {
        if at < self.len { self.places.get(self.place(at)) } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut E> {
        let place = self.place(at);
        if at < self.len { self.places.get_mut(place) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.places.rotate_left(self.first);
        self.first = 0;
        let size = (2 * self.places.len()).max(4);
        self.places.resize_with(size, E::default);
    }

    /// Appends a place, with what it had when it was last in use.
    #[inline]
    pub(crate) fn append(&mut self) -> &mut E {
        if self.len == self.places.len() {
            self.grow();
        }
        let place = self.place(self.len);
        self.len += 1;
        &mut self.places[place]
    }

    /// Removes the first place, and returns it.
    #[inline]
    pub(crate) fn remove_first(&mut self) -> Option<&mut E> {
        let place = self.place(0);
        if self.len == 0 {
            return None;
        }
        self.first = self.place(1);
        self.len -= 1;
        self.places.get_mut(place)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut E> {
        let (before, after) = self.places.split_at_mut(self.first);
        after.iter_mut().chain(before).take(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use std::collections::VecDeque;

    #[test]
    fn a_ring_is_a_queue_whatever_its_length() {
        let (mut ring, mut oracle) = (Ring::<u32>::new(), VecDeque::new());
        let mut next = 0;
        for round in 0..2_000_u32 {
            // Longer and shorter queues in turn, beyond several doublings.
            for _ in 0..round % 37 {
                *ring.append() = next;
                oracle.push_back(next);
                next += 1;
            }
            for _ in 0..(round * 7) % 41 {
                assert_eq!(ring.remove_first().copied(), oracle.pop_front());
            }
            assert_eq!((ring.len(), ring.is_empty()), (oracle.len(), oracle.is_empty()));
            assert_eq!(ring.iter_mut().map(|value| *value).collect::<VecDeque<_>>(), oracle);
            for at in [0, oracle.len() / 2, oracle.len()] {
                assert_eq!(ring.get(at), oracle.get(at));
                assert_eq!(ring.get_mut(at).copied(), oracle.get(at).copied());
            }
        }
        assert!(next > 10_000);
    }
}
