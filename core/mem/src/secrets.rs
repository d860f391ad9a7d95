//! An arena for secrets: memory that no core dump holds and that a forked child does not get.
//!
//! Each process has one arena of private anonymous pages. The pages have `MADV_DONTDUMP` and
//! `MADV_WIPEONFORK`, and are locked into memory as far as the limits of the process allow. The
//! arena hands out cells of a few fixed sizes. A cell begins with a word that is never zero: the
//! kernel wipes that word with the rest, so that a forked child notices a wiped cell at each use.
//!
//! What a computation leaves on the stack is not in the arena: [`on_clean_stack`] overwrites it.

use crate::fork::PerProcess;
use crate::mutex::lock;
use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Mutex;

/// Bytes of the cells of each class, header included.
const CLASSES: [usize; 5] = [64, 256, 640, 2048, 4096];

/// Bytes before the value of a cell. Values are aligned to as many.
const HEADER: usize = 16;

/// Bytes of address space that the arena grows by. A page takes memory when it is touched.
const BLOCK: usize = 64 << 10;

/// What the first word of a cell in use holds. A wiped cell has zero there.
const ALIVE: u64 = 0x0cc1_5ec2_e75a_11fe;

/// Bytes of the stack that [`on_clean_stack`] overwrites: twice what the computations of handshakes
/// use, which is far more in a build without optimization.
const STACK: usize = if cfg!(debug_assertions) { 64 << 10 } else { 8 << 10 };

/// A value of plain memory.
///
/// # Safety
///
/// Every pattern of bytes is a value, zeroes too; nothing is to be dropped; the value is not larger
/// than 4,080 bytes and needs no alignment above 16.
pub unsafe trait Plain: Sized {}

// SAFETY: bytes.
unsafe impl<const N: usize> Plain for [u8; N] {}
// SAFETY: as above.
unsafe impl<const N: usize, const M: usize> Plain for [[u8; N]; M] {}

/// The kernel has wiped a secret, because this process was forked from the one that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wiped;

impl fmt::Display for Wiped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a forked process has no key of its parent; open an endpoint of its own in it")
    }
}

impl std::error::Error for Wiped {}

#[derive(Default)]
struct Free {
    /// Where the cells of each class are that nobody has.
    cells: [Vec<NonNull<u8>>; CLASSES.len()],
    /// The rest of the newest block.
    rest: Option<(NonNull<u8>, usize)>,
}

// SAFETY: addresses of cells that belong to the arena alone.
unsafe impl Send for Free {}

type Arena = Mutex<Free>;

static ARENA: PerProcess<Arena> = PerProcess::new();

impl Free {
    /// Takes a cell of zeroes.
    fn take(&mut self, class: usize) -> Result<NonNull<u8>> {
        if let Some(cell) = self.cells[class].pop() {
            return Ok(cell);
        }
        let len = CLASSES[class];
        let (start, left) = match self.rest {
            Some(rest) if rest.1 >= len => rest,
            _ => (block()?, BLOCK),
        };
        // SAFETY: inside the block, of which this part was not handed out.
        self.rest = Some((unsafe { start.add(len) }, left - len));
        Ok(start)
    }
}

/// A block of zeroes that is in no dump and in no child. It is never unmapped.
fn block() -> Result<NonNull<u8>> {
    // SAFETY: a fresh private mapping at an address of the kernel's choice.
    let base =
        unsafe { mmap_anonymous(std::ptr::null_mut(), BLOCK, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)? };
    // Miri dumps and forks nothing, and does not imitate these calls.
    #[cfg(not(miri))]
    // SAFETY: the range is the mapping just made.
    unsafe {
        use rustix::mm::{Advice, MlockFlags, madvise, mlock_with};
        madvise(base, BLOCK, Advice::LinuxDontDump)?;
        madvise(base, BLOCK, Advice::LinuxWipeOnFork)?;
        // Best effort: the limit of locked memory may be 0.
        let _ = mlock_with(base, BLOCK, MlockFlags::ONFAULT);
    }
    NonNull::new(base.cast()).ok_or(Errno::NOMEM)
}

/// A value in a cell of the arena, which has it zeroed when this owner is dropped.
///
/// # Example
///
/// ```
/// use cci_mem::secrets::Secret;
///
/// let mut secret = Secret::<[u8; 32]>::zeroed()?;
/// secret.get_mut()?.fill(7);
/// assert_eq!(secret.get()?, &[7; 32]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Secret<T: Plain> {
    cell: NonNull<u8>,
    arena: &'static Arena,
    value: PhantomData<T>,
}

// SAFETY: it owns its cell, as a box owns its memory.
unsafe impl<T: Plain + Send> Send for Secret<T> {}
// SAFETY: as above.
unsafe impl<T: Plain + Sync> Sync for Secret<T> {}

impl<T: Plain> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl<T: Plain> Secret<T> {
    const CLASS: usize = {
        assert!(align_of::<T>() <= HEADER && !std::mem::needs_drop::<T>());
        let mut class = 0;
        while CLASSES[class] < HEADER + size_of::<T>() {
            class += 1;
        }
        class
    };

    /// Takes a cell of zeroes. It locks the arena, and may have it grow.
    ///
    /// # Errors
    ///
    /// No address space, or the kernel is older than 4.14.
    pub fn zeroed() -> Result<Self> {
        let (_, arena) = ARENA.get(Arena::default)?;
        let cell = lock(arena).take(Self::CLASS)?;
        // SAFETY: the first word of an aligned cell that nobody else has.
        unsafe { cell.cast::<u64>().write(ALIVE) };
        Ok(Self { cell, arena, value: PhantomData })
    }

    /// Returns where the value lies, or that it was wiped.
    #[inline(always)]
    fn place(&self) -> std::result::Result<NonNull<T>, Wiped> {
        // SAFETY: the first word of a cell that is never unmapped. The kernel may have wiped it
        // only before this process ran.
        if unsafe { self.cell.cast::<u64>().read() } != ALIVE {
            return Err(Wiped);
        }
        // SAFETY: inside the cell, as `CLASS` makes sure.
        Ok(unsafe { self.cell.add(HEADER) }.cast())
    }

    /// Returns the value.
    ///
    /// # Errors
    ///
    /// This process was forked from the one that had it.
    #[inline(always)]
    pub fn get(&self) -> std::result::Result<&T, Wiped> {
        // SAFETY: a value, by the contract of `Plain`, which is borrowed as this owner is.
        self.place().map(|place| unsafe { place.as_ref() })
    }

    /// Returns the value, to be changed.
    ///
    /// # Errors
    ///
    /// As [`Secret::get`].
    #[inline(always)]
    pub fn get_mut(&mut self) -> std::result::Result<&mut T, Wiped> {
        // SAFETY: as in `get`, and borrowed alone.
        self.place().map(|mut place| unsafe { place.as_mut() })
    }

    /// Zeroes the value and keeps the cell. It does nothing to a wiped one.
    pub fn wipe(&mut self) {
        if let Ok(place) = self.place() {
            // SAFETY: the value of this cell, which is borrowed alone.
            unsafe { zero(place.cast(), size_of::<T>()) };
        }
    }
}

impl<T: Plain> Drop for Secret<T> {
    fn drop(&mut self) {
        // The arena of a parent may be locked for ever.
        if self.place().is_ok() {
            // SAFETY: the cell of this owner, which ends.
            unsafe { zero(self.cell, HEADER + size_of::<T>()) };
            lock(self.arena).cells[Self::CLASS].push(self.cell);
        }
    }
}

/// Overwrites memory by zeroes, which no compiler leaves out.
///
/// # Safety
///
/// The bytes are writable, and nobody else's.
unsafe fn zero(start: NonNull<u8>, len: usize) {
    // SAFETY: as the caller says.
    unsafe { start.write_bytes(0, len) };
    // What is read behind this may be those bytes.
    std::hint::black_box(start);
}

/// Overwrites bytes by zeroes, which no compiler leaves out.
pub fn clear(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

/// Runs a computation with secrets, and overwrites what it has left on the stack.
///
/// What the computation returns is not overwritten: it has no secret in it.
#[inline(never)]
pub fn on_clean_stack<R>(compute: impl FnOnce() -> R) -> R {
    let result = below(compute);
    overwrite_stack::<STACK>();
    result
}

/// Runs it in a frame of its own, so that the frame of the caller has none of its variables.
#[inline(never)]
fn below<R>(compute: impl FnOnce() -> R) -> R {
    compute()
}

/// Overwrites the `N` bytes of the stack below the frame of its caller: what a call before it, from
/// the same frame, has left there.
#[inline(never)]
pub fn overwrite_stack<const N: usize>() {
    let mut stack = std::mem::MaybeUninit::<[u8; N]>::uninit();
    // SAFETY: bytes of this frame.
    unsafe { zero(NonNull::from(&mut stack).cast(), N) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_was_given_back_holds_zeroes() {
        let mut first = Secret::<[u8; 1500]>::zeroed().expect("memory");
        first.get_mut().expect("here").fill(0xa5);
        let cell = first.cell;
        drop(first);
        // SAFETY: the arena never unmaps a cell; a value of this size is this test's alone.
        let left = unsafe { std::slice::from_raw_parts(cell.as_ptr(), 2048) };
        assert!(left.iter().all(|byte| *byte == 0));
        let again = Secret::<[u8; 1500]>::zeroed().expect("memory");
        assert_eq!((again.cell, again.get()), (cell, Ok(&[0; 1500])));
    }

    #[test]
    fn a_wiped_cell_keeps_its_place() {
        let mut secret = Secret::<[u8; 48]>::zeroed().expect("memory");
        secret.get_mut().expect("here").fill(1);
        secret.wipe();
        assert_eq!(secret.get(), Ok(&[0; 48]));
    }

    #[test]
    fn cells_do_not_overlap_and_are_aligned() {
        let cells: Vec<_> = (0..200).map(|_| Secret::<[u8; 4080]>::zeroed().expect("memory")).collect();
        let mut places: Vec<_> = cells.iter().map(|cell| cell.cell.addr().get()).collect();
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 4096));
        assert!(places.iter().all(|place| place.is_multiple_of(HEADER)));
    }
}
