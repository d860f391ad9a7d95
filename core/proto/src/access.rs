//! What an RMA does with a peer's memory.

use crate::Rights;

/// An atomic operation on one word of a peer's memory, which brings the word's old value.
///
/// Of operands for a word of 32 bits the lower half counts.
///
/// # Example
///
/// ```
/// # use cci_proto as cci;
/// use cci::Atomic;
///
/// assert_eq!(Atomic::FetchAdd(2).apply(u64::from(u32::MAX), 4), Some(1), "it wraps around");
/// let lock = Atomic::CompareSwap { expected: 0, desired: 7 };
/// assert_eq!((lock.apply(0, 8), lock.apply(3, 8)), (Some(7), None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atomic {
    /// Adds this to the word, wrapping around.
    FetchAdd(u64),
    /// Stores `desired` where the word is `expected`.
    CompareSwap {
        /// The value that is replaced.
        expected: u64,
        /// What replaces it.
        desired: u64,
    },
}

impl Atomic {
    /// Returns what a word of `len` bytes, 4 or 8, becomes that has the value `old`; `None`: it
    /// stays as it is.
    #[must_use]
    pub const fn apply(self, old: u64, len: u64) -> Option<u64> {
        let mask = if len == 4 { u32::MAX as u64 } else { u64::MAX };
        match self {
            Self::FetchAdd(addend) => Some(old.wrapping_add(addend) & mask),
            Self::CompareSwap { expected, desired } if old == expected & mask => Some(desired & mask),
            Self::CompareSwap { .. } => None,
        }
    }

    /// Whether there are words of this many bytes.
    #[must_use]
    pub const fn is_word(len: u64) -> bool {
        len == 4 || len == 8
    }

    /// Returns the bytes in memory of a word with this value: the first 4 of a short one, all of a
    /// long one.
    #[must_use]
    pub const fn bytes(value: u64, len: u64) -> [u8; 8] {
        // On a processor that stores the upper half first, the lower half comes to the front.
        let shift = if cfg!(target_endian = "big") && len == 4 { 32 } else { 0 };
        (value << shift).to_ne_bytes()
    }
}

/// What an RMA does with the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Copies it to the local memory.
    Read,
    /// Copies the local memory to it.
    Write,
    /// Changes one word of it, and copies the old value to the local memory.
    Atomic(Atomic),
    /// Copies the local memory to memory that the peer gives for it, which becomes a message there.
    Large,
}

impl Access {
    /// Whether it begins with a request to the peer; otherwise with bytes.
    #[inline]
    #[must_use]
    pub const fn is_request(self) -> bool {
        !matches!(self, Self::Write)
    }

    /// The rights to the peer's memory that it needs.
    #[inline]
    #[must_use]
    pub const fn rights(self) -> Rights {
        match self {
            Self::Read => Rights::READ,
            Self::Write | Self::Large => Rights::WRITE,
            Self::Atomic(_) => Rights::READ_WRITE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Atomic;

    #[test]
    fn of_a_short_word_the_lower_halves_count() {
        let high = 7 << 32;
        assert_eq!(Atomic::FetchAdd(high | 1).apply(5, 4), Some(6));
        assert_eq!(Atomic::CompareSwap { expected: high | 5, desired: high | 9 }.apply(5, 4), Some(9));
        assert_eq!(Atomic::CompareSwap { expected: high | 5, desired: 9 }.apply(5, 8), None);
        assert_eq!(Atomic::FetchAdd(1).apply(u64::MAX, 8), Some(0));
    }

    #[test]
    fn the_bytes_are_those_of_the_word() {
        assert_eq!(Atomic::bytes(0x0102_0304, 4)[..4], 0x0102_0304_u32.to_ne_bytes());
        assert_eq!(Atomic::bytes(0x0102_0304_0506_0708, 8), 0x0102_0304_0506_0708_u64.to_ne_bytes());
    }
}
