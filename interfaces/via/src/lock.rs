//! The lock of a NIC: biased towards the thread that uses it, as that of an endpoint of CCI; and
//! where threads sleep until another one has changed something.

use cci::__binding::{Guard, Guarded, Sleepers, prepare};
use std::time::Duration;

pub(crate) struct Lock<T> {
    value: Guarded<T>,
    sleepers: Sleepers,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Guarded::new(value, prepare()), sleepers: Sleepers::new() }
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
        self.sleepers.sleep(guard, left);
    }

    /// Wakes those who sleep.
    pub(crate) fn wake_all(&self) {
        self.sleepers.wake_all();
    }
}

#[cold]
#[inline(never)]
fn entered_twice() -> ! {
    panic!("a token called its NIC as it completed; let it only write down how it ended")
}
