//! What has changed, as waits see it without the lock.

use cci_mem::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// Counts what waits may wait for. Changed under the lock alone, and read by everybody.
#[derive(Clone, Debug)]
pub(crate) struct Changes(Arc<AtomicU64>);

impl Changes {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(0)))
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Something has changed, which whoever reads the new count finds.
    #[inline]
    pub(crate) fn count(&mut self) {
        // No locked instruction: nobody else writes.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

/// Vain looks, about 20 us of them, after which a program lets others have its processor.
const PATIENCE: u32 = 1024;

/// A program has looked in vain so often. Such a look makes no system call, so that an engine which
/// the system has woken on the same processor would wait for its turn, for a millisecond and more.
#[inline]
pub(crate) fn look_in_vain(looks: u32) {
    if looks.is_multiple_of(PATIENCE) {
        std::thread::yield_now();
    }
}
