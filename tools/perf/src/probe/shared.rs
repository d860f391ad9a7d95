//! Bare memory shared by both ends of a probe.

use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Number of the newest block that has ended, for an end that computes.
pub(crate) const STOP: usize = 512;
/// How many bytes of the network's streams the receiver has taken.
pub(super) const TAKEN: usize = 640;
/// Ports of the sockets of both sides, eight words.
pub(super) const PORTS: usize = 768;
/// How many bytes of the polled TCP stream the receiver has taken.
pub(super) const STREAM_TAKEN: usize = 896;
/// Places of the line that the client writes and the one that the server writes, 128 bytes after
/// it: each block has the next one, since how far a line is from either processor depends on its
/// address.
pub(super) const LINES: usize = 128 << 10;
/// How many there are, and how far apart: in pages of their own, and at other lines of these.
pub(super) const PLACES: usize = 64;
pub(super) const PLACE_STRIDE: usize = 4096 + 256;
/// How many entries of the ring the consumer has taken.
pub(super) const HEAD: usize = 256;
/// Flags of the pipe's slots, 128 bytes apart.
pub(super) const PIPE_FLAGS: usize = 1024;
/// Slots of the pipe.
pub(super) const PIPE_SLOTS: usize = 8;
/// Bytes of a slot. By trial: of 1 KiB to 256 KiB in 2 to 32 slots, 8 of 64 KiB were the fastest
/// pipe (14.7 GB/s, where slots of 16 KiB gave 9.8), and the probe has to be the best that the
/// machine does.
pub(super) const PIPE_STRIDE: usize = 64 << 10;
/// Words that the client and the server sleep on, 128 bytes apart.
pub(super) const FUTEXES: usize = 2048;
/// The ring.
pub(super) const RING: usize = 64 << 10;
/// Entries of the ring, of 64 bytes.
pub(super) const RING_ENTRIES: u64 = 256;
/// The pipe's slots.
pub(super) const PIPE: usize = 1 << 20;
/// Where the client puts its copies, then where the server does.
pub(super) const COPIES: [usize; 2] = [2 << 20, 6 << 20];
/// Largest copy.
pub(super) const LARGEST_COPY: usize = 4 << 20;
const _: () = assert!(LINES + PLACES * PLACE_STRIDE <= PIPE && RING + RING_ENTRIES as usize * 64 <= LINES);
/// Bytes in all.
pub(crate) const LEN: usize = 10 << 20;

/// A mapping of an anonymous shared file, unmapped when dropped.
pub(crate) struct Shared {
    base: NonNull<u8>,
    len: usize,
    fd: OwnedFd,
}

// SAFETY: a mapping is not bound to a thread; its words are atomics and its bytes move through raw
// pointers.
unsafe impl Send for Shared {}

impl Shared {
    /// A new file. A child has its descriptor by [`pass_on`](super::pass_on).
    pub(crate) fn create(len: usize) -> io::Result<Self> {
        let fd = memfd_create("cci-probe", MemfdFlags::CLOEXEC)?;
        ftruncate(&fd, len as u64)?;
        Self::map(fd)
    }

    /// A file that the parent passed on under this number.
    pub(crate) fn inherit(fd: RawFd) -> io::Result<Self> {
        // SAFETY: the parent, another instance of this program, opened the descriptor for this
        // process, and nothing else here uses the number.
        Self::map(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// The same file mapped once more.
    #[cfg(test)]
    pub(super) fn second_mapping(&self) -> io::Result<Self> {
        Self::map(self.fd.try_clone()?)
    }

    fn map(fd: OwnedFd) -> io::Result<Self> {
        let len = usize::try_from(fstat(&fd)?.st_size).map_err(|_| io::ErrorKind::InvalidData)?;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base =
            unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &fd, 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len, fd })
    }

    /// The descriptor's number, for a child.
    pub(crate) fn number(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Writes every page once, so that no block pays for it.
    pub(crate) fn fill(&self) {
        // SAFETY: the whole mapping, and no reference into it but to atomics.
        unsafe { self.base.as_ptr().write_bytes(1, self.len) };
    }

    /// A word.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8), "misaligned word");
        // SAFETY: inside the mapping (see `bytes`), aligned, any bits are an atomic; everybody uses
        // words as atomics.
        unsafe { &*self.bytes(offset, 8).cast() }
    }

    /// A word that processes sleep on.
    pub(super) fn futex(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "misaligned word");
        // SAFETY: as in `word`.
        unsafe { &*self.bytes(offset, 4).cast() }
    }

    /// Words that follow each other.
    pub(super) fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        assert!(offset.is_multiple_of(8), "misaligned words");
        // SAFETY: as in `word`.
        unsafe { std::slice::from_raw_parts(self.bytes(offset, 8 * count).cast(), count) }
    }

    /// The address of bytes.
    pub(super) fn bytes(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "outside the shared memory");
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// A copy of bytes.
    #[cfg(test)]
    pub(super) fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: inside the mapping; nobody writes while a test reads.
        unsafe { std::ptr::copy_nonoverlapping(self.bytes(offset, len), bytes.as_mut_ptr(), len) };
        bytes
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this mapping; whoever borrowed from it is gone.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}
