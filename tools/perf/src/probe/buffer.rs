//! Memory of any origin: private anonymous pages, all of them touched.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;

/// Pages of this process, unmapped when dropped.
pub(crate) struct Buffer {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is not bound to a thread, and its bytes move through raw pointers only.
unsafe impl Send for Buffer {}

impl Buffer {
    /// No memory yet.
    pub(crate) fn empty() -> Self {
        Self { base: NonNull::dangling(), len: 0 }
    }

    /// Maps `len` bytes and writes each page.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the whole mapping, which nobody else knows yet.
        unsafe { base.as_ptr().write_bytes(0x5a, len) };
        Ok(Self { base, len })
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first byte.
    pub(super) fn pointer(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// All bytes.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the whole mapping, or nothing at a dangling pointer, and borrowed from this
        // buffer, which nobody else uses while a probe runs.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// The address, as another process needs it.
    pub(crate) fn address(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }

    /// The range, to be registered. The buffer must outlive the registration: an end keeps it until
    /// its endpoint is closed.
    pub(crate) fn memory(&self) -> cci::Memory {
        // SAFETY: mapped as long as this buffer; an end closes its endpoint before it drops the
        // buffer. No reference into it is ever made.
        unsafe { cci::Memory::new(self.base.as_ptr(), self.len as u64) }
    }

    /// A copy of bytes.
    #[cfg(test)]
    pub(super) fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        assert!(offset + len <= self.len);
        let mut bytes = vec![0; len];
        // SAFETY: inside the mapping, as just checked.
        unsafe { std::ptr::copy_nonoverlapping(self.base.as_ptr().add(offset), bytes.as_mut_ptr(), len) };
        bytes
    }

    /// Copies bytes in.
    #[cfg(test)]
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len);
        // SAFETY: inside the mapping, as just checked.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(offset), bytes.len()) };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: this mapping; whoever used it is gone.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        }
    }
}
