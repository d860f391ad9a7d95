//! The atomics of this project: those of the standard library, or of `loom` when a model runs.
//!
//! `ci/atomics` refuses paths to the standard library's atomics outside this crate, so that every
//! lock-free algorithm can be modelled. Clippy cannot: it sees a type and not the path by which it
//! was imported.

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// One turn of a busy wait.
pub fn spin() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}

/// Loads a word that only the calling thread, or one before it, has changed.
///
/// A model fails if another thread may change the word meanwhile. Loom searches for orders of two
/// accesses by the last access of a word: a usual load by the writer of the word would hide the
/// loads of other threads before it, and no model would store the word earlier than these.
///
/// # Example
///
/// ```
/// use cci_mem::sync::{AtomicU64, Ordering, own};
///
/// let count = AtomicU64::new(7);
/// count.store(own(&count) + 1, Ordering::Release);
/// assert_eq!(own(&count), 8);
/// ```
#[inline(always)]
#[must_use]
pub fn own<W: Word>(word: &W) -> W::Value {
    word.load_own(Ordering::Relaxed)
}

/// As [`own`], with acquire order: for a word whose last writer may have been another thread that
/// has ended.
#[inline(always)]
#[must_use]
pub fn own_acquire<W: Word>(word: &W) -> W::Value {
    word.load_own(Ordering::Acquire)
}

/// An atomic that [`own`] loads.
pub trait Word {
    /// What it holds.
    type Value;

    /// Loads it for its only writer.
    #[doc(hidden)]
    fn load_own(&self, order: Ordering) -> Self::Value;
}

macro_rules! words {
    ($($atomic:ty: $value:ty),+) => {
        $(impl Word for $atomic {
            type Value = $value;

            #[inline(always)]
            fn load_own(&self, order: Ordering) -> $value {
                #[cfg(loom)]
                #[allow(unsafe_code)]
                // SAFETY: loom reports a store of another thread that this load is not ordered
                // with.
                return unsafe {
                    let _ = order;
                    self.unsync_load()
                };
                #[cfg(not(loom))]
                self.load(order)
            }
        })+
    };
}

words!(AtomicU32: u32, AtomicU64: u64);
