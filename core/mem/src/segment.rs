//! Memory shared between processes: sealed memfds.
//!
//! A segment's size is sealed before its descriptor leaves the process, so that no peer can cut it
//! under a mapping, and pages are reserved before anyone is told to write there: neither side ever
//! meets SIGBUS.

use crate::descriptors;
use crate::ring::Entry;
use crate::sync::{AtomicU32, AtomicU64};
use rustix::fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate};
use rustix::io::{Errno, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Bytes of a huge page of the processors that have pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;

/// A mapping of a whole memfd, unmapped when dropped.
#[derive(Debug)]
pub struct Segment {
    base: NonNull<u8>,
    len: usize,
    /// None once closed: the mapping needs it no more.
    fd: Option<OwnedFd>,
    /// The process that gives the pages back to the system when it drops the segment.
    owner: Option<u32>,
}

// SAFETY: a mapping is not bound to a thread; its words are atomics and its bytes move through raw
// pointers.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// A new segment that peers can map for reading and writing.
    ///
    /// # Errors
    ///
    /// No descriptor or address space left.
    pub fn create(name: &str, len: usize) -> Result<Self> {
        let fd = Self::file(name, len)?;
        fcntl_add_seals(&fd, SIZE_SEALS)?;
        Self::map(fd, len, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// A new segment that this process writes and peers can only read.
    ///
    /// # Errors
    ///
    /// No descriptor or address space left.
    pub fn create_published(name: &str, len: usize) -> Result<Self> {
        let fd = Self::file(name, len)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW)?;
        let segment = Self::map(fd, len, ProtFlags::READ | ProtFlags::WRITE)?;
        fcntl_add_seals(segment.file_of()?, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        Ok(segment)
    }

    fn file(name: &str, len: usize) -> Result<OwnedFd> {
        // A file that grows beyond this limit is answered by a signal, which ends the program.
        let limit = getrlimit(Resource::Fsize).current;
        if limit.is_some_and(|limit| len as u64 > limit) {
            return Err(Errno::FBIG);
        }
        let fd = descriptors::memory_file(name)?;
        ftruncate(&fd, len as u64)?;
        Ok(fd)
    }

    /// Maps a peer's segment for reading and writing.
    ///
    /// # Errors
    ///
    /// `PERM` when it is not sealed against shrinking, growing and further seals, or when it
    /// consists of huge pages. `INVAL` when it cannot be sealed at all or it is not `len` bytes
    /// long. Or no address space.
    pub fn attach(fd: OwnedFd, len: usize) -> Result<Self> {
        Self::check(&fd, len)?;
        Self::map(fd, len, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Maps a peer's segment for reading.
    ///
    /// # Errors
    ///
    /// As [`Segment::attach`].
    pub fn attach_read_only(fd: OwnedFd, len: usize) -> Result<Self> {
        Self::check(&fd, len)?;
        Self::map(fd, len, ProtFlags::READ)
    }

    fn check(fd: &OwnedFd, len: usize) -> Result<()> {
        if !fcntl_get_seals(fd)?.contains(SIZE_SEALS) {
            return Err(Errno::PERM);
        }
        // Huge pages seal too, but their reservation can be taken away under a mapping, which then
        // faults.
        if fstatfs(fd)?.f_type != libc::TMPFS_MAGIC {
            return Err(Errno::PERM);
        }
        let size = fstat(fd)?.st_size;
        if len == 0 || usize::try_from(size) != Ok(len) { Err(Errno::INVAL) } else { Ok(()) }
    }

    fn map(fd: OwnedFd, len: usize, protection: ProtFlags) -> Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice; the file's size is `len`
        // and sealed.
        let base = unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, &fd, 0)? };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, len, fd: Some(fd), owner: None })
    }

    /// Gives the pages back to the system when this process drops the segment, whoever else has its
    /// descriptor or maps it.
    #[must_use]
    pub fn owned(mut self) -> Self {
        self.owner = Some(std::process::id());
        self
    }

    /// Reserves physical memory for a range, so that touching it cannot fail.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn reserve(&self, offset: usize, len: usize) -> Result<()> {
        loop {
            match fallocate(self.file_of()?, FallocateFlags::empty(), offset as u64, len as u64) {
                Err(Errno::INTR) => {}
                done => return done,
            }
        }
    }

    /// Reserves physical memory for the pages of a range through the mapping, which needs no
    /// descriptor.
    ///
    /// # Errors
    ///
    /// No memory; or the kernel cannot (before Linux 5.14), and the descriptor is closed.
    pub fn populate(&self, offset: usize, len: usize) -> Result<()> {
        let page = rustix::param::page_size();
        let first = offset - offset % page;
        let bytes = (len + offset % page).next_multiple_of(page).min(self.len.saturating_sub(first));
        loop {
            // SAFETY: the range lies inside the mapping, as `bytes` checks; the kernel only adds
            // pages of zeroes that are missing.
            match unsafe { madvise(self.bytes(first, bytes).cast(), bytes, Advice::LinuxPopulateWrite) } {
                Err(Errno::INTR | Errno::AGAIN) => {}
                // What the memory of a file cannot give is told as a fault would tell it.
                Err(Errno::FAULT) => return Err(Errno::NOMEM),
                Err(Errno::INVAL) => return self.reserve(first, bytes),
                done => return done,
            }
        }
    }

    /// Asks for huge pages, and reserves one of them wherever a whole one fits. Where the system
    /// grants none, a small page is reserved in its place. Called before anything else is reserved:
    /// what is there stays as it is.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn reserve_huge_pages(&self) -> Result<()> {
        // SAFETY: the whole mapping; the advice changes how later pages are made, and no content.
        let advised = unsafe { madvise(self.base().cast(), self.len, Advice::LinuxHugepage) };
        if advised.is_err() {
            // The kernel has none.
            return Ok(());
        }
        (0..self.len / HUGE_PAGE).try_for_each(|page| self.populate(page * HUGE_PAGE, 1))
    }

    /// Enters a range into this process's page table, so that copies meet no page faults, which
    /// take longer than the copy. Pages that nobody has reserved are made, as a copy would make
    /// them. Where the kernel cannot (before Linux 5.14), copies meet the faults.
    pub fn enter(&self, offset: usize, len: usize) {
        let page = rustix::param::page_size();
        let first = offset - offset % page;
        let bytes = (len + offset % page).next_multiple_of(page).min(self.len.saturating_sub(first));
        // Entering for reading serves writers too, since pages of a shared mapping are entered with
        // the rights of the mapping; and it takes a third of the time, since the kernel enters
        // neighbours together. SAFETY: the range lies inside the mapping, as `bytes` checks;
        // contents stay.
        let _ = unsafe { madvise(self.bytes(first, bytes).cast(), bytes, Advice::LinuxPopulateRead) };
    }

    /// The descriptor.
    ///
    /// # Errors
    ///
    /// `BADF`: it has been closed.
    pub fn file_of(&self) -> Result<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }

    /// Closes the descriptor and keeps the mapping, for a segment that is neither reserved nor
    /// shared any more.
    pub fn close_file(&mut self) {
        self.fd = None;
    }

    /// Bytes of the segment.
    #[expect(clippy::len_without_is_empty, reason = "a segment is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first byte.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// A second descriptor of the segment, closed in programs that this process executes.
    ///
    /// # Errors
    ///
    /// No descriptor left.
    pub fn share(&self) -> std::io::Result<File> {
        Ok(File::from(descriptors::duplicate(self.file_of()?)?))
    }

    fn at<T>(&self, offset: usize, count: usize) -> *const T {
        let bytes = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        assert!(bytes.is_some_and(|end| end <= self.len), "range outside the segment");
        assert!(offset.is_multiple_of(align_of::<T>()), "misaligned offset");
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.as_ptr().add(offset).cast() }
    }

    /// Words of the segment.
    #[inline]
    #[must_use]
    pub fn words32(&self, offset: usize, count: usize) -> &[AtomicU32] {
        // SAFETY: mapped, aligned (see `at`), any bits are an atomic, and everybody uses these
        // words as atomics.
        unsafe { std::slice::from_raw_parts(self.at(offset, count), count) }
    }

    /// Words of the segment.
    #[inline]
    #[must_use]
    pub fn words64(&self, offset: usize, count: usize) -> &[AtomicU64] {
        // SAFETY: as for `words32`.
        unsafe { std::slice::from_raw_parts(self.at(offset, count), count) }
    }

    /// A frame ring in the segment.
    #[inline]
    #[must_use]
    pub fn entries<const N: usize>(&self, offset: usize) -> &[Entry; N] {
        // SAFETY: as for `words32`; an entry consists of atomics.
        unsafe { &*self.at::<Entry>(offset, N).cast() }
    }

    /// The address of `len` bytes.
    ///
    /// # Panics
    ///
    /// The range lies outside the segment.
    #[inline]
    #[must_use]
    pub fn bytes(&self, offset: usize, len: usize) -> *mut u8 {
        self.at::<u8>(offset, len).cast_mut()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // A forked child drops copies of what its parent still uses.
        if let (Some(owner), Some(fd)) = (self.owner, &self.fd)
            && owner == std::process::id()
        {
            let _ = fallocate(fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, self.len as u64);
        }
        // SAFETY: this mapping, made by `map`; whoever borrowed from it is gone.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}
