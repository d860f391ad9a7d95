//! Large arrays that stay mapped and typed for ever, whose pages are given back between uses.
//!
//! The slots of an endpoint live here: a pointer to an event of an endpoint that is gone still
//! points to a slot, which reads as all zeroes or as a slot of a later endpoint.

use crate::mutex::lock;
#[cfg(not(miri))]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::sync::Mutex;

/// A private mapping that promises no memory yet. Miri does not know that flag.
pub(crate) const UNRESERVED: MapFlags =
    if cfg!(miri) { MapFlags::PRIVATE } else { MapFlags::PRIVATE.union(MapFlags::NORESERVE) };

/// Whether this process can have so many bytes of address space more. Nothing is left of the trial.
#[must_use]
pub fn has_room(bytes: usize) -> bool {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh private mapping at an address of the kernel's choice, which nobody touches.
    let Ok(memory) = (unsafe { mmap_anonymous(std::ptr::null_mut(), bytes.max(1), access, UNRESERVED) }) else {
        return false;
    };
    // SAFETY: the mapping just made.
    let _ = unsafe { munmap(memory, bytes.max(1)) };
    true
}

/// Types for which all-zero bytes are a value, that own nothing, and that are only changed through
/// atomics.
///
/// # Safety
///
/// The implementer guarantees all three.
pub unsafe trait Zeroed: Sync {}

/// A store of arrays of `T`.
pub struct Regions<T: 'static> {
    arrays: Mutex<Arrays<T>>,
}

struct Arrays<T: 'static> {
    free: Vec<&'static [T]>,
    /// Taken and not given back: what may be given back.
    taken: Vec<&'static [T]>,
}

impl<T: Zeroed> Regions<T> {
    /// Empty.
    #[must_use]
    pub const fn new() -> Self {
        Self { arrays: Mutex::new(Arrays { free: Vec::new(), taken: Vec::new() }) }
    }

    /// An array of at least `count` objects, all zero, without physical memory behind it until
    /// touched.
    ///
    /// # Errors
    ///
    /// Out of address space.
    pub fn take(&self, count: usize) -> rustix::io::Result<&'static [T]> {
        let mut arrays = lock(&self.arrays);
        let fits = |region: &&'static [T]| region.len() >= count && region.len() <= count.saturating_mul(2);
        let region = match arrays.free.iter().position(fits) {
            Some(at) => arrays.free.swap_remove(at),
            None => Self::map(count)?,
        };
        arrays.taken.push(region);
        Ok(region)
    }

    fn map(count: usize) -> rustix::io::Result<&'static [T]> {
        const { assert!(align_of::<T>() <= 4096, "a mapping is aligned to a page") };
        let bytes = count.checked_mul(size_of::<T>()).ok_or(rustix::io::Errno::NOMEM)?;
        // SAFETY: a fresh private mapping at an address of the kernel's choice.
        let memory = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes.max(1), ProtFlags::READ | ProtFlags::WRITE, UNRESERVED)?
        };
        // SAFETY: the mapping holds `count` zero objects, which `Zeroed` makes valid; a page's
        // alignment suffices for any `T` of less than a page; never unmapped.
        Ok(unsafe { std::slice::from_raw_parts(memory.cast::<T>(), count) })
    }

    /// Gives an array back: its memory returns to the system, its addresses stay. Nothing happens
    /// to what was not taken here, or was given back already.
    pub fn give(&self, region: &'static [T]) {
        let mut arrays = lock(&self.arrays);
        let Some(at) = arrays.taken.iter().position(|taken| std::ptr::eq(*taken, region)) else { return };
        let region = arrays.taken.swap_remove(at);
        #[cfg(miri)] // which does not imitate madvise
        // SAFETY: as below.
        unsafe {
            std::ptr::write_bytes(region.as_ptr().cast_mut(), 0, region.len());
        }
        #[cfg(not(miri))]
        // SAFETY: the range is a mapping of `map`. Wiping it under a stale reader is the same as
        // storing zero into its atomics. Should the kernel refuse, the old contents stay, which are
        // valid too.
        let _ = unsafe { madvise(region.as_ptr().cast_mut().cast(), size_of_val(region), Advice::LinuxDontNeed) };
        arrays.free.push(region);
    }
}

impl<T: Zeroed> Default for Regions<T> {
    fn default() -> Self {
        Self::new()
    }
}
