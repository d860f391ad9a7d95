//! Words and lines of a mirror: which of their bytes differ, and how they are loaded while the
//! program may store to them.

use cci_mem::sync::AtomicU64;

/// Bytes of a word.
pub(crate) const WORD: usize = 8;
/// Words of a line.
pub(super) const LINE: u64 = 8;

/// The words of a line.
pub(super) type Line = [u64; LINE as usize];

pub(super) const ONES: u64 = 0x0101_0101_0101_0101;

/// Zero if each byte has a bit.
#[inline]
fn same_bytes(bits: u64) -> u64 {
    // A byte of zero alone borrows from its top bit.
    bits.wrapping_sub(ONES) & !bits & ONES << 7
}

/// Whether each byte has a bit.
#[inline]
pub(super) fn is_whole(bits: u64) -> bool {
    same_bytes(bits) == 0
}

/// Which bytes have bits.
pub(crate) fn mask_of(bits: u64) -> u8 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // The first byte of memory is the lowest one here.
    let bits = bits.to_le();
    // The top bit of each byte that is not zero, as its lowest one.
    let bits = ((((bits & LOW) + LOW) | bits) >> 7) & ONES;
    // Moves the bit of byte i to bit i of the top byte; no two meet.
    (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// A sum of words, by which two blocks are found to be equal.
pub(super) fn sum_of(words: &[u64]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    // Four chains, which a processor follows at once.
    let mut sums = [1_u64, 2, 3, 4];
    let (fours, tail) = words.as_chunks();
    let mut add = |at: usize, word: u64| sums[at] = (sums[at] ^ word).wrapping_mul(FACTOR).rotate_left(29);
    for four in fours {
        let [first, second, third, fourth]: [u64; 4] = *four;
        [first, second, third, fourth].into_iter().enumerate().for_each(|(at, word)| add(at, word));
    }
    tail.iter().enumerate().for_each(|(at, word)| add(at, *word));
    sums.into_iter().fold(words.len() as u64, |sum, next| (sum ^ next).wrapping_mul(FACTOR).rotate_left(29))
}

/// A word of ones where the mask has bits.
fn spread(mask: u8) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|at| if mask >> at & 1 == 1 { 0xff } else { 0 }))
}

/// `old`, with the bytes of `new` that the mask names.
pub(crate) fn merge(old: u64, new: u64, mask: u8) -> u64 {
    let bits = spread(mask);
    old & !bits | new & bits
}

/// Which bytes of a word are stored, of which one side has changed some and the other side others.
/// Where both have changed one, it is a value of more bytes: then all that it may have are stored,
/// so that it is whole.
pub(super) fn whole_mask(mask: u8, by_others: u8) -> u8 {
    const LOW: u8 = 0x0f;
    let all = mask | by_others;
    match mask & by_others {
        0 => mask,
        _ if all & !LOW == 0 => LOW,
        _ if all & LOW == 0 => !LOW,
        _ => u8::MAX,
    }
}

/// Bytes of a word from `from` on that lie before `end`.
pub(crate) fn mask_before(from: usize, end: usize) -> u8 {
    match end.saturating_sub(from) {
        0 => 0,
        left @ 1..WORD => (1 << left) - 1,
        _ => u8::MAX,
    }
}

/// Words that the program may store to meanwhile. Each is loaded whole, with acquire order.
pub(crate) trait Source {
    fn word(&self, at: usize) -> u64;

    /// A line, from its last word to its first.
    #[inline]
    fn line(&self, line: usize) -> [u64; LINE as usize] {
        let mut words = [0; LINE as usize];
        for at in (0..LINE as usize).rev() {
            words[at] = self.word(line * LINE as usize + at);
        }
        words
    }

    /// Passes lines that have not changed, from the last one down, then lines that have changed in
    /// all their bytes, which `known` has afterwards: how many lines lie before the former, and
    /// before the latter. Each line is loaded before those below it.
    #[inline]
    fn advance(&self, known: &mut [Line]) -> (usize, usize)
    where
        Self: Sized,
    {
        advance_by_words(self, known)
    }
}

/// [`Source::advance`] by loads of words.
pub(super) fn advance_by_words(source: &impl Source, known: &mut [Line]) -> (usize, usize) {
    let same = (0..known.len()).rev().take_while(|at| source.line(*at) == known[*at]).count();
    let top = known.len() - same;
    let mut rest = top;
    while rest > 0 {
        let words = source.line(rest - 1);
        if !words.iter().zip(&known[rest - 1]).all(|(word, known)| is_whole(word ^ known)) {
            break;
        }
        known[rest - 1] = words;
        rest -= 1;
    }
    (top, rest)
}

/// Words of memory, from the beginning of a line on.
pub(crate) struct Words<'a>(pub(crate) &'a [AtomicU64]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_name_bytes_in_the_order_of_memory() {
        let [old, new] = [[1; 8], [2, 3, 4, 5, 6, 7, 8, 9]].map(u64::from_ne_bytes);
        assert_eq!(merge(old, new, 0b1000_0101).to_ne_bytes(), [2, 1, 4, 1, 1, 1, 1, 9]);
        assert_eq!([0, 1, 7, 8, 9].map(|end| mask_before(0, end)), [0, 1, 0x7f, 0xff, 0xff]);
        assert_eq!(mask_before(8, 3), 0);
        for mask in 0..=u8::MAX {
            let bytes: [u8; WORD] = std::array::from_fn(|at| (mask >> at & 1) << (at * 3 % 8));
            assert_eq!(mask_of(u64::from_ne_bytes(bytes)), mask);
            assert_eq!(is_whole(u64::from_ne_bytes(bytes)), mask == u8::MAX);
            assert_eq!(merge(0, u64::MAX, mask), spread(mask));
        }
    }
}
