//! Memory of the program that an operation is of.

use cci::__binding::Source;
use cci::{HeapBytes, Memory, View};
use std::sync::Arc;

/// Pieces of memory of one operation at most.
pub const MAX_SEGMENTS: usize = 4;
/// What is copied at once between segments, bytes.
const PIECE: usize = 512;

/// The memory of an operation: its bytes are those of all segments, one after the other.
///
/// # Example
///
/// ```
/// use cci_fabric::Segments;
/// use std::sync::Arc;
///
/// let of = |len| cci::Memory::of_bytes(&Arc::new(cci::HeapBytes::new(vec![0; len])));
/// assert_eq!(Segments::from(vec![of(3), of(4)]).len(), 7);
/// assert!(Segments::None.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_enums, reason = "none, one or several")]
pub enum Segments {
    /// No bytes.
    #[default]
    None,
    /// As most have.
    One(Memory),
    /// Up to [`MAX_SEGMENTS`].
    Many(Vec<Memory>),
}

impl From<Memory> for Segments {
    fn from(one: Memory) -> Self {
        Self::One(one)
    }
}

impl From<Vec<Memory>> for Segments {
    fn from(many: Vec<Memory>) -> Self {
        Self::Many(many)
    }
}

impl Segments {
    /// Bytes, of all together.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::One(one) => one.len(),
            Self::Many(many) => many.iter().fold(0, |sum, part| sum.saturating_add(part.len())),
        }
    }

    /// A copy of the bytes. `None`: the memory cannot be read.
    pub(crate) fn copied(&self) -> Option<Self> {
        let len = self.len();
        let copy = Self::One(Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; usize::try_from(len).ok()?]))));
        if len == 0 { Some(Self::None) } else { self.copy_to(&copy, 0, len).then_some(copy) }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn parts(&self) -> &[Memory] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    /// Calls `act` with a part, an offset in it, and the range of the `len` bytes from `offset` on
    /// that is there.
    fn runs(&self, offset: u64, len: usize, mut act: impl FnMut(&Memory, u64, std::ops::Range<usize>) -> bool) -> bool {
        let (mut skip, mut done) = (offset, 0);
        for part in self.parts() {
            if done == len {
                break;
            }
            if skip >= part.len() {
                skip -= part.len();
                continue;
            }
            let size = usize::try_from(part.len() - skip).unwrap_or(usize::MAX).min(len - done);
            if !act(part, skip, done..done + size) {
                return false;
            }
            (skip, done) = (0, done + size);
        }
        done == len
    }

    #[inline]
    pub(crate) fn copy_out(&self, offset: u64, target: &mut [u8]) -> bool {
        match self {
            Self::One(one) => target.is_empty() || one.copy_out(offset, target),
            _ => self.runs(offset, target.len(), |part, at, range| part.copy_out(at, &mut target[range])),
        }
    }

    #[inline]
    pub(crate) fn copy_in(&self, offset: u64, bytes: &[u8]) -> bool {
        match self {
            Self::One(one) => bytes.is_empty() || one.copy_in(offset, bytes),
            _ => self.runs(offset, bytes.len(), |part, at, range| part.copy_in(at, &bytes[range])),
        }
    }

    /// Copies `len` bytes of a message, from `from` on.
    pub(crate) fn copy_view(&self, offset: u64, view: &View<'_>, from: usize, len: usize) -> bool {
        self.runs(offset, len, |part, at, range| part.copy_view(at, view, from + range.start, range.len()))
    }

    /// Copies `len` bytes to others, from their `at` on.
    pub(crate) fn copy_to(&self, other: &Self, at: u64, len: u64) -> bool {
        let mut piece = [0; PIECE];
        let mut done = 0;
        while done < len {
            let size = usize::try_from(len - done).unwrap_or(PIECE).min(PIECE);
            if !self.copy_out(done, &mut piece[..size]) || !other.copy_in(at + done, &piece[..size]) {
                return false;
            }
            done += size as u64;
        }
        true
    }

    /// The memory of `len` bytes from `offset` on.
    pub(crate) fn part(&self, offset: u64, len: u64) -> Self {
        let mut parts = Vec::new();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.runs(offset, len, |part, at, range| {
            parts.extend(part.part(at, range.len() as u64));
            true
        });
        match parts.len() {
            0 => Self::None,
            1 => parts.pop().map_or(Self::None, Self::One),
            _ => Self::Many(parts),
        }
    }

    #[inline]
    pub(crate) fn source(&self) -> Option<Source<'_>> {
        if let Self::One(one) = self { one.source(usize::try_from(one.len()).ok()?) } else { None }
    }

    /// Whether an operation can be of them.
    pub(crate) fn are_right(&self) -> bool {
        self.parts().len() <= MAX_SEGMENTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci::HeapBytes;
    use std::sync::Arc;

    fn memory(len: usize) -> Memory {
        Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; len])))
    }

    #[test]
    fn bytes_go_through_segments_as_through_one() {
        let segments = Segments::Many([3, 0, 5, 1].map(memory).into());
        let mut bytes: Vec<u8> = (1..=9).collect();
        assert!(segments.len() == 9 && !segments.copy_in(1, &bytes) && segments.copy_in(0, &bytes));
        for offset in 0..=9_usize {
            for len in 0..=9 - offset {
                let wanted = &bytes[offset..offset + len];
                let mut copy = vec![0; len];
                assert!(segments.copy_out(offset as u64, &mut copy) && copy == wanted);
                let part = segments.part(offset as u64, len as u64);
                assert!(part.len() == len as u64 && part.copy_out(0, &mut copy) && copy == wanted);
            }
        }
        let other = Segments::One(memory(12));
        let mut copy = vec![0; 9];
        assert!(segments.copy_to(&other, 3, 9) && other.copy_out(3, &mut copy) && copy == bytes);
        assert!(segments.copy_view(2, &View::of(&mut bytes), 4, 5) && segments.copy_out(0, &mut copy));
        assert_eq!(copy, [1, 2, 5, 6, 7, 8, 9, 8, 9]);
        assert!(Segments::None.copy_in(0, &[]) && !Segments::None.copy_in(0, &[1]));
        assert!(!Segments::Many(vec![memory(1); MAX_SEGMENTS + 1]).are_right());
    }
}
