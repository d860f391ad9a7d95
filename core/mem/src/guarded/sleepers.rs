//! Where threads sleep until another one has changed what a lock guards.

use crate::futex;
use crate::sync::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Threads that sleep until another one has changed what a [`super::Guarded`] value is. They sleep
/// on a word and take no lock but that of the value, for which all that are woken come.
#[derive(Debug, Default)]
pub struct Sleepers {
    /// Counts wake-ups; changes with the guard held. Whoever reads it with the guard held sleeps
    /// only until the next one.
    epoch: AtomicU32,
}

impl Sleepers {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops the guard, and sleeps until the next wake-up, at most for `left`. A wake-up by whoever
    /// has the guard after this thread is not missed.
    pub fn sleep<G>(&self, guard: G, left: Option<Duration>) {
        let seen = self.epoch.load(Ordering::Relaxed);
        drop(guard);
        // A limit beyond the clock is none.
        let until = left.and_then(|left| Instant::now().checked_add(left));
        let mut left = left;
        // The guard has what the others wrote.
        while self.epoch.load(Ordering::Relaxed) == seen && left.is_none_or(|left| !left.is_zero()) {
            futex::wait(&self.epoch, seen, left.unwrap_or(Duration::MAX));
            left = until.map(|until| until.saturating_duration_since(Instant::now()));
        }
    }

    /// Wakes all that sleep, with the guard held.
    #[cold]
    pub fn wake_all(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
        futex::wake_all(&self.epoch);
    }
}
