//! When a thread that sleeps on a timer wakes next, where other threads ask it to wake earlier.
//!
//! The *sleeper* works in rounds. It begins a round, looks at the state of all its tasks, plans its
//! next wake-up, and sleeps. Any other thread changes the state of a task, and then asks for a
//! wake-up. The round that begins after the request sees that change. A request that comes later
//! than the begin is kept: the plan does not replace it by a later time.
//!
//! ```text
//!   sleeper                                    another thread
//!   begin     take the requests                change the state of a task
//!   look at the tasks                          request   lower `requested` (1)
//!   plan      store `fires_at` (2)                       is `fires_at` later?  (3): set the timer
//!             is `requested` earlier?  (4): set the timer
//!   sleep until the timer fires
//! ```
//!
//! A full fence lies between (1) and (3), and between (2) and (4). If (4) misses (1), then (3) sees
//! (2): one of both sets the timer (Dekker's algorithm).

use crate::sync::{AtomicU64, Ordering, fence};

/// No wake-up: later than all times.
pub const NEVER: u64 = u64::MAX;

/// The time of the next wake-up, and the earliest request since the last begin. Times are of any
/// clock, 0 apart.
pub struct Schedule {
    fires_at: AtomicU64,
    requested: AtomicU64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { fires_at: AtomicU64::new(NEVER), requested: AtomicU64::new(NEVER) }
    }
}

impl Schedule {
    /// Returns when the timer fires, or [`NEVER`].
    #[must_use]
    pub fn fires_at(&self) -> u64 {
        self.fires_at.load(Ordering::Relaxed)
    }

    /// Requests a wake-up at `at` or earlier. `set_timer` is called if the timer would fire later.
    pub fn request(&self, at: u64, set_timer: impl FnOnce(u64)) {
        // Release: the round that takes the request sees the task.
        self.requested.fetch_min(at, Ordering::AcqRel);
        // With the fence in `plan`.
        fence(Ordering::SeqCst);
        if self.fires_at() > at {
            self.set(at, set_timer);
        }
    }

    /// Moves the wake-up to `at` if the timer would fire earlier, also one that was requested: the
    /// caller has seen that no task needs the sleeper until then. A request at the same time may
    /// come that much later.
    pub fn postpone(&self, at: u64, set_timer: impl FnOnce(u64)) {
        if at > self.fires_at() {
            self.set(at, set_timer);
        }
    }

    /// Begins a round of the sleeper: it sees the tasks as they were at each request until now.
    pub fn begin(&self) {
        // Acquire: the tasks of all requests that it takes.
        self.requested.swap(NEVER, Ordering::AcqRel);
    }

    /// Ends a round of the sleeper: plans the wake-up at `at`, or at the earliest request since
    /// [`Schedule::begin`].
    pub fn plan(&self, at: u64, mut set_timer: impl FnMut(u64)) {
        self.set(at, &mut set_timer);
        // With the fence in `request`.
        fence(Ordering::SeqCst);
        let requested = self.requested.load(Ordering::Relaxed);
        if requested < at {
            // Also if the request has stored the same time: it may have set the timer before this
            // plan did.
            self.fires_at.store(requested, Ordering::Relaxed);
            set_timer(requested);
        }
    }

    /// Records that the timer has fired, so that it is not set. Called by the sleeper.
    pub fn on_fired(&self) {
        // A time that nobody plans: whoever sets the schedule from now on sets the timer as well.
        self.fires_at.store(NEVER - 1, Ordering::Relaxed);
    }

    fn set(&self, at: u64, set_timer: impl FnOnce(u64)) {
        if self.fires_at.swap(at, Ordering::Relaxed) != at {
            set_timer(at);
        }
    }
}
