//! The number of a registration, as it stands in a handle.

/// An odd number, and its inverse modulo 2^64: they spread index and generation over the whole
/// word.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const GATHER: u64 = inverse(SPREAD);

const fn inverse(odd: u64) -> u64 {
    // Newton's iteration doubles the number of right bits; it begins with three.
    let mut x = odd;
    let mut step = 0;
    while step < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        step += 1;
    }
    x
}

/// Which registration of an endpoint, in which life of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its place.
    pub index: u32,
    /// Counts the lives of the place.
    pub generation: u32,
}

impl Registration {
    /// In one word.
    #[inline]
    #[must_use]
    pub const fn word(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The first word of a handle: the number, mixed with the endpoint's key.
    #[inline]
    #[must_use]
    pub const fn mixed(self, key: u64) -> u64 {
        (self.word() ^ key).wrapping_mul(SPREAD)
    }

    /// The number in the first word of a handle; any, if the word was invented.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "each field is cut out of the word")]
    pub const fn unmixed(key: u64, word: u64) -> Self {
        let plain = word.wrapping_mul(GATHER) ^ key;
        Self { index: plain as u32, generation: (plain >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::{GATHER, Registration, SPREAD};

    #[test]
    fn mixing_is_undone() {
        assert_eq!(SPREAD.wrapping_mul(GATHER), 1);
        for (index, generation) in [(0, 1), (65535, 3), (7, u32::MAX)] {
            let number = Registration { index, generation };
            assert_eq!(Registration::unmixed(99, number.mixed(99)), number);
        }
    }
}
