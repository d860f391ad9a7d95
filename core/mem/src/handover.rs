//! Hands an endpoint over between threads of a program, which drive it for a while, and one thread
//! that takes its events otherwise.
//!
//! While a thread of the program drives, the other thread *naps*: it sleeps without the endpoint's
//! descriptor, so that events do not wake it. A driver announces until when it drives. A call that
//! waits without driving leaves the endpoint to the sleeper, and wakes it if it naps.
//!
//! ```text
//!   a call that leaves                     the sleeper
//!   until = 0             (1)              is_napping = true       (4)
//!   full fence            (2)              full fence              (5)
//!   is_napping?           (3): wake it     look at `until`         (6): nap, or sleep armed
//! ```
//!
//! If (6) misses (1), then (3) sees (4), and the call wakes the sleeper (Dekker's algorithm). So
//! nobody sleeps through an event that no thread will take, and the call needs no time limit. The
//! nap of a sleeper has one: a driver that ceases to drive without a call that leaves wakes nobody.

use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};

/// Until when a thread drives, and whether the sleeper naps. Times are of any clock; 0 is past.
///
/// # Example
///
/// ```
/// use cci_mem::handover::Handover;
///
/// let handover = Handover::default();
/// handover.drive_until(90);
/// // The sleeper, at 50: it naps for 40.
/// let nap = handover.begin_nap(|until| until.checked_sub(50).filter(|left| *left > 0));
/// assert_eq!(nap, Some(40));
/// // A call that waits.
/// assert!(handover.leave(), "it has to wake the sleeper");
/// handover.end_nap();
/// assert!(!handover.leave());
/// ```
#[derive(Debug, Default)]
pub struct Handover {
    until: AtomicU64,
    is_napping: AtomicBool,
}

impl Handover {
    /// Announces that a thread drives until a time, or no more: 0. Wakes nobody.
    #[inline]
    pub fn drive_until(&self, until: u64) {
        // Publishes nothing: a sleeper that misses it sleeps armed, or naps to the end of its time.
        self.until.store(until, Ordering::Relaxed);
    }

    /// Returns until when a thread drives, or 0.
    #[inline]
    #[must_use]
    pub fn until(&self) -> u64 {
        self.until.load(Ordering::Relaxed)
    }

    /// Leaves the endpoint to the sleeper. True: the caller must wake it.
    #[must_use]
    pub fn leave(&self) -> bool {
        // (2) with (5): this call sees the nap, or the sleeper sees that nobody drives.
        self.leave_by(|| fence(Ordering::SeqCst))
    }

    fn leave_by(&self, fence: impl FnOnce()) -> bool {
        self.drive_until(0);
        fence();
        self.is_napping()
    }

    /// Begins a sleep. `look` gets until when a thread drives, and returns how to nap; `None`:
    /// nobody drives, and the sleeper has to sleep with the endpoint's descriptor. Called by the
    /// sleeper.
    pub fn begin_nap<N>(&self, look: impl FnOnce(u64) -> Option<N>) -> Option<N> {
        // (5), see `leave`.
        self.begin_nap_by(look, || fence(Ordering::SeqCst))
    }

    fn begin_nap_by<N>(&self, look: impl FnOnce(u64) -> Option<N>, fence: impl FnOnce()) -> Option<N> {
        self.is_napping.store(true, Ordering::Relaxed);
        fence();
        let nap = look(self.until());
        if nap.is_none() {
            self.end_nap();
        }
        nap
    }

    /// Ends a sleep. Called by the sleeper, before it takes back the wake-ups that have come.
    pub fn end_nap(&self) {
        // Publishes nothing: a call that misses it wakes the sleeper in vain.
        self.is_napping.store(false, Ordering::Relaxed);
    }

    /// Whether the sleeper naps, or looks whether it may.
    #[must_use]
    pub fn is_napping(&self) -> bool {
        self.is_napping.load(Ordering::Relaxed)
    }

    /// Models only: [`Handover::leave`] without the fence (2).
    #[cfg(loom)]
    pub fn leave_without_fence(&self) -> bool {
        self.leave_by(|| {})
    }

    /// Models only: [`Handover::begin_nap`] without the fence (5).
    #[cfg(loom)]
    pub fn begin_nap_without_fence<N>(&self, look: impl FnOnce(u64) -> Option<N>) -> Option<N> {
        self.begin_nap_by(look, || {})
    }
}
