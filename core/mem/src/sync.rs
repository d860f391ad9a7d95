//! The atomics of this project: those of the standard library, or of `loom` when a model runs.
//!
//! `ci/test` refuses paths to the standard library's atomics in `core`, `transports` and `bindings`
//! outside this crate, so that every lock-free algorithm can be modelled. Clippy cannot: it sees a
//! type and not the path by which it was imported.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// One turn of a busy wait.
pub fn spin() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}
