//! A ring that overwrites: its writer never waits for its reader, and the oldest entry goes.
//!
//! One thread at a time writes, and one at a time reads; they share no lock. An entry is some
//! words. Three counts order them: `begun` entries may stand in the ring in part, `written` ones in
//! whole, and `read` ones were taken or lost.
//!
//! ```text
//!   writer of entry n                      reader of entry n
//!   begun = n + 1         relaxed   (1)    wait for written > n   acquire   (5)
//!   fence                 release   (2)    copy the words         relaxed   (6)
//!   write the words       relaxed   (3)    fence                  acquire   (7)
//!   written = n + 1       release   (4)    begun - n <= length?   relaxed   (8)
//! ```
//!
//! | order | without it |
//! |---|---|
//! | (4) with (5) | the reader copies words that the writer has not written yet |
//! | (2) with (7) | the reader copies a word of entry `n + length`, and finds at (8) that the writer has not begun that entry |
//!
//! A copy that fails at (8) is discarded, and the reader goes on with the next entry. So a copy has
//! the words of one entry, each entry is read once at most, and the reader learns that entries were
//! lost.

use crate::sync::{AtomicU64, Ordering, fence, own};

/// An entry, which begins at a cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Default for Slot<WORDS> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// A count in a line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Count(AtomicU64);

/// A ring of entries of so many words. One thread at a time writes, and one at a time reads.
///
/// # Example
///
/// ```
/// use cci_mem::overwriting::Ring;
///
/// let ring = Ring::<2>::new(2).expect("memory");
/// for number in 1..=3 {
///     ring.push(&[number, 10 * number]);
/// }
/// assert_eq!(ring.pop(), Some(([2, 20], true)), "the first entry was lost");
/// assert_eq!(ring.pop(), Some(([3, 30], false)));
/// assert_eq!(ring.pop(), None);
/// ```
#[derive(Debug)]
pub struct Ring<const WORDS: usize> {
    slots: Box<[Slot<WORDS>]>,
    /// Counts the entries that are being written or were written.
    begun: Count,
    /// Counts the entries that can be read.
    written: AtomicU64,
    /// Counts the entries that were read or lost. The reader's own.
    read: Count,
}

impl<const WORDS: usize> Ring<WORDS> {
    /// Makes a ring for `length` entries, a power of two. `None`: it is none, or there is no
    /// memory.
    #[must_use]
    pub fn new(length: usize) -> Option<Self> {
        if !length.is_power_of_two() {
            return None;
        }
        let mut slots = Vec::new();
        slots.try_reserve_exact(length).ok()?;
        slots.resize_with(length, Slot::default);
        let (begun, read) = (Count::default(), Count::default());
        Some(Self { slots: slots.into(), begun, written: AtomicU64::new(0), read })
    }

    /// Returns the number of entries that the ring has room for.
    #[inline]
    #[must_use]
    pub fn length(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    fn slot(&self, number: u64) -> &Slot<WORDS> {
        &self.slots[(number & (self.slots.len() as u64 - 1)) as usize]
    }

    /// The words that stand where this entry is or was.
    #[inline(always)]
    fn words(&self, number: u64) -> [u64; WORDS] {
        let slot = self.slot(number);
        std::array::from_fn(|at| slot.0[at].load(Ordering::Relaxed))
    }

    /// Returns the words of the last entry, or zeros before the first one. Called by the writer.
    #[must_use]
    pub fn last(&self) -> [u64; WORDS] {
        self.words(own(&self.written).wrapping_sub(1))
    }

    /// Writes an entry, over the oldest one when the ring is full. Called by the writer.
    #[inline(always)]
    pub fn push(&self, words: &[u64; WORDS]) {
        // (2): a reader that copies a word of this entry finds that it has begun.
        self.push_by(words, || fence(Ordering::Release), Ordering::Release);
    }

    #[inline(always)]
    fn push_by(&self, words: &[u64; WORDS], fence: impl FnOnce(), publish: Ordering) {
        let number = own(&self.written);
        self.begun.0.store(number + 1, Ordering::Relaxed);
        fence();
        for (to, word) in self.slot(number).0.iter().zip(words) {
            to.store(*word, Ordering::Relaxed);
        }
        // (4): publishes the words.
        self.written.store(number + 1, publish);
    }

    /// Whether there is no entry to read. Any thread may call it.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.written.load(Ordering::Acquire) == self.read.0.load(Ordering::Relaxed)
    }

    /// Takes the oldest entry, and whether entries before it were lost. Called by the reader.
    #[inline(always)]
    pub fn pop(&self) -> Option<([u64; WORDS], bool)> {
        // (7): with a word of a later entry comes the count of entries that have begun.
        self.pop_by(|| fence(Ordering::Acquire))
    }

    #[inline(always)]
    fn pop_by(&self, fence: impl Fn()) -> Option<([u64; WORDS], bool)> {
        let length = self.slots.len() as u64;
        let read = own(&self.read.0);
        let mut next = read;
        loop {
            // (5): the words of all entries that were written.
            let written = self.written.load(Ordering::Acquire);
            if written == next {
                return None;
            }
            next = next.max(written.saturating_sub(length));
            let words = self.words(next);
            fence();
            // (8): otherwise the writer has come by, or does so now.
            if self.begun.0.load(Ordering::Relaxed) - next <= length {
                self.read.0.store(next + 1, Ordering::Relaxed);
                return Some((words, next != read));
            }
            next += 1;
        }
    }

    /// Models only: [`Ring::push`] without the fence (2).
    #[cfg(loom)]
    pub fn push_without_fence(&self, words: &[u64; WORDS]) {
        self.push_by(words, || {}, Ordering::Release);
    }

    /// Models only: [`Ring::push`] that publishes by a relaxed store (4).
    #[cfg(loom)]
    pub fn push_relaxed(&self, words: &[u64; WORDS]) {
        self.push_by(words, || fence(Ordering::Release), Ordering::Relaxed);
    }

    /// Models only: [`Ring::pop`] without the fence (7).
    #[cfg(loom)]
    pub fn pop_without_fence(&self) -> Option<([u64; WORDS], bool)> {
        self.pop_by(|| {})
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Ring;

    #[test]
    fn a_ring_has_a_power_of_two_of_entries() {
        for length in [0, 3, 5, 6, usize::MAX, 1 << 62] {
            assert!(Ring::<2>::new(length).is_none(), "{length}");
        }
        for length in [1, 2, 8] {
            assert_eq!(Ring::<2>::new(length).map(|ring| ring.length()), Some(length));
        }
    }

    #[test]
    fn the_oldest_entries_go_and_the_next_pop_returns_so_once() {
        for length in [1, 2, 4] {
            let ring = Ring::<1>::new(length).expect("memory");
            assert!(ring.is_empty() && ring.pop().is_none());
            assert_eq!(ring.last(), [0]);
            let count = length as u64 + 3;
            (0..count).for_each(|number| ring.push(&[number]));
            assert_eq!(ring.last(), [count - 1]);
            assert_eq!(ring.pop(), Some(([3], true)));
            for number in 4..count {
                assert_eq!(ring.pop(), Some(([number], false)));
            }
            assert!(ring.is_empty() && ring.pop().is_none());
        }
    }
}
