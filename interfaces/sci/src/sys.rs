//! The unsafe code below windows: loads and stores of words that other processes use too, and
//! mappings of files.

use cci::Memory;
use cci_mem::fork::PerProcess;
use cci_mem::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use rustix::fd::OwnedFd;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

mod sealed {
    pub trait Sealed: Copy {
        /// Loads with acquire order.
        ///
        /// # Safety
        ///
        /// The address is aligned, and mapped for reading.
        unsafe fn load(at: *mut u8) -> Self;
        /// Stores with release order.
        ///
        /// # Safety
        ///
        /// The address is aligned, and mapped for writing.
        unsafe fn store(self, at: *mut u8);
    }
}

/// A value that a window loads and stores as one: `u8`, `u16`, `u32`, `u64`, `i8`, `i16`, `i32`,
/// `i64`, `f32` and `f64`.
///
/// # Example
///
/// ```
/// use cci_sci::{Error, Window, Word};
///
/// fn copy<T: Word>(window: &Window, from: usize, to: usize) -> Result<(), Error> {
///     let value: T = window.load(from)?;
///     window.store(to, value)
/// }
/// ```
pub trait Word: sealed::Sealed {}

macro_rules! words {
    ($($type:ty, $atomic:ident, $value:ident => $bits:expr, $raw:ident => $from:expr;)+) => {
        $(
            impl sealed::Sealed for $type {
                #[inline(always)]
                unsafe fn load(at: *mut u8) -> Self {
                    // SAFETY: by the contract; all who use these bytes know that they change.
                    let $raw = unsafe { $atomic::from_ptr(at.cast()) }.load(Ordering::Acquire);
                    $from
                }

                #[inline(always)]
                unsafe fn store(self, at: *mut u8) {
                    let $value = self;
                    // SAFETY: as in `load`.
                    unsafe { $atomic::from_ptr(at.cast()) }.store($bits, Ordering::Release);
                }
            }
            impl Word for $type {}
        )+
    };
}

words! {
    u8, AtomicU8, value => value, raw => raw;
    i8, AtomicU8, value => value.cast_unsigned(), raw => raw.cast_signed();
    u16, AtomicU16, value => value, raw => raw;
    i16, AtomicU16, value => value.cast_unsigned(), raw => raw.cast_signed();
    u32, AtomicU32, value => value, raw => raw;
    i32, AtomicU32, value => value.cast_unsigned(), raw => raw.cast_signed();
    u64, AtomicU64, value => value, raw => raw;
    i64, AtomicU64, value => value.cast_unsigned(), raw => raw.cast_signed();
    f32, AtomicU32, value => value.to_bits(), raw => f32::from_bits(raw);
    f64, AtomicU64, value => value.to_bits(), raw => f64::from_bits(raw);
}

/// Loads a word of mapped memory.
///
/// # Safety
///
/// The word lies inside of a mapping that lives, and is aligned.
#[inline(always)]
pub(crate) unsafe fn load<T: Word>(start: usize, offset: usize) -> T {
    // SAFETY: by the contract.
    unsafe { T::load(std::ptr::with_exposed_provenance_mut(start + offset)) }
}

/// Stores a word to mapped memory.
///
/// # Safety
///
/// As [`load`], and the mapping is writable.
#[inline(always)]
pub(crate) unsafe fn store<T: Word>(start: usize, offset: usize, value: T) {
    // SAFETY: by the contract.
    unsafe { value.store(std::ptr::with_exposed_provenance_mut(start + offset)) };
}

/// A mapping of a whole file, which stays until the process ends: windows and transfers that others
/// have begun may use it as long.
#[derive(Clone, Copy)]
pub(crate) struct FileMap {
    start: usize,
    len: usize,
}

/// Files by device and number.
type Mapped = Vec<((u64, u64), FileMap)>;

/// Files that are mapped.
static MAPPED: PerProcess<Mutex<Mapped>> = PerProcess::new();

/// Maps a file of so many bytes, once in each process.
pub(crate) fn map_file(file: &OwnedFd, name: (u64, u64), len: usize) -> std::io::Result<FileMap> {
    let mut mapped = MAPPED.get(Mutex::default)?.1.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, map)) = mapped.iter().find(|(other, map)| *other == name && map.len == len) {
        return Ok(*map);
    }
    // SAFETY: a new mapping, at an address of the system's choice.
    let start =
        unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0) }?;
    let map = FileMap { start: start.expose_provenance(), len };
    mapped.push((name, map));
    Ok(map)
}

impl FileMap {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "outside of the file");
        std::ptr::with_exposed_provenance_mut(self.start + offset)
    }

    /// A word that all who map the file use as an atomic.
    pub(crate) fn word(&self, offset: usize) -> &'static AtomicU64 {
        assert!(offset.is_multiple_of(8), "a word is aligned");
        // SAFETY: inside of the mapping, which is never unmapped and begins at a page, and aligned,
        // as just checked.
        unsafe { AtomicU64::from_ptr(self.at(offset, 8).cast()) }
    }

    /// Writes zeroes.
    pub(crate) fn clear(&self, range: Range<usize>) {
        let start = self.at(range.start, range.len());
        // SAFETY: inside of the mapping, as just checked; no reference to its bytes is ever made.
        unsafe { start.write_bytes(0, range.len()) };
    }

    /// A range, for copies and for transfers.
    pub(crate) fn memory(&self, range: Range<usize>) -> Memory {
        let start = self.at(range.start, range.len());
        // SAFETY: the mapping stays until the process ends; its bytes are used by copies and as
        // atomics alone.
        unsafe { Memory::new(start, range.len() as u64) }
    }
}
