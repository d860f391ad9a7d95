//! Where threads sleep until another one has changed what a lock guards.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Threads that sleep until another one has changed what a [`super::Guarded`] value is. A condition
/// variable needs a mutex of its own for that, since theirs is no mutex of the standard library.
#[derive(Debug, Default)]
pub struct Sleepers {
    /// Counts wake-ups. Locked with the guard held, and never the other way round.
    epoch: Mutex<u64>,
    changed: Condvar,
}

impl Sleepers {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { epoch: Mutex::new(0), changed: Condvar::new() }
    }

    /// Drops the guard, and sleeps until the next wake-up, at most for `left`. A wake-up by whoever
    /// has the guard after this thread is not missed.
    pub fn sleep<G>(&self, guard: G, left: Option<Duration>) {
        let epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = *epoch;
        drop(guard);
        let is_asleep = |now: &mut u64| *now == seen;
        match left {
            Some(left) => drop(self.changed.wait_timeout_while(epoch, left, is_asleep)),
            None => drop(self.changed.wait_while(epoch, is_asleep)),
        }
    }

    /// Wakes all that sleep.
    #[cold]
    pub fn wake_all(&self) {
        *self.epoch.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }
}
