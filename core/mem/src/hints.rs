//! A ready bitmap: which of many queues may hold something, so that their consumer need not look at
//! all of them.
//!
//! The consumer owns a page that all producers can write. A producer publishes into its queue, sets
//! its bit, and then the bit of its bit's line in a summary word. The consumer polls the summary,
//! which is one line however many queues there are. A bit is a hint: whoever can write the page may
//! set or clear any bit. So the consumer verifies each hint by a look at the queue, takes a bounded
//! number of hints a call, and has another way to learn of a queue whose hint is lost.

use crate::sync::{AtomicU64, Ordering};

/// Words of a line of the page.
const LINE_WORDS: usize = 8;
/// Lines of bits, after the line of the summary.
const LINES: usize = 63;
/// Queues that can have a bit.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
pub const BITS: u32 = (LINES * LINE_WORDS * 64) as u32;
/// Words of the page.
pub const WORDS: usize = (LINES + 1) * LINE_WORDS;

/// Sets the bit of a queue. To be called after publishing into it. A bit that does not exist is
/// ignored.
pub fn set(page: &[AtomicU64], bit: u32) {
    if bit >= BITS {
        return;
    }
    let (line, word) = (bit / 512, LINE_WORDS + bit as usize / 64);
    // Release, each: whoever takes the summary's bit finds the queue's bit, and then what has been
    // published.
    page[word].fetch_or(1 << (bit % 64), Ordering::Release);
    page[0].fetch_or(1 << line, Ordering::Release);
}

/// The consumer's place in its page.
#[derive(Debug, Default)]
pub struct Hints {
    /// Lines whose summary bit was taken.
    lines: u64,
    /// Bits that were taken from the word `word`.
    bits: u64,
    word: u32,
}

impl Hints {
    /// A place in a fresh page.
    #[must_use]
    pub const fn new() -> Self {
        Self { lines: 0, bits: 0, word: 0 }
    }

    /// Whether no hint is left of those that were found; further ones are in the page's first word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines | self.bits == 0
    }

    /// Takes a hint: the bit of a queue that may hold something. Costs one load while there is
    /// none.
    #[inline(always)]
    pub fn next(&mut self, page: &[AtomicU64]) -> Option<u32> {
        if self.lines | self.bits == 0 && page[0].load(Ordering::Relaxed) == 0 { None } else { self.next_slowly(page) }
    }

    #[cold]
    fn next_slowly(&mut self, page: &[AtomicU64]) -> Option<u32> {
        if self.bits == 0 {
            self.take_word(page);
        }
        if self.bits == 0 {
            return None;
        }
        let bit = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some(self.word * 64 + bit)
    }

    /// Takes the bits of the next word that has some, at most a summary's lines on.
    fn take_word(&mut self, page: &[AtomicU64]) {
        if self.lines == 0 {
            // Acquire, each: pairs with `set`.
            self.lines = page[0].swap(0, Ordering::Acquire) & ((1 << LINES) - 1);
        }
        while self.lines != 0 {
            let line = self.lines.trailing_zeros();
            let words = page.iter().enumerate().skip((line as usize + 1) * LINE_WORDS).take(LINE_WORDS);
            for (at, word) in words.filter(|(_, word)| word.load(Ordering::Relaxed) != 0) {
                self.bits = word.swap(0, Ordering::Acquire);
                if self.bits != 0 {
                    #[expect(clippy::cast_possible_truncation, reason = "an index of a page")]
                    let number = (at - LINE_WORDS) as u32;
                    self.word = number;
                    return;
                }
            }
            self.lines &= self.lines - 1;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{BITS, Hints, WORDS, set};
    use crate::sync::{AtomicU64, Ordering};

    fn page() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn every_bit_that_was_set_is_taken_once() {
        let (page, mut hints) = (page(), Hints::new());
        assert_eq!(hints.next(&page), None);
        let bits = [0, 1, 63, 64, 511, 512, 10_000, BITS - 1];
        for bit in bits.into_iter().chain([BITS, u32::MAX]) {
            set(&page, bit);
            set(&page, bit);
        }
        let taken: Vec<u32> = std::iter::from_fn(|| hints.next(&page)).collect();
        assert_eq!(taken, bits);
        assert_eq!(hints.next(&page), None);
        set(&page, 5);
        assert_eq!((hints.next(&page), hints.next(&page)), (Some(5), None));
    }

    /// What a peer can do that writes the page at random: each hint is a number below `BITS`, and
    /// they end.
    #[test]
    #[cfg_attr(miri, ignore = "each of 65,536 hints is found by looking at words, which takes Miri many minutes")]
    fn a_page_of_ones_is_a_bounded_number_of_hints() {
        let (page, mut hints) = (page(), Hints::new());
        page.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        let taken: Vec<u32> = std::iter::from_fn(|| hints.next(&page)).collect();
        assert_eq!(taken.len(), BITS as usize);
        assert!(taken.iter().all(|bit| *bit < BITS));
    }
}
