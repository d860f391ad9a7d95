//! The lock of a NIC: biased towards the thread that uses it, as that of an endpoint of CCI; and
//! where threads sleep until another one has changed something.

use cci::__binding::{Guard, Guarded, prepare};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

pub(crate) struct Lock<T> {
    value: Guarded<T>,
    /// Counts wake-ups. Locked with the guard held, and never the other way round.
    epoch: Mutex<u64>,
    changed: Condvar,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Guarded::new(value, prepare()), epoch: Mutex::new(0), changed: Condvar::new() }
    }

    /// # Panics
    ///
    /// This thread has the guard already: a token has called its NIC as it completed.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Guard<'_, T> {
        match self.value.enter() {
            Ok(guard) => guard,
            Err(_) => entered_twice(),
        }
    }

    /// Leaves, and sleeps until the next wake-up, at most for `left`.
    pub(crate) fn sleep(&self, guard: Guard<'_, T>, left: Option<Duration>) {
        let epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = *epoch;
        drop(guard);
        let is_asleep = |now: &mut u64| *now == seen;
        match left {
            Some(left) => drop(self.changed.wait_timeout_while(epoch, left, is_asleep)),
            None => drop(self.changed.wait_while(epoch, is_asleep)),
        }
    }

    /// Wakes those who sleep.
    #[cold]
    pub(crate) fn wake_all(&self) {
        *self.epoch.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }
}

#[cold]
#[inline(never)]
fn entered_twice() -> ! {
    panic!("a token called its NIC as it completed; let it only write down how it ended")
}
