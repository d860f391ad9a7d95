//! Memory of an endpoint that becomes real when it is touched.
//!
//! The allocator does not promise that: it clears by hand what it has given out before, so that a
//! second endpoint would hold all that the first one had, used or not.

use crate::region::UNRESERVED;
use rustix::io::{Errno, Result};
use rustix::mm::{ProtFlags, mmap_anonymous, munmap};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Zeroes, of which no page takes memory until it is touched. Unmapped when dropped.
#[derive(Debug)]
pub struct Pages {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns its mapping, and gives it out as slices or, as `SharedPages`, through raw
// pointers only.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` bytes of zeroes.
    ///
    /// # Errors
    ///
    /// No address space; `INVAL` when `len` is 0.
    pub fn new(len: usize) -> Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base =
            unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, UNRESERVED)? };
        Ok(Self { base: NonNull::new(base.cast()).ok_or(Errno::NOMEM)?, len })
    }
}

/// Pages that others may write: no reference to their bytes is formed.
/// [`Memory::of_pages`](crate::memory::Memory::of_pages) names them.
#[derive(Debug)]
pub struct SharedPages(Pages);

impl SharedPages {
    /// `len` bytes of zeroes.
    ///
    /// # Errors
    ///
    /// As [`Pages::new`].
    pub fn new(len: usize) -> Result<Self> {
        Pages::new(len).map(Self)
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.0.base.as_ptr()
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }
}

impl Deref for Pages {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: mapped and zeroed by `new`, owned, and borrowed as this value is.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl DerefMut for Pages {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this mapping, made by `new`; whoever borrowed from it is gone.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn pages_are_zeroes_that_can_be_written() {
        let mut pages = Pages::new(100_000).expect("memory");
        assert!(pages.len() == 100_000 && pages.iter().all(|byte| *byte == 0));
        pages[99_999] = 7;
        assert_eq!(pages.iter().map(|byte| usize::from(*byte)).sum::<usize>(), 7);
        assert_eq!(Pages::new(0).err(), Some(rustix::io::Errno::INVAL));
    }
}
