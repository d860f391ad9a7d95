//! A range of this process's memory that RMA may touch.

use crate::arena::Allocation;
use crate::pages::SharedPages;
use crate::segment::Segment;
use crate::source::Source;
use crate::view::View;
use crate::{arena, crc, words};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Address and length of a range that stays valid while it is registered.
///
/// Programs register what owns its bytes; this type is for those that name memory by its address
/// ([`Memory::new`]).
///
/// # Example
///
/// ```
/// # use cci_mem::memory as cci;
/// use cci::{HeapBytes, Memory};
/// use std::sync::Arc;
///
/// let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(vec![1; 100])));
/// let mut bytes = [0; 4];
/// assert!(memory.copy_out(96, &mut bytes) && bytes == [1; 4]);
/// assert!(!memory.copy_out(97, &mut bytes), "beyond the end");
/// ```
#[derive(Clone)]
pub struct Memory {
    start: usize,
    len: u64,
    /// What frees the range when it is dropped.
    _owner: Owner,
}

/// What keeps a range. A clone allocates nothing, but for a range around several library
/// allocations.
#[derive(Clone)]
enum Owner {
    /// The library allocations that the range touches, which stay mapped as long as this value
    /// lives; or the program alone.
    Segments {
        _first: Option<Arc<Segment>>,
        _others: Vec<Arc<Segment>>,
    },
    Allocation {
        _allocation: Arc<Allocation>,
    },
    Bytes {
        _bytes: Arc<HeapBytes>,
    },
    Pages {
        _pages: Arc<SharedPages>,
    },
    Words {
        _words: Arc<[AtomicU64]>,
    },
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({:#x}, {} bytes)", self.start, self.len)
    }
}

/// The bytes of a vector, as memory that others may write: no reference to them is formed until
/// [`HeapBytes::into_vec`]. [`Memory::of_bytes`] names them, again and again without an allocation.
///
/// # Example
///
/// ```
/// # use cci_mem::memory as cci;
/// use cci::{HeapBytes, Memory};
/// use std::sync::Arc;
///
/// let bytes = Arc::new(HeapBytes::new(vec![0; 100]));
/// assert!(Memory::of_bytes(&bytes).copy_in(96, b"tail"));
/// let bytes = Arc::into_inner(bytes).map(HeapBytes::into_vec);
/// assert_eq!(bytes.as_deref().map(|bytes| &bytes[96..]), Some(&b"tail"[..]));
/// ```
pub struct HeapBytes {
    start: *mut u8,
    len: usize,
    capacity: usize,
}

// SAFETY: it owns its bytes, and reaches them through raw pointers only.
unsafe impl Send for HeapBytes {}
// SAFETY: as above.
unsafe impl Sync for HeapBytes {}

impl HeapBytes {
    /// Takes the bytes over.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let mut bytes = ManuallyDrop::new(bytes);
        Self { start: bytes.as_mut_ptr(), len: bytes.len(), capacity: bytes.capacity() }
    }

    /// Gives the bytes back. Nobody else has a [`Memory`] of them: it would keep this value.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        let Self { start, len, capacity } = *ManuallyDrop::new(self);
        // SAFETY: the parts of the vector that `new` took apart; this value gives them up here.
        unsafe { Vec::from_raw_parts(start, len, capacity) }
    }
}

impl Drop for HeapBytes {
    fn drop(&mut self) {
        // SAFETY: as in `into_vec`.
        drop(unsafe { Vec::from_raw_parts(self.start, self.len, self.capacity) });
    }
}

impl Memory {
    /// Names a range. This value keeps every library allocation that the range touches mapped, also
    /// after the program frees the allocation.
    ///
    /// # Safety
    ///
    /// As long as this value, a copy of it or its registration lives, the range stays mapped (or
    /// the program accepts that transfers fail, or that it gets SIGSEGV where the library copies in
    /// this process), no Rust reference to it is alive except to atomics or cells, and the program
    /// reads and writes it knowing that peers with rights do so too.
    #[must_use]
    pub unsafe fn new(start: *mut u8, len: u64) -> Self {
        let start = start.expose_provenance();
        // Null names nothing.
        let len = if start == 0 { 0 } else { len };
        let (first, others) = arena::touched(start, len);
        Self { start, len, _owner: Owner::Segments { _first: first, _others: others } }
    }

    /// Names the whole address space: offsets are addresses. It keeps nothing mapped.
    ///
    /// # Safety
    ///
    /// As [`Memory::new`], for whatever of it an operation of this side or of a peer with rights
    /// names.
    #[must_use]
    pub unsafe fn everything() -> Self {
        Self { len: u64::MAX, ..Self::none() }
    }

    /// Names nothing.
    #[must_use]
    pub fn none() -> Self {
        Self { start: 0, len: 0, _owner: Owner::Segments { _first: None, _others: Vec::new() } }
    }

    /// Names the bytes of a vector, which live as long as this value, a copy of it or its
    /// registration.
    #[must_use]
    pub fn of_bytes(bytes: &Arc<HeapBytes>) -> Self {
        let owner = Owner::Bytes { _bytes: Arc::clone(bytes) };
        Self { start: bytes.start.expose_provenance(), len: bytes.len as u64, _owner: owner }
    }

    /// Names the first `len` bytes of pages, or all of them, which live as long as this value, a
    /// copy of it or its registration.
    #[must_use]
    pub fn of_pages(pages: &Arc<SharedPages>, len: usize) -> Self {
        let owner = Owner::Pages { _pages: Arc::clone(pages) };
        Self { start: pages.start().expose_provenance(), len: len.min(pages.len()) as u64, _owner: owner }
    }

    /// Names words that live as long as this value, a copy of it or its registration.
    #[must_use]
    pub fn of_words(words: &Arc<[AtomicU64]>) -> Self {
        let owner = Owner::Words { _words: Arc::clone(words) };
        let start = words.as_ptr().cast_mut().expose_provenance();
        Self { start, len: size_of_val(&**words) as u64, _owner: owner }
    }

    /// Names the first `len` bytes of a library allocation, which is freed once this value, each
    /// copy of it and its registrations are gone.
    #[must_use]
    pub(crate) fn of_allocation(allocation: &Arc<Allocation>, len: usize) -> Self {
        let owner = Owner::Allocation { _allocation: Arc::clone(allocation) };
        Self { start: allocation.start().expose_provenance(), len: len as u64, _owner: owner }
    }

    /// Names `len` of these bytes from `offset` on, and keeps them as this value does. None when
    /// they do not lie inside as a whole.
    #[must_use]
    pub fn part(&self, offset: u64, len: u64) -> Option<Self> {
        let start = self.start.checked_add(usize::try_from(offset).ok()?)?;
        self.contains(offset, len).then(|| Self { start, len, _owner: self._owner.clone() })
    }

    /// Names bytes of a segment that another process has created, which stays mapped as long as
    /// this value lives. None when they do not lie inside as a whole.
    #[must_use]
    pub fn of_peer(segment: Arc<Segment>, offset: usize, len: usize) -> Option<Self> {
        let start = segment.base().expose_provenance().checked_add(offset)?;
        let is_inside = offset.checked_add(len)? <= segment.len();
        let owner = Owner::Segments { _first: Some(segment), _others: Vec::new() };
        is_inside.then(|| Self { start, len: len as u64, _owner: owner })
    }

    /// The first address.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it names nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first `len` bytes, to be sent; none when there are not so many.
    #[inline]
    #[must_use]
    pub fn source(&self, len: usize) -> Option<Source<'_>> {
        let is_inside = len as u64 <= self.len;
        // SAFETY: inside the range, readable by the contract of `new` as long as this value lives.
        is_inside.then(|| unsafe { Source::new(std::ptr::with_exposed_provenance(self.start), len) })
    }

    /// Whether `len` bytes from `offset` on lie inside.
    #[inline]
    #[must_use]
    pub fn contains(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// Where `len` bytes from `offset` on lie; none when they do not lie inside as a whole.
    #[inline]
    #[must_use]
    pub fn span(&self, offset: u64, len: usize) -> Option<Span> {
        let end = offset.checked_add(len as u64)?;
        let start = self.start.checked_add(usize::try_from(offset).ok()?)?;
        (end <= self.len && !self.is_empty()).then_some(Span { start, len })
    }

    /// `len` bytes from `offset` on, which stay valid as long as the result; none when they do not
    /// lie inside as a whole.
    #[inline]
    #[must_use]
    pub fn piece(&self, offset: u64, len: usize) -> Option<Piece> {
        self.keep(self.span(offset, len)?)
    }

    /// The bytes at this place, which stay valid as long as the result; none when they do not lie
    /// inside as a whole.
    #[inline]
    #[must_use]
    pub fn keep(&self, span: Span) -> Option<Piece> {
        self.holds(span).then(|| Piece { span, _owner: self._owner.clone() })
    }

    #[inline]
    fn holds(&self, span: Span) -> bool {
        let offset = span.start.wrapping_sub(self.start) as u64;
        span.start >= self.start && offset.checked_add(span.len as u64).is_some_and(|end| end <= self.len)
    }

    /// Copies the bytes at this place out, which are as many as `target` is long, and returns the
    /// register of a CRC32C after the copy, as of [`Piece::crc32c`]. Aligned words of 8 bytes are
    /// read whole. None, and nothing is copied: they do not lie inside as a whole.
    #[inline]
    #[must_use]
    pub fn copy_out_checked(&self, span: Span, register: u32, target: &mut [u8]) -> Option<u32> {
        if span.len != target.len() || !self.holds(span) {
            return None;
        }
        // SAFETY: inside the range, readable by the contract of `new`; `target` is a reference, so
        // that it is no part of registered memory.
        Some(unsafe { crc::over_copied_out(register, std::ptr::with_exposed_provenance(span.start), target) })
    }

    /// Copies bytes in; aligned words of 8 bytes are written whole. False, and nothing is written,
    /// when they do not fit inside as a whole.
    #[inline]
    #[must_use]
    pub fn copy_in(&self, offset: u64, bytes: &[u8]) -> bool {
        let Some(span) = self.span(offset, bytes.len()) else { return false };
        if !bytes.is_empty() {
            let target = std::ptr::with_exposed_provenance_mut::<u8>(span.start);
            // SAFETY: inside the range, writable by the contract of `new`; `bytes` is a reference,
            // so that it is no part of registered memory. Who uses the target meanwhile knows by
            // that contract that peers write.
            unsafe { words::copy_in(bytes.as_ptr(), target, bytes.len()) };
        }
        true
    }

    /// Copies a source in, which lies elsewhere, as [`Memory::copy_in`] copies bytes.
    #[inline]
    #[must_use]
    pub fn copy_source(&self, offset: u64, source: Source<'_>) -> bool {
        let Some(span) = self.span(offset, source.len()) else { return false };
        if !source.is_empty() {
            let target = std::ptr::with_exposed_provenance_mut::<u8>(span.start);
            // SAFETY: as in `copy_in`; the source is readable by the contract of `Source::new`, and
            // lies elsewhere.
            unsafe { words::copy_in(source.start(), target, source.len()) };
        }
        true
    }

    /// Copies `len` bytes of a view, from `from` on, in; aligned words of 8 bytes are written
    /// whole. False, and nothing is written, when they do not lie inside of both as a whole.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_mem::{memory as cci, view::View};
    /// use cci::{HeapBytes, Memory};
    /// use std::sync::Arc;
    ///
    /// let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; 4])));
    /// let mut bytes = [1, 2, 3, 4, 5];
    /// let view = View::of(&mut bytes);
    /// assert!(memory.copy_view(1, &view, 2, 3));
    /// assert!(!memory.copy_view(1, &view, 2, 4) && !memory.copy_view(0, &view, 3, 3));
    /// let mut copy = [9; 4];
    /// assert!(memory.copy_out(0, &mut copy));
    /// assert_eq!(copy, [0, 3, 4, 5]);
    /// ```
    #[inline]
    #[must_use]
    pub fn copy_view(&self, offset: u64, view: &View<'_>, from: usize, len: usize) -> bool {
        let (Some(span), Some(part)) = (self.span(offset, len), view.part(from, len)) else { return false };
        if len > 0 {
            let target = std::ptr::with_exposed_provenance_mut::<u8>(span.start);
            // SAFETY: inside the range, writable by the contract of `new`, and inside the view,
            // readable by the contract of that; who uses either meanwhile knows that it changes. A
            // view is of a message, which lies in no memory of a program.
            unsafe { words::copy_across(part.address(), target, len) };
        }
        true
    }

    /// Copies bytes in, and says the register of a CRC32C after them, as of [`Piece::crc32c`].
    /// None, and nothing is written, when they do not fit inside as a whole.
    #[inline]
    #[must_use]
    pub fn copy_in_checked(&self, offset: u64, bytes: &[u8], register: u32) -> Option<u32> {
        let span = self.span(offset, bytes.len())?;
        // SAFETY: as in `copy_in`.
        Some(unsafe { crc::over_copied(register, bytes, std::ptr::with_exposed_provenance_mut(span.start)) })
    }

    /// Copies bytes to other memory in parts of 4 KiB, aligned words of 8 bytes whole if both
    /// places are aligned. False when bytes do not lie inside as a whole; then the parts before
    /// them are copied.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_mem::memory as cci;
    /// use cci::{HeapBytes, Memory};
    /// use std::sync::Arc;
    ///
    /// let [from, to] = [7, 0].map(|byte| Memory::of_bytes(&Arc::new(HeapBytes::new(vec![byte; 9000]))));
    /// assert!(from.copy_to(1000, &to, 0, 8000) && !from.copy_to(1000, &to, 0, 8001));
    /// let mut bytes = [1; 9000];
    /// assert!(to.copy_out(0, &mut bytes));
    /// assert_eq!((bytes[7999], bytes[8000]), (7, 0));
    /// ```
    #[must_use]
    pub fn copy_to(&self, offset: u64, target: &Self, at: u64, len: u64) -> bool {
        let mut part = [0; 4096];
        let mut done = 0;
        while done < len {
            let size = usize::try_from(len - done).map_or(part.len(), |left| left.min(part.len()));
            let bytes = &mut part[..size];
            if !self.copy_out(offset.saturating_add(done), bytes) || !target.copy_in(at.saturating_add(done), bytes) {
                return false;
            }
            done += size as u64;
        }
        true
    }

    /// Gives the aligned word of `len` bytes, 4 or 8, at `offset` the value that `change` makes of
    /// its old one, and returns the old one: one atomic operation of the processor, for all that
    /// use the word by such. Nothing is written where `change` says `None`; it may be called
    /// several times. None, and nothing is written, when there is no such word inside.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_mem::memory as cci;
    /// use cci::Memory;
    /// use std::sync::Arc;
    /// use std::sync::atomic::AtomicU64;
    ///
    /// let words: Arc<[AtomicU64]> = [7, 1].map(AtomicU64::new).into_iter().collect();
    /// let memory = Memory::of_words(&words);
    /// assert_eq!(memory.update(0, 8, |old| Some(old + 1)), Some(7));
    /// assert_eq!(memory.update(0, 8, |_| None), Some(8), "looked at, and left");
    /// assert_eq!([(4, 8), (2, 4), (16, 4), (0, 2)].map(|(at, len)| memory.update(at, len, Some)), [None; 4]);
    /// ```
    #[inline]
    #[must_use]
    pub fn update(&self, offset: u64, len: usize, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let span = self.span(offset, len)?;
        let is_word = matches!(len, 4 | 8) && span.start.is_multiple_of(len);
        let word = std::ptr::with_exposed_provenance_mut::<u8>(span.start);
        // SAFETY: inside the range, aligned as just checked, writable by the contract of `new`, by
        // which all others know that it changes.
        is_word.then(|| unsafe { words::update(word, len, change) })
    }

    /// Copies bytes out, aligned words of 8 bytes whole. False, and nothing is copied, when they do
    /// not lie inside as a whole.
    #[inline]
    #[must_use]
    pub fn copy_out(&self, offset: u64, target: &mut [u8]) -> bool {
        self.span(offset, target.len()).is_some_and(|span| {
            // SAFETY: inside the range, which is valid as long as this value.
            unsafe { span.copy_to(0, target) == target.len() }
        })
    }
}

/// Where bytes of registered memory lie: address and length, by which nothing can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: usize,
    len: usize,
}

impl Span {
    /// Its address.
    #[inline]
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it lies in `memory` as a whole or in part.
    #[must_use]
    pub fn touches(&self, memory: &Memory) -> bool {
        let end = (memory.start as u64).saturating_add(memory.len);
        (self.start as u64) < end && memory.start < self.start.saturating_add(self.len)
    }

    /// Whether it has a byte in common with another one.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.start.saturating_add(other.len) && other.start < self.start.saturating_add(self.len)
    }

    /// As [`Piece::copy_to`].
    ///
    /// # Safety
    ///
    /// The memory of which this is a part is valid, as by the contract of [`Memory::new`].
    #[inline]
    unsafe fn copy_to(self, at: usize, target: &mut [u8]) -> usize {
        let len = self.len.saturating_sub(at).min(target.len());
        if len > 0 {
            let source = std::ptr::with_exposed_provenance::<u8>(self.start + at);
            // SAFETY: inside the range that `Memory::span` checked, readable by the contract above;
            // `target` is a reference, so that it is no part of registered memory. Who writes the
            // source meanwhile spoils these bytes only.
            unsafe { words::copy_out(source, target.as_mut_ptr(), len) };
        }
        len
    }
}

/// Bytes of registered memory that are about to be sent from where they lie. They are valid as long
/// as this value, as those of the [`Memory`] that gave it out.
#[derive(Clone)]
pub struct Piece {
    span: Span,
    /// As of the memory.
    _owner: Owner,
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Piece({:#x}, {} bytes)", self.span.start, self.span.len)
    }
}

impl Piece {
    /// The first address, for a system call that gathers.
    #[inline]
    #[must_use]
    pub fn start(&self) -> usize {
        self.span.start
    }

    /// Bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.span.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.span.len == 0
    }

    /// Where it lies.
    #[inline]
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Copies bytes out, aligned words of 8 bytes whole, from this offset on, as many as `target`
    /// is long or as there are; says how many.
    #[inline]
    pub fn copy_to(&self, at: usize, target: &mut [u8]) -> usize {
        // SAFETY: valid by what this value owns, and by the contract of `Memory::new`.
        unsafe { self.span.copy_to(at, target) }
    }

    /// `len` bytes from this offset on, to be sent; fewer where there are not so many.
    #[inline]
    #[must_use]
    pub fn source(&self, at: usize, len: usize) -> Source<'_> {
        let at = at.min(self.span.len);
        let len = len.min(self.span.len - at);
        // SAFETY: inside the range that `Memory::span` checked, readable by the contract of
        // `Memory::new` as long as this value lives.
        unsafe { Source::new(std::ptr::with_exposed_provenance(self.span.start + at), len) }
    }

    /// The register of a CRC32C after these bytes: all ones before the first byte of all, inverted
    /// after the last. Others may write the bytes at the same time, and spoil it with them.
    #[inline]
    #[must_use]
    pub fn crc32c(&self, register: u32) -> u32 {
        if self.span.len == 0 {
            return register;
        }
        // SAFETY: inside the range that `Memory::span` checked, readable by the contract of
        // `Memory::new`.
        unsafe { crc::over(register, std::ptr::with_exposed_provenance(self.span.start), self.span.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::{HeapBytes, Memory};
    use std::sync::Arc;

    #[test]
    fn a_part_is_inside_and_keeps_the_whole() {
        let whole = Memory::of_bytes(&Arc::new(HeapBytes::new((0..10).collect())));
        for (offset, len) in [(11, 0), (0, 11), (5, 6), (u64::MAX, 1)] {
            assert!(whole.part(offset, len).is_none(), "{len} bytes from {offset}");
        }
        let part = whole.part(3, 4).expect("inside");
        drop(whole);
        let mut copy = [0; 4];
        assert!(part.copy_out(0, &mut copy) && copy == [3, 4, 5, 6]);
        assert!(!part.copy_in(1, &[0; 4]) && part.part(4, 0).is_some_and(|empty| empty.is_empty()));
    }

    #[test]
    fn a_piece_keeps_its_memory() {
        let bytes = Arc::new(HeapBytes::new(vec![7; 100]));
        let piece = Memory::of_bytes(&bytes).piece(90, 10).expect("inside");
        assert_eq!(Arc::strong_count(&bytes), 2);
        drop(bytes);
        let mut copy = [0; 20];
        assert_eq!((piece.copy_to(2, &mut copy), &copy[..9]), (8, &[7, 7, 7, 7, 7, 7, 7, 7, 0][..]));
        let lens = [(0, 10), (8, 1), (8, 9), (11, 1)].map(|(at, len)| piece.source(at, len).len());
        assert_eq!(lens, [10, 1, 2, 0]);
    }

    #[test]
    fn what_lies_elsewhere_is_neither_kept_nor_copied() {
        let [memory, other] = [(); 2].map(|()| Memory::of_bytes(&Arc::new(HeapBytes::new(vec![7; 100]))));
        let span = memory.span(50, 50).expect("inside");
        assert!(memory.keep(span).is_some() && other.keep(span).is_none());
        assert!(other.copy_out_checked(span, 0, &mut [0; 50]).is_none());
        assert!(memory.copy_out_checked(span, 0, &mut [0; 49]).is_none(), "all of it or nothing");
        assert!(memory.span(50, 51).is_none() && memory.span(u64::MAX, 2).is_none());
    }
}
