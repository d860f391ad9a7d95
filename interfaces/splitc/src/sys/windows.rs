//! The windows through which this process reaches the memory of the ranks of its host.

use super::bytes::{Target, copy_in, copy_out};
use super::words::{Change, change};
use crate::layout::{LINE_WORDS, MOST, OWN, SLEEPING, STRIDE, stored, window};
use cci::{Import, Registration, SharedMemory};
use cci_mem::sync::AtomicU64;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap_fixed, munmap};
use std::cell::{Cell, RefCell};
use std::io;
use std::ptr;
use std::sync::Arc;

/// Maps memory a second time, in place of what lies at `at`.
///
/// # Safety
///
/// `from` is a shared mapping of at least `len` bytes; nobody needs what was mapped at `at`.
pub(crate) unsafe fn alias(from: *mut u8, len: usize, at: u64) -> io::Result<()> {
    let at = ptr::with_exposed_provenance_mut(at as usize);
    // An old length of 0 leaves the old mapping as it is. SAFETY: by the contract.
    unsafe { mremap_fixed(from.cast(), 0, len, MremapFlags::MAYMOVE, at)? };
    Ok(())
}

/// Bytes of the longest word. A range ends so many bytes less one before its memory, so that one
/// comparison finds a word in it.
const WORD: u64 = 8;

/// How addresses of a rank become addresses here: two ranges, and what is added to an address in
/// each; and where this rank counts what it stores there, and sees whether that one sleeps. C
/// programs read it in place.
///
/// # Example
///
/// ```
/// fn table(world: &cci_splitc::World) -> *const cci_splitc::Way {
///     world.ways().as_ptr()
/// }
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct Way {
    start: Cell<u64>,
    words: Cell<u64>,
    shift: Cell<u64>,
    statics_start: Cell<u64>,
    statics_words: Cell<u64>,
    statics_shift: Cell<u64>,
    counts: Cell<u64>,
    sleeping: Cell<u64>,
}

/// How many addresses of a memory of so many bytes are those of words.
fn words_of(len: u64) -> u64 {
    len.saturating_sub(WORD - 1)
}

/// The bytes of a memory with so many addresses of words.
fn len_of(words: u64) -> u64 {
    if words == 0 { 0 } else { words + WORD - 1 }
}

fn is_within(start: u64, length: u64, address: u64, len: u64) -> bool {
    let offset = address.wrapping_sub(start);
    offset < length && len <= length - offset
}

/// The windows, mapped until the value is dropped.
pub(crate) struct Windows {
    me: u32,
    ways: Box<[Way]>,
    /// The whole range of addresses.
    reserved: usize,
    imports: RefCell<Vec<Import>>,
    own: RefCell<Vec<Registration<Arc<SharedMemory>>>>,
}

/// The statics of a rank: where they lie there, and their length.
pub(crate) type Place = (u64, u64);

impl Windows {
    /// Reserves addresses for so many ranks.
    pub(crate) fn reserve(me: u32, procs: u32) -> Result<Self, String> {
        let reserved = (STRIDE * (1 + u64::from(procs))) as usize;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
        let start = ptr::with_exposed_provenance_mut(OWN as usize);
        // SAFETY: a mapping without rights that replaces none.
        let found = unsafe { mmap_anonymous(start, reserved, ProtFlags::empty(), flags) };
        let ways = (0..procs).map(|_| Way::default()).collect();
        let found = found.map_err(|why| {
            format!(
                "the addresses from {OWN:#x} on cannot be reserved: {why}; unload what lies there, or raise ulimit -v"
            )
        })?;
        let windows = Self { me, ways, reserved, imports: RefCell::default(), own: RefCell::default() };
        // An old kernel takes the address for a hint.
        if found.addr() as u64 == OWN {
            Ok(windows)
        } else {
            Err(format!("the addresses from {OWN:#x} on are taken; use a newer kernel"))
        }
    }

    /// Sets where the statics of a rank lie; those of others are mapped from their import.
    pub(crate) fn set_statics(&self, rank: u32, place: Place, import: Option<Import>) -> io::Result<()> {
        let at = window(rank) + MOST;
        let mut shift = 0;
        if let Some(import) = &import {
            // SAFETY: an import is a shared mapping; the window is reserved for it.
            unsafe { alias(import.as_ptr(), place.1 as usize, at)? };
            shift = at.wrapping_sub(place.0);
        }
        self.imports.borrow_mut().extend(import);
        let way = &self.ways[rank as usize];
        way.statics_start.set(place.0);
        way.statics_words.set(words_of(place.1));
        way.statics_shift.set(shift);
        Ok(())
    }

    /// Maps memory of this rank at `offset` of its spread memory, behind what is there.
    pub(crate) fn add_own(&self, memory: Registration<Arc<SharedMemory>>, start: usize, offset: u64) -> io::Result<()> {
        let len = memory.len();
        // SAFETY: library memory is a shared mapping; the range is reserved for it.
        unsafe { alias(ptr::with_exposed_provenance_mut(start), len as usize, OWN + offset)? };
        self.own.borrow_mut().push(memory);
        self.grow(self.me, OWN, offset + len);
        Ok(())
    }

    /// Keeps the registration of other memory as long as the windows.
    pub(crate) fn keep(&self, memory: Registration<Arc<SharedMemory>>) {
        self.own.borrow_mut().push(memory);
    }

    /// Maps memory of a peer at `offset` of its spread memory.
    pub(crate) fn add(&self, rank: u32, import: Import, offset: u64) -> io::Result<()> {
        let (len, at) = (import.len(), window(rank));
        // SAFETY: an import is a shared mapping; the window is reserved for it.
        unsafe { alias(import.as_ptr(), len as usize, at + offset)? };
        self.imports.borrow_mut().push(import);
        self.grow(rank, at, offset + len);
        Ok(())
    }

    fn grow(&self, rank: u32, at: u64, len: u64) {
        let way = &self.ways[rank as usize];
        way.start.set(OWN);
        way.shift.set(at - OWN);
        way.words.set(words_of(len));
        way.counts.set(at + stored(self.me));
        way.sleeping.set(at + SLEEPING);
    }

    /// The ways to all ranks, in their order.
    pub(crate) fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// Whether the rank's spread memory is mapped here.
    pub(crate) fn is_mapped(&self, rank: u32) -> bool {
        self.ways[rank as usize].words.get() > 0
    }

    /// Where bytes of a rank lie here. None: they are not mapped here as a whole.
    #[inline]
    pub(crate) fn find(&self, rank: u32, address: u64, len: u64) -> Option<*mut u8> {
        let way = self.ways.get(rank as usize)?;
        let shift = if is_within(way.start.get(), len_of(way.words.get()), address, len) {
            way.shift.get()
        } else if is_within(way.statics_start.get(), len_of(way.statics_words.get()), address, len) {
            way.statics_shift.get()
        } else {
            return None;
        };
        Some(ptr::with_exposed_provenance_mut(address.wrapping_add(shift) as usize))
    }

    /// Copies bytes of a rank out. False: they are not mapped here as a whole.
    #[inline]
    pub(crate) fn read(&self, rank: u32, address: u64, to: Target) -> bool {
        let Some(at) = self.find(rank, address, to.len() as u64) else { return false };
        // SAFETY: mapped as long as this value, as just found; the place by the contract of
        // `Target`. Windows hold memory that is given out by address alone, and statics by the
        // contract of the raw calls.
        unsafe { copy_out(at, to.address(), to.len()) };
        true
    }

    /// Copies bytes to a rank. False: they are not mapped here as a whole.
    #[inline]
    pub(crate) fn write(&self, rank: u32, address: u64, bytes: &[u8]) -> bool {
        let Some(at) = self.find(rank, address, bytes.len() as u64) else { return false };
        // SAFETY: as in `read`.
        unsafe { copy_in(bytes.as_ptr(), at, bytes.len()) };
        true
    }

    /// Writes zeroes to this rank's memory. Nothing happens where it is not mapped as a whole.
    pub(crate) fn wipe(&self, address: u64, len: u64) {
        if let Some(at) = self.find(self.me, address, len) {
            // SAFETY: as in `read`.
            unsafe { ptr::write_bytes(at, 0, len as usize) };
        }
    }

    /// Changes an aligned word of a rank. None: it is not mapped here.
    #[inline]
    pub(crate) fn change(&self, rank: u32, address: u64, size: usize, with: Change) -> Option<u64> {
        let at = self.find(rank, address, size as u64)?;
        // SAFETY: as in `read`; the caller has checked size and alignment, and windows begin at
        // pages.
        Some(unsafe { change(at, size, with) })
    }

    /// A word of the control area of a rank. None: it is not mapped here.
    #[inline]
    pub(crate) fn word(&self, rank: u32, offset: u64) -> Option<&AtomicU64> {
        let at = self.find(rank, OWN + offset, 8).filter(|at| at.addr().is_multiple_of(8))?;
        // SAFETY: mapped as long as this value, aligned, and a word for all ranks: control areas
        // are not given out.
        Some(unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    /// A word of this rank's control area.
    #[inline]
    pub(crate) fn own_word(&self, offset: u64) -> &AtomicU64 {
        self.word(self.me, offset).expect("the control area is the first part of the memory")
    }

    /// A line of this rank's control area.
    pub(crate) fn own_line(&self, offset: u64) -> [u64; LINE_WORDS] {
        std::array::from_fn(|at| self.own_word(offset + 8 * at as u64).load(cci_mem::sync::Ordering::Acquire))
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        // SAFETY: this value's own range, to which it lends nothing beyond its life. Statics that
        // were moved stay where they are.
        let _ = unsafe { munmap(ptr::with_exposed_provenance_mut(OWN as usize), self.reserved) };
    }
}

#[cfg(test)]
mod tests {
    use super::{is_within, len_of, words_of};

    #[test]
    fn a_memory_is_as_long_as_its_words_state() {
        assert_eq!([0, 8, 4096].map(|len| len_of(words_of(len))), [0, 8, 4096]);
        assert_eq!(words_of(8), 1);
    }

    #[test]
    fn a_range_has_both_ends() {
        let is_inside = |address, len| is_within(0x1000, 0x100, address, len);
        assert!(is_inside(0x1000, 0x100) && is_inside(0x10ff, 1) && is_inside(0x1080, 0));
        assert!(!is_inside(0xfff, 1) && !is_inside(0x1100, 1) && !is_inside(0x10ff, 2) && !is_inside(0x1000, 0x101));
        assert!(!is_inside(0x1001, u64::MAX) && !is_inside(0, 0) && !is_within(0, 0, 0, 0));
    }
}
