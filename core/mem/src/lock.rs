//! A lock that is taken with one locked instruction and given back without any.
//!
//! The releasing side stores and looks for waiters behind a light fence, and a waiter pays with a heavy one before it sleeps. A
//! holder may be preempted, so a waiter spins briefly and then sleeps on a futex.

use crate::barrier::Pairing;
use crate::futex;
use crate::sync::{AtomicU32, Ordering, spin};

/// Turns of busy waiting before a waiter sleeps: about a microsecond, longer than any send holds the lock. None in models:
/// loom lets a thread that yields wait for the others, and so would never let it sleep beside a holder.
pub(crate) const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// The bare lock.
pub struct Lock {
    held: AtomicU32,
    waiters: AtomicU32,
}

impl Lock {
    /// Free.
    #[must_use]
    pub fn new() -> Self {
        Self { held: AtomicU32::new(0), waiters: AtomicU32::new(0) }
    }

    /// Waits for the lock and takes it.
    #[inline]
    pub fn acquire(&self, pairing: Pairing) {
        if !self.try_take() {
            self.acquire_contended(pairing);
        }
    }

    #[inline(always)]
    fn try_take(&self) -> bool {
        // A swap that finds 1 leaves what was there, like a compare-exchange that fails. Models use the latter, because loom
        // lets such a swap come after the store of `release` in the order of changes and yet read what stood before it.
        if cfg!(loom) {
            self.held.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
        } else {
            self.held.swap(1, Ordering::Acquire) == 0
        }
    }

    #[cold]
    fn acquire_contended(&self, pairing: Pairing) {
        let taken = (0..SPINS).any(|_| {
            spin();
            self.held.load(Ordering::Relaxed) == 0 && self.try_take()
        });
        if taken {
            return;
        }
        self.waiters.fetch_add(1, Ordering::Relaxed);
        // Either the holder sees this waiter after it stores 0, or the swap below sees that 0.
        pairing.heavy_here();
        while !self.try_take() {
            futex::wait(&self.held, 1);
        }
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether somebody holds it, as it seemed a moment ago.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) != 0
    }

    /// Gives the lock back. Only its holder may.
    #[inline]
    pub fn release(&self, pairing: Pairing) {
        // Publishes what the holder wrote to the next holder.
        self.held.store(0, Ordering::Release);
        pairing.light();
        if self.waiters.load(Ordering::Relaxed) != 0 {
            futex::wake_one(&self.held);
        }
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self::new()
    }
}
