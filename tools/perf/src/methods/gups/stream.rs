//! The random stream of HPCC RandomAccess: 64-bit words, each the one before times x modulo x^64 +
//! x^2 + x + 1 over GF(2): shifted left by one, and 7 added (exclusive or) when the bit that went
//! out was set.
//!
//! Source: the rules of the HPC Challenge benchmark RandomAccess: the polynomial 7, the period
//! 1317624576693539401, and that a process finds its first word by squaring, without the words
//! before it.

/// The polynomial over GF(2), without its highest power.
const POLYNOMIAL: u64 = 7;
/// Words after which the stream begins again.
const PERIOD: u64 = 1_317_624_576_693_539_401;

/// The word after this one.
#[inline(always)]
pub(super) fn next(word: u64) -> u64 {
    (word << 1) ^ (POLYNOMIAL * (word >> 63))
}

/// The n-th word; word 0 is 1.
pub(super) fn starts(number: u64) -> u64 {
    let number = number % PERIOD;
    if number == 0 {
        return 1;
    }
    // What each bit of a word contributes after as many steps as the word has been advanced by
    // squaring: two at a time.
    let mut squares = [0_u64; 64];
    let mut word = 1;
    for square in &mut squares {
        *square = word;
        word = next(next(word));
    }
    // From the highest bit of the number down: double the steps, then one more where the bit is
    // set.
    let highest = 63 - number.leading_zeros();
    let mut word = 2_u64;
    for bit in (0..highest).rev() {
        word = (0..64).filter(|at| word >> at & 1 == 1).fold(0, |sum, at| sum ^ squares[at]);
        if number >> bit & 1 == 1 {
            word = next(word);
        }
    }
    word
}

/// A part of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    word: u64,
    left: u64,
}

impl Stream {
    /// The words from number `from`, 1 being the first that updates, so many of them.
    pub(super) fn new(from: u64, count: u64) -> Self {
        Self { word: starts(from), left: count }
    }
}

impl Iterator for Stream {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        self.word = next(self.word);
        Some(self.word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_a_shift_and_the_polynomial() {
        assert_eq!(next(1), 2);
        assert_eq!(next(1 << 62), 1 << 63);
        assert_eq!(next(1 << 63), 7);
        assert_eq!(next(u64::MAX), (u64::MAX << 1) ^ 7);
    }

    #[test]
    fn a_jump_is_as_many_steps() {
        let mut word = 1;
        for number in 0..5000 {
            assert_eq!(starts(number), word, "word {number}");
            word = next(word);
        }
        // Far into the stream: a jump and a step is a jump one further.
        for number in [1 << 20, 1 << 40, 123_456_789_012_345, PERIOD - 2] {
            assert_eq!(next(starts(number)), starts(number + 1), "word {number}");
        }
        assert_eq!(starts(PERIOD), 1);
        assert_eq!(next(starts(PERIOD - 1)), 1, "the period is the stream's");
    }

    #[test]
    fn parts_make_up_the_whole() {
        let whole: Vec<_> = Stream::new(0, 1000).collect();
        let parts: Vec<_> = (0..4).flat_map(|part| Stream::new(250 * part, 250)).collect();
        assert_eq!(whole, parts);
        assert_eq!(whole[0], 2);
    }
}
