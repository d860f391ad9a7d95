//! Records which pieces of a cut message or frame have arrived. All have one size but the last,
//! which is not longer.

use alloc::vec::Vec;

/// Pieces that are kept account of; what is cut into more is not put together.
const MAX_PIECES: usize = 1 << 16;

/// Account of the pieces of one thing, in any order and each more than once. Which have come is
/// marked in bits that lie elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces {
    pub(crate) total: u32,
    /// Pieces but for the last.
    filled: u32,
    /// Their size (0: none has come), and where the last begins.
    size: u32,
    tail: Option<u32>,
}

impl Pieces {
    /// Of a thing of so many bytes none has come.
    pub(crate) const fn of(total: u32) -> Self {
        Self { total, filled: 0, size: 0, tail: None }
    }

    /// Notes a piece that lies within the thing; false if it has come, or is none of those that a
    /// thing is cut into.
    pub(crate) fn note(&mut self, seen: &mut Vec<u64>, at: u32, len: u32) -> bool {
        if self.total - at == len {
            return self.tail.replace(at).is_none();
        }
        if self.size == 0 {
            self.size = len;
        }
        let number = (at / self.size) as usize;
        if len != self.size || !at.is_multiple_of(self.size) || number >= MAX_PIECES {
            return false;
        }
        if seen.len() <= number / 64 {
            seen.resize(number / 64 + 1, 0);
        }
        let bit = 1 << (number % 64);
        let is_new = seen[number / 64] & bit == 0;
        seen[number / 64] |= bit;
        self.filled += u32::from(is_new);
        is_new
    }

    /// Whether every piece has come.
    pub(crate) fn is_whole(&self) -> bool {
        let Some(tail) = self.tail else { return false };
        let fits = tail == 0 || self.total - tail <= self.size;
        fits && u64::from(self.filled) * u64::from(self.size) == u64::from(tail)
    }
}
