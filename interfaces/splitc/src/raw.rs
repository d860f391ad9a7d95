//! Calls by address, for C programs: any memory of any rank.

use crate::access::Under;
use crate::fault::Fault;
use crate::sys::{Change, Target, Way};
use crate::world::World;
use cci_mem::sync::{Ordering, fence};

/// Whether an operation is complete when its call returns.
///
/// # Example
///
/// ```
/// use cci_splitc::Completion;
///
/// fn word(by_sync: bool) -> &'static str {
///     match (if by_sync { Completion::BySync } else { Completion::Now }) {
///         Completion::Now => "read",
///         Completion::BySync => "get",
///     }
/// }
/// assert_eq!(word(true), "get");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is, or it is not")]
pub enum Completion {
    /// It is: a read or a write.
    Now,
    /// By the next [`World::sync`]: a get or a put.
    BySync,
}

/// # Safety
///
/// Of all calls here: a global pointer of another rank leads to memory that this rank's program may
/// use so, and none that holds Rust values. Local bytes are valid for the call, and destinations of
/// gets until [`World::sync`].
impl World {
    /// Copies `len` bytes of the global address space to `to`.
    ///
    /// # Errors
    ///
    /// There is no such rank, it is gone, or the bytes are not mapped there.
    ///
    /// # Safety
    ///
    /// As above.
    #[inline]
    pub unsafe fn copy_out_raw(&self, from: u64, to: *mut u8, len: usize, completion: Completion) -> Result<(), Fault> {
        let (rank, address) = self.parts(from)?;
        // SAFETY: by the contract of this call.
        let target = unsafe { Target::new(to, len) };
        self.complete(self.start_read(rank, address, target, completion == Completion::Now)?, completion)
    }

    /// Copies `len` bytes at `from` into the global address space. They are the caller's again on
    /// return.
    ///
    /// # Errors
    ///
    /// As [`World::copy_out_raw`].
    ///
    /// # Safety
    ///
    /// As above.
    #[inline]
    pub unsafe fn copy_in_raw(
        &self,
        to: u64,
        from: *const u8,
        len: usize,
        completion: Completion,
    ) -> Result<(), Fault> {
        let (rank, address) = self.parts(to)?;
        // SAFETY: by the contract of this call; nobody writes them during it.
        let bytes = unsafe { bytes(from, len) };
        let under = self.start_write(rank, address, bytes, completion == Completion::Now)?;
        if completion == Completion::Now {
            fence(Ordering::SeqCst);
        }
        self.complete(under, completion)
    }

    /// As [`World::copy_in_raw`], and counts the bytes at the rank as stored.
    ///
    /// # Errors
    ///
    /// As [`World::copy_out_raw`].
    ///
    /// # Safety
    ///
    /// As above.
    #[inline]
    pub unsafe fn store_raw(&self, to: u64, from: *const u8, len: usize) -> Result<(), Fault> {
        let (rank, address) = self.parts(to)?;
        // SAFETY: as in `copy_in_raw`.
        self.start_store(rank, address, unsafe { bytes(from, len) })
    }

    /// Changes a word of `size` bytes, and returns its old value.
    ///
    /// # Errors
    ///
    /// As [`World::copy_out_raw`]; or the word is not of 4 or 8 bytes, or not aligned.
    ///
    /// # Safety
    ///
    /// As above.
    pub unsafe fn change_raw(&self, at: u64, size: u32, change: Change) -> Result<u64, Fault> {
        let (rank, address) = self.parts(at)?;
        self.start_change(rank, address, size, change)
    }

    /// Wakes a rank that sleeps in a wait. For programs that store in place, and have seen that it
    /// sleeps.
    ///
    /// # Errors
    ///
    /// The endpoint of this rank has failed.
    pub fn wake_raw(&self, rank: u32) -> Result<(), Fault> {
        if rank < self.procs { self.wake(rank) } else { Err(Fault::NoRank { rank, procs: self.procs }) }
    }

    /// Returns how addresses of each rank become addresses here, for programs that do it in place.
    #[must_use]
    pub fn ways(&self) -> &[Way] {
        self.windows.ways()
    }

    fn complete(&self, under: Under, completion: Completion) -> Result<(), Fault> {
        if completion == Completion::Now { self.finish(under) } else { Ok(()) }
    }
}

/// # Safety
///
/// The bytes are readable during the call that uses the result, and nobody writes them.
unsafe fn bytes<'a>(from: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: by the contract.
    unsafe { std::slice::from_raw_parts(from, len) }
}
