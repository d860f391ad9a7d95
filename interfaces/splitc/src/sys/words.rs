//! Words that several ranks change.

use cci_mem::sync::{AtomicU32, AtomicU64, Ordering};

/// What an atomic operation does with a word.
///
/// # Example
///
/// ```
/// use cci_splitc::Change;
///
/// fn next_ticket(world: &cci_splitc::World, counter: cci_splitc::Global<u64>) -> Result<u64, cci_splitc::Fault> {
///     world.change(counter, Change::Add(1))
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "those of the language")]
pub enum Change {
    /// Adds this, wrapping around.
    Add(u64),
    /// Stores this.
    Swap(u64),
    /// Stores `desired` where the word is `expected`.
    CompareSwap {
        /// The value that is replaced.
        expected: u64,
        /// What replaces it.
        desired: u64,
    },
}

/// Changes a word by one operation of the processor, and returns its old value.
///
/// # Safety
///
/// The word of `size` bytes, 4 or 8, is writable and aligned, and others use it as a word.
#[expect(clippy::cast_possible_truncation, reason = "a word of 32 bits takes the lower half")]
pub(crate) unsafe fn change(at: *mut u8, size: usize, change: Change) -> u64 {
    const ORDER: Ordering = Ordering::SeqCst;
    if size == 4 {
        // SAFETY: by the contract.
        let word = unsafe { AtomicU32::from_ptr(at.cast()) };
        return u64::from(match change {
            Change::Add(value) => word.fetch_add(value as u32, ORDER),
            Change::Swap(value) => word.swap(value as u32, ORDER),
            Change::CompareSwap { expected, desired } => {
                word.compare_exchange(expected as u32, desired as u32, ORDER, ORDER).unwrap_or_else(|old| old)
            }
        });
    }
    // SAFETY: by the contract.
    let word = unsafe { AtomicU64::from_ptr(at.cast()) };
    match change {
        Change::Add(value) => word.fetch_add(value, ORDER),
        Change::Swap(value) => word.swap(value, ORDER),
        Change::CompareSwap { expected, desired } => {
            word.compare_exchange(expected, desired, ORDER, ORDER).unwrap_or_else(|old| old)
        }
    }
}

/// Changes an aligned word of this process at an address that a peer names, outside of the windows.
/// None: it is not mapped for that.
pub(crate) fn change_checked(address: u64, size: usize, with: Change) -> Option<u64> {
    let at = std::ptr::with_exposed_provenance_mut(usize::try_from(address).ok()?);
    // SAFETY: mapped for writing, as the kernel has just confirmed; aligned, as the caller has
    // checked; by the contract of the raw calls no Rust reference covers it.
    super::checked::can_change(address, size).then(|| unsafe { change(at, size, with) })
}
