//! Bytes that a program lends for a call: an address and a length, and never a reference.

#[cfg(not(loom))]
use crate::words;
use std::fmt;
use std::io::IoSlice;
use std::marker::PhantomData;

/// Bytes that a caller lends to be copied.
///
/// A program may send from memory that is registered, which a peer writes at any moment, and a C
/// program from memory that another of its threads writes. So no `&[u8]` covers the bytes: they are
/// read once, by a copy. Who writes them meanwhile spoils the copy only.
///
/// # Example
///
/// ```
/// use cci_mem::source::Source;
///
/// let source = Source::from(&b"some bytes"[..]);
/// let mut target = [0; 5];
/// assert_eq!((source.copy_to(5, &mut target), &target), (5, b"bytes"));
/// ```
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Source<'a> {
    start: *const u8,
    len: usize,
    bytes: PhantomData<&'a [u8]>,
}

/// Bytes of the shortest copy to lines of a peer that the C library makes no better. A longer one
/// it makes by `rep movsb`, which takes three times as long on AMD (Zen 3, Zen 4) where the target
/// begins a few bytes further in its page than the source.
#[cfg(not(loom))]
const MANY: usize = 256;

const _: () = assert!(size_of::<Source<'_>>() == size_of::<libc::iovec>());
const _: () = assert!(std::mem::offset_of!(Source<'_>, start) == std::mem::offset_of!(libc::iovec, iov_base));
const _: () = assert!(std::mem::offset_of!(Source<'_>, len) == std::mem::offset_of!(libc::iovec, iov_len));

// SAFETY: bytes to be read, as a shared reference to them.
unsafe impl Send for Source<'_> {}
// SAFETY: as above.
unsafe impl Sync for Source<'_> {}

impl<'a> Source<'a> {
    /// Returns the `len` bytes at `start`.
    ///
    /// # Safety
    ///
    /// The bytes are readable as long as `'a` lasts, or `len` is 0. Others may write them
    /// meanwhile.
    #[inline(always)]
    #[must_use]
    pub const unsafe fn new(start: *const u8, len: usize) -> Self {
        Self { start, len, bytes: PhantomData }
    }

    /// Returns the number of bytes.
    #[inline(always)]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    #[inline(always)]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether there are bytes without an address.
    #[inline]
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.start.is_null() && self.len > 0
    }

    /// Returns the bytes up to the last whole word of 8 bytes. A compiler that sees this writes no
    /// code for a rest.
    #[inline(always)]
    #[must_use]
    pub const fn whole_words(self) -> Self {
        Self { len: self.len & !7, ..self }
    }

    /// Copies bytes from `offset` on, as many as `target` is long or as there are, and returns
    /// their number.
    #[inline]
    pub fn copy_to(&self, offset: usize, target: &mut [u8]) -> usize {
        let len = self.len.saturating_sub(offset).min(target.len());
        if len > 0 {
            // SAFETY: inside the bytes that the contract of `new` has. `target` is exclusive, so
            // that it overlaps none of them.
            unsafe { std::ptr::copy_nonoverlapping(self.start.add(offset), target.as_mut_ptr(), len) };
        }
        len
    }

    /// Copies all bytes to shared memory.
    ///
    /// # Safety
    ///
    /// As many bytes are writable at `target`, are none of these bytes, and nobody reads them
    /// before they are published.
    #[cfg(not(loom))]
    #[inline]
    pub unsafe fn copy_to_shared(&self, target: *mut u8) {
        // SAFETY: readable by the contract of `new`, writable by that of this function, by which
        // they do not overlap.
        unsafe {
            match self.len {
                0 => {}
                len if len < MANY => std::ptr::copy_nonoverlapping(self.start, target, len),
                len => words::copy_in(self.start, target, len),
            }
        }
    }

    /// Copies all bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.copy_to(0, &mut bytes);
        bytes
    }

    /// Returns where the bytes begin, for code that reads them once by itself.
    #[cfg(not(loom))]
    #[inline(always)]
    #[must_use]
    pub const fn start(&self) -> *const u8 {
        self.start
    }

    /// Reads the whole words of 8 bytes in order, as numbers of this host's byte order.
    #[inline(always)]
    pub(crate) fn words(&self) -> Words<'a> {
        Words { at: self.start, left: self.len / 8, bytes: PhantomData }
    }

    /// Reads the bytes behind the last whole word, and zeroes. `None`: there are none. A copy of
    /// unknown length would be a call, and the way of a message needs no stack without one.
    #[inline(always)]
    pub(crate) fn last_word(&self) -> Option<u64> {
        let rest = self.len % 8;
        if rest == 0 {
            return None;
        }
        // SAFETY: each read lies inside the bytes that the contract of `new` has.
        let word = unsafe {
            if self.len >= 8 {
                u64::from_le_bytes(self.read(self.len - 8)) >> (8 * (8 - rest as u32))
            } else {
                self.short_word()
            }
        };
        Some(u64::from_ne_bytes(word.to_le_bytes()))
    }

    /// Reads fewer than 8 bytes, the last of them first.
    ///
    /// # Safety
    ///
    /// There are fewer than 8 bytes.
    #[inline(always)]
    unsafe fn short_word(&self) -> u64 {
        let (mut word, mut end) = (0, self.len);
        // SAFETY: 4, 2 and 1 bytes are what the bits of the length stand for, so that every read
        // lies inside.
        unsafe {
            if self.len & 4 != 0 {
                end -= 4;
                word = u64::from(u32::from_le_bytes(self.read(end)));
            }
            if self.len & 2 != 0 {
                end -= 2;
                word = word << 16 | u64::from(u16::from_le_bytes(self.read(end)));
            }
            if self.len & 1 != 0 {
                word = word << 8 | u64::from(self.start.read());
            }
        }
        word
    }

    /// # Safety
    ///
    /// `N` bytes from `offset` on are inside.
    #[inline(always)]
    unsafe fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        // SAFETY: inside by the contract of this function, readable by that of `new`.
        unsafe { self.start.add(offset).cast::<[u8; N]>().read() }
    }
}

impl<'a> From<&'a [u8]> for Source<'a> {
    #[inline(always)]
    fn from(bytes: &'a [u8]) -> Self {
        // SAFETY: readable as long as the reference lives.
        unsafe { Self::new(bytes.as_ptr(), bytes.len()) }
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({} bytes)", self.len)
    }
}

/// The whole words of a source.
pub(crate) struct Words<'a> {
    at: *const u8,
    left: usize,
    bytes: PhantomData<&'a [u8]>,
}

impl Iterator for Words<'_> {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: `left` words are inside of the source, from `at` on.
        unsafe {
            let word = self.at.cast::<u64>().read_unaligned();
            self.at = self.at.add(8);
            Some(word)
        }
    }
}

/// A list of sources, which the program may write, too: entries are read, never borrowed.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    start: *const Source<'a>,
    count: usize,
    list: PhantomData<&'a [Source<'a>]>,
}

impl<'a> Sources<'a> {
    /// Returns the `count` entries at `start`, each as of `struct iovec`.
    ///
    /// # Safety
    ///
    /// The entries are readable as long as `'a` lasts, or `count` is 0. Each of them, whenever it
    /// is read, meets the contract of [`Source::new`].
    #[inline]
    #[must_use]
    pub const unsafe fn new(start: *const Source<'a>, count: usize) -> Self {
        Self { start, count, list: PhantomData }
    }

    /// Returns the entry with this number. An entry may differ from what an earlier call returned:
    /// the program changed it.
    #[inline]
    #[must_use]
    pub fn get(&self, number: usize) -> Option<Source<'a>> {
        // SAFETY: inside the list by the contract of `new`.
        (number < self.count).then(|| unsafe { self.start.add(number).read_unaligned() })
    }

    /// Reads the entries in order.
    pub fn iter(self) -> impl Iterator<Item = Source<'a>> {
        (0..self.count).filter_map(move |number| self.get(number))
    }
}

impl<'a> From<&'a [Source<'a>]> for Sources<'a> {
    #[inline]
    fn from(parts: &'a [Source<'a>]) -> Self {
        // SAFETY: each entry was made by the contract of `Source::new`, and lives as long as the
        // list is borrowed.
        unsafe { Self::new(parts.as_ptr(), parts.len()) }
    }
}

impl<'a> From<&'a [IoSlice<'a>]> for Sources<'a> {
    #[inline]
    fn from(parts: &'a [IoSlice<'a>]) -> Self {
        // SAFETY: an `IoSlice` has the layout of an iovec, and so has a source; the parts are
        // readable as long as they are borrowed.
        unsafe { Self::new(parts.as_ptr().cast(), parts.len()) }
    }
}

impl fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sources({} parts)", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, Sources};
    use std::io::IoSlice;

    #[test]
    fn words_are_those_of_the_bytes_and_zeroes() {
        let bytes: Vec<u8> = (1..=40).collect();
        for (offset, len) in (0..8).flat_map(|offset| (0..=32).map(move |len| (offset, len))) {
            let source = Source::from(&bytes[offset..offset + len]);
            let found: Vec<u8> = source.words().chain(source.last_word()).flat_map(u64::to_ne_bytes).collect();
            let mut expected = bytes[offset..offset + len].to_vec();
            expected.resize(len.next_multiple_of(8), 0);
            assert_eq!(found, expected, "{len} bytes from {offset} on");
            assert_eq!(source.whole_words().len(), len / 8 * 8);
        }
    }

    #[test]
    fn copies_stay_inside() {
        let source = Source::from(&b"abc"[..]);
        let mut target = [0; 4];
        assert_eq!((source.copy_to(1, &mut target), target), (2, *b"bc\0\0"));
        assert_eq!((source.copy_to(4, &mut target), source.copy_to(usize::MAX, &mut target)), (0, 0));
        assert_eq!(source.to_vec(), b"abc");
    }

    #[test]
    fn empty_sources_need_no_address() {
        // SAFETY: no bytes.
        let (empty, missing) = unsafe { (Source::new(std::ptr::null(), 0), Source::new(std::ptr::null(), 1)) };
        assert!(empty.to_vec().is_empty() && empty.words().next().is_none() && empty.last_word().is_none());
        assert!(missing.is_missing() && !empty.is_missing());
    }

    #[test]
    fn a_list_has_its_entries() {
        let parts = [&b"a"[..], b"", b"bc"].map(IoSlice::new);
        let list = Sources::from(&parts[..]);
        assert_eq!(list.iter().map(|part| part.to_vec()).collect::<Vec<_>>(), [b"a".to_vec(), vec![], b"bc".to_vec()]);
        assert!(list.get(3).is_none());
        let parts = [&b"a"[..], b"bc"].map(Source::from);
        let list = Sources::from(&parts[..]);
        assert_eq!(list.iter().map(|part| part.to_vec()).collect::<Vec<_>>(), [b"a".to_vec(), b"bc".to_vec()]);
    }
}
