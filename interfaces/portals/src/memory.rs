//! The memory of a descriptor: parts, one behind the other.

use crate::types::MAX_PARTS;
use cci::{Memory, View};

/// Bytes of a message.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// Private to this process.
    Bytes(&'a [u8]),
    /// A peer can write them.
    View(View<'a>),
}

impl Source<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::View(view) => view.len(),
        }
    }

    /// Copies bytes from `offset` on, as many as there are, and returns their number.
    pub(crate) fn copy_to(&self, offset: usize, target: &mut [u8]) -> usize {
        match self {
            Self::Bytes(bytes) => {
                let bytes = bytes.get(offset..).unwrap_or_default();
                let len = bytes.len().min(target.len());
                target[..len].copy_from_slice(&bytes[..len]);
                len
            }
            Self::View(view) => view.copy_to(offset, target),
        }
    }
}

/// The parts of a descriptor's memory.
#[derive(Debug)]
pub(crate) struct Region {
    parts: Vec<Memory>,
    len: u64,
}

impl Region {
    /// `None`: it is longer than any memory.
    pub(crate) fn new(parts: Vec<Memory>) -> Option<Self> {
        let len = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.len()))?;
        (parts.len() <= MAX_PARTS).then_some(Self { parts, len })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The parts that have bytes.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Memory> {
        self.parts.iter().filter(|part| !part.is_empty())
    }

    pub(crate) fn contains(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// Calls `act` for each run of bytes inside of one part: the part, the offset there, and the
    /// range of the whole. Stops when it says false, and returns that; nothing is called where the
    /// bytes do not lie inside.
    fn runs(&self, offset: u64, len: usize, mut act: impl FnMut(&Memory, u64, std::ops::Range<usize>) -> bool) -> bool {
        // No bytes are inside of anything: a put may be cut to none behind the end.
        if len > 0 && !self.contains(offset, len as u64) {
            return false;
        }
        let (mut skip, mut done) = (offset, 0_usize);
        for part in &self.parts {
            if done == len {
                break;
            }
            if skip >= part.len() {
                skip -= part.len();
                continue;
            }
            let size = usize::try_from(part.len() - skip).map_or(len - done, |left| left.min(len - done));
            if !act(part, skip, done..done + size) {
                return false;
            }
            (skip, done) = (0, done + size);
        }
        done == len
    }

    /// Copies out; false where the bytes do not lie inside.
    #[inline]
    pub(crate) fn copy_out(&self, offset: u64, target: &mut [u8]) -> bool {
        let len = target.len();
        if let [part] = &self.parts[..] {
            return len == 0 || part.copy_out(offset, target);
        }
        self.runs(offset, len, |part, at, range| part.copy_out(at, &mut target[range]))
    }

    /// Copies in; false where the bytes do not lie inside.
    #[inline]
    pub(crate) fn copy_in(&self, offset: u64, bytes: &[u8]) -> bool {
        if let [part] = &self.parts[..] {
            return bytes.is_empty() || part.copy_in(offset, bytes);
        }
        self.runs(offset, bytes.len(), |part, at, range| part.copy_in(at, &bytes[range]))
    }

    /// Copies `len` bytes of a message in, from `from` on.
    #[inline]
    pub(crate) fn copy_from(&self, offset: u64, source: &Source<'_>, from: usize, len: usize) -> bool {
        let view = match source {
            Source::Bytes(bytes) => {
                return bytes.get(from..from + len).is_some_and(|bytes| self.copy_in(offset, bytes));
            }
            Source::View(view) => view,
        };
        if let [part] = &self.parts[..] {
            return len == 0 || part.copy_view(offset, view, from, len);
        }
        self.runs(offset, len, |part, at, range| part.copy_view(at, view, from + range.start, range.len()))
    }

    /// The parts of these bytes, each as memory of its own.
    pub(crate) fn cut(&self, offset: u64, len: u64) -> Option<Vec<Memory>> {
        let mut parts = Vec::with_capacity(self.parts.len());
        let len = usize::try_from(len).ok()?;
        let is_inside = self.runs(offset, len, |part, at, range| {
            parts.extend(part.part(at, range.len() as u64));
            true
        });
        is_inside.then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::buffer;

    #[test]
    fn bytes_go_through_parts_as_through_one() {
        let parts: Vec<_> = [3, 0, 5, 1].map(|len| buffer(vec![0; len])).into();
        let region = Region::new(parts).expect("short");
        let bytes: Vec<u8> = (1..=9).collect();
        assert!(region.len() == 9 && region.copy_in(0, &bytes) && !region.copy_in(1, &bytes));
        for offset in 0..=9_usize {
            for len in 0..=9 - offset {
                let mut copy = vec![0; len];
                assert!(region.copy_out(offset as u64, &mut copy) && copy == bytes[offset..offset + len]);
                let cut = region.cut(offset as u64, len as u64).expect("inside");
                assert_eq!(cut.iter().map(Memory::len).sum::<u64>(), len as u64);
                let again = Region::new(cut).expect("short");
                assert!(again.copy_out(0, &mut copy) && copy == bytes[offset..offset + len]);
            }
        }
        assert!(region.cut(5, 5).is_none() && !region.contains(u64::MAX, 2));
        assert!(region.copy_in(20, &[]) && region.copy_out(20, &mut []) && region.cut(20, 0).is_some());
    }

    #[test]
    fn a_view_is_copied_as_bytes_are() {
        let mut bytes: Vec<u8> = (0..12_295_u32).map(|number| number as u8).collect();
        let wanted = bytes[5..].to_vec();
        let source = Source::View(View::of(&mut bytes));
        for parts in [vec![wanted.len()], vec![7, wanted.len() - 7]] {
            let region = Region::new(parts.into_iter().map(|len| buffer(vec![0; len])).collect()).expect("short");
            assert!(region.copy_from(0, &source, 5, wanted.len()));
            let mut copy = vec![0; wanted.len()];
            assert!(region.copy_out(0, &mut copy) && copy == wanted);
            assert!(!region.copy_from(0, &source, 6, wanted.len()), "it ends a byte early");
        }
    }
}
