//! What has changed, as calls see it without the lock: those that look in vain leave the lock to
//! the engine.

use crate::handles::Handle;
use cci_mem::sync::{AtomicU32, AtomicU64, Ordering};
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
        // Orders nothing: what has changed is read under the lock.
        self.0.load(Ordering::Relaxed)
    }

    /// Something has changed. Before anybody else is told of it: who has an ack finds the event.
    #[inline]
    pub(crate) fn count(&mut self) {
        // No locked instruction: nobody else writes. A message that is sent later is published
        // after it.
        self.0.store(self.get().wrapping_add(1), Ordering::Relaxed);
    }
}

/// Vain looks, about 2 us of them, after which a program lets others have its processor.
const PATIENCE: u32 = 1024;

/// The queue that was found empty last, and the changes until then; and looks in vain since.
#[derive(Debug)]
pub(crate) struct Empty(AtomicU64, AtomicU32);

/// The same word again for something else needs 2^32 changes between two looks of a program.
fn word(queue: Handle, changes: u64) -> u64 {
    u64::from(queue.bits()) << 32 | changes & u64::from(u32::MAX)
}

impl Empty {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(word(Handle::INVALID, 0)), AtomicU32::new(0))
    }

    /// This queue is empty, after so many changes.
    pub(crate) fn set(&self, queue: Handle, changes: u64) {
        // Says nothing of anything else.
        self.0.store(word(queue, changes), Ordering::Relaxed);
    }

    /// Whether this queue was found empty after so many changes.
    #[inline]
    pub(crate) fn is(&self, queue: Handle, changes: u64) -> bool {
        self.0.load(Ordering::Relaxed) == word(queue, changes)
    }

    /// The program looks in vain. Such a look makes no system call, so that an engine which the
    /// system has woken on the same processor would wait for its turn, for a millisecond and more.
    #[inline]
    pub(crate) fn look_in_vain(&self) {
        // Publishes nothing. Looks of several threads at a time may count as one.
        let looks = self.1.load(Ordering::Relaxed).wrapping_add(1);
        self.1.store(looks, Ordering::Relaxed);
        if looks.is_multiple_of(PATIENCE) {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_known_to_be_empty_until_something_changes() {
        let (mut changes, empty) = (Changes::new(), Empty::new());
        let [queue, other] = [7, 8].map(Handle::from_bits);
        assert!(!empty.is(queue, changes.get()));
        empty.set(queue, changes.get());
        assert!(empty.is(queue, changes.get()) && !empty.is(other, changes.get()));
        let seen = changes.clone();
        changes.count();
        assert!(seen.get() == 1 && !empty.is(queue, seen.get()));
    }
}
