//! Bytes that others may write while they are read.

use crate::prefetch::{self, LINE};
use crate::words;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a peer may write at any moment: read by copies only, never by reference.
///
/// Every read is a copy. A peer of this library does not write to a message that it has sent; a
/// hostile one could, and then two reads of one byte may differ. A program that checks a value and
/// then uses it therefore reads it once. A word of 8 bytes at an offset that is a multiple of 8 is
/// read whole.
///
/// # Example
///
/// ```
/// # use cci_mem::view::View;
/// fn header(view: View<'_>) -> Option<(u32, u64)> {
///     Some((u32::from_le_bytes(view.array(0)?), u64::from_le_bytes(view.array(8)?)))
/// }
/// assert_eq!(header(View::of(&mut [1; 16])), Some((0x0101_0101, 0x0101_0101_0101_0101)));
/// assert_eq!(header(View::of(&mut [1; 15])), None);
/// ```
#[derive(Clone, Copy)]
pub struct View<'a> {
    start: *const u8,
    len: usize,
    bytes: PhantomData<&'a [u8]>,
}

// SAFETY: it reads through atomics, of which any thread may make use.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    /// Returns the view of the `len` bytes at `start`.
    ///
    /// # Safety
    ///
    /// `len` bytes are readable at `start` as long as the view lives, and no `&[u8]` covers them;
    /// or `len` is 0.
    #[inline]
    #[must_use]
    pub unsafe fn new(start: *const u8, len: usize) -> Self {
        Self { start, len, bytes: PhantomData }
    }

    /// Returns the view of bytes that nobody else reads or writes while the view lives. They are
    /// borrowed alone because a view reads by atomics, which need memory that may be written.
    #[must_use]
    pub fn of(bytes: &'a mut [u8]) -> Self {
        Self { start: bytes.as_mut_ptr(), len: bytes.len(), bytes: PhantomData }
    }

    /// Returns the address of the first byte, for bindings to languages that read by address.
    #[inline]
    #[must_use]
    pub fn address(&self) -> *const u8 {
        self.start
    }

    /// Returns the number of bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the `len` bytes from `offset` on; `None` when they do not lie inside as a whole.
    #[must_use]
    pub fn part(&self, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then_some(Self { start: self.start.wrapping_add(offset), len, bytes: PhantomData })
    }

    /// Asks the processor for the first two lines and the last one: for who is going to read the
    /// bytes, and has several hundred instructions to do before. A peer's processor has the lines,
    /// and each takes some 100 ns from there, unless they are on their way together. Asking for all
    /// lines helps nobody: they come one after the other, and what is sent next waits behind them.
    #[inline]
    pub fn prefetch(&self) {
        let last = self.len.saturating_sub(1);
        for offset in [0, last.min(LINE), last] {
            prefetch::at::<false>(self.start.wrapping_add(offset));
        }
    }

    /// Copies `N` bytes from `offset` on; `None` when they do not lie inside as a whole.
    #[inline]
    #[must_use]
    pub fn array<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let part = self.part(offset, N)?;
        let mut array = [0; N];
        part.copy_to(0, &mut array);
        Some(array)
    }

    /// Copies 8 bytes from `offset` on as a number of this host's byte order; `None` when they do
    /// not lie inside as a whole.
    #[inline]
    #[must_use]
    pub fn word(&self, offset: usize) -> Option<u64> {
        let end = offset.checked_add(8)?;
        let start = self.start.wrapping_add(offset).cast::<u64>();
        if end <= self.len && start.is_aligned() {
            // SAFETY: inside the view, aligned, and read as all others read it: atomically.
            return Some(unsafe { AtomicU64::from_ptr(start.cast_mut()) }.load(Ordering::Relaxed));
        }
        self.array(offset).map(u64::from_ne_bytes)
    }

    /// Copies bytes from `offset` on, as many as `target` is long or as there are, and returns
    /// their number.
    #[inline]
    pub fn copy_to(&self, offset: usize, target: &mut [u8]) -> usize {
        let len = self.len.saturating_sub(offset).min(target.len());
        if len > 0 {
            // SAFETY: inside the view, readable by the contract of `new`. `target` is a reference,
            // so that it overlaps no memory that others write; whoever writes the source meanwhile
            // spoils these bytes only.
            unsafe { words::copy_out(self.start.wrapping_add(offset), target.as_mut_ptr(), len) };
        }
        len
    }

    /// Copies all bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.copy_to(0, &mut bytes);
        bytes
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::View;

    #[test]
    fn reads_stay_inside() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut borrowed = bytes.clone();
        let view = View::of(&mut borrowed);
        assert_eq!(view.array::<4>(96), Some([96, 97, 98, 99]));
        assert_eq!((view.array::<4>(97), view.array::<1>(usize::MAX)), (None, None));
        assert_eq!((view.word(93), view.word(usize::MAX - 3)), (None, None));
        for at in 0..=92 {
            let expected: [u8; 8] = bytes[at..at + 8].try_into().expect("8 bytes");
            assert_eq!(view.word(at), Some(u64::from_ne_bytes(expected)), "at {at}");
        }
        assert_eq!(view.part(90, 10).map(|part| part.to_vec()), Some(bytes[90..].to_vec()));
        assert!(view.part(90, 11).is_none() && view.part(usize::MAX, 2).is_none());
        let mut target = [0; 7];
        assert_eq!((view.copy_to(95, &mut target), target), (5, [95, 96, 97, 98, 99, 0, 0]));
        assert_eq!(view.copy_to(100, &mut target), 0);
        assert_eq!(View::of(&mut []).to_vec(), Vec::<u8>::new());
    }
}
