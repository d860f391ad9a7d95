//! Waiting for what progress brings.

use crate::driven::{Changing, Driven, Entered};
use crate::spin::may_spin;
use cci::Endpoint;
use cci_mem::sync::spin;
use std::time::{Duration, Instant};

/// Events that one call takes before waits are looked after, and others get the lock.
pub const BATCH: usize = 64;
/// Such batches that one turn of progress takes at most.
pub const ROUNDS: usize = 16;

/// A state that goes on with what comes to its endpoint.
///
/// # Example
///
/// ```
/// use cci_ground::{Changing, Drive, Driven};
/// use std::time::Duration;
///
/// struct Count(u64);
/// impl Changing for Count {
///     fn changes(&self) -> u64 {
///         self.0
///     }
/// }
/// impl Drive for Count {
///     fn progress(&mut self, endpoint: &cci::Endpoint) {
///         // That it has failed, a state writes down.
///         let _ = endpoint.poll(64, |_| self.0 += 1);
///     }
/// }
/// let endpoint = cci::Endpoint::open(cci::Context::new()?.default_device()?, &cci::EndpointOptions::new())?;
/// let driven = Driven::new(endpoint, Count(0))?;
/// let found = driven.wait_for(Some(Duration::from_millis(1)), |count| (count.0 > 0).then_some(count.0));
/// assert_eq!(found, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Drive: Changing {
    /// Whether waits look for a while before they sleep.
    const SPINS: bool = true;

    /// Takes what has come until nothing comes, and goes on with what waited for room.
    fn progress(&mut self, endpoint: &Endpoint);
}

impl<S: Drive> Driven<S> {
    /// Makes progress until `ready` gives something, at most for `limit`; `None`: the time is over.
    /// Sleeps meanwhile: one thread on the descriptors, others until it has found something. For a
    /// state that has ended `ready` gives something too, or the wait goes on.
    pub fn wait_for<R>(&self, limit: Option<Duration>, mut ready: impl FnMut(&mut S) -> Option<R>) -> Option<R> {
        let deadline = deadline(limit);
        let mut begun = None;
        let _wakes = WakesByPanic(self);
        let mut state = self.lock();
        loop {
            let before = state.changes();
            state.progress(self.endpoint());
            let result = ready(&mut state);
            let left = left(&result, deadline);
            let is_over = left == Some(Duration::ZERO);
            // One of those who wait takes over the sleep on the descriptors.
            if state.changes() != before || is_over {
                self.wake(&state);
            }
            if is_over {
                return result;
            }
            let now = if S::SPINS { Some(Instant::now()) } else { None };
            if now.is_some_and(|now| may_spin(*begun.get_or_insert(now), now)) {
                drop(state);
                spin();
                state = self.lock();
            } else {
                state = self.sleep(state, left);
            }
        }
    }
}

impl<S: Changing> Driven<S> {
    /// As [`Driven::wait_for`], where a thread of the interface makes the progress: sleeps until
    /// that one, or a call, has changed something. Takes the lock by `lock`.
    pub fn wait_beside<'a, R>(
        &'a self,
        limit: Option<Duration>,
        lock: impl Fn() -> Entered<'a, S>,
        mut ready: impl FnMut(&mut S) -> Option<R>,
    ) -> Option<R> {
        let deadline = deadline(limit);
        let mut state = lock();
        loop {
            let before = state.changes();
            let result = ready(&mut state);
            let left = left(&result, deadline);
            let is_over = left == Some(Duration::ZERO);
            if state.changes() != before || is_over {
                self.wake(&state);
            }
            if is_over {
                return result;
            }
            state = self.sleep_beside(state, left, &lock);
        }
    }
}

/// Dropped by a panic of progress, or of `ready`: another one takes over the sleep on the
/// descriptors.
struct WakesByPanic<'d, S: Changing>(&'d Driven<S>);

impl<S: Changing> Drop for WakesByPanic<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.wake(&self.0.lock());
        }
    }
}

/// One that the clock does not reach is none.
fn deadline(limit: Option<Duration>) -> Option<Instant> {
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

/// How long a wait with this result goes on.
fn left<R>(result: &Option<R>, deadline: Option<Instant>) -> Option<Duration> {
    if result.is_some() {
        return Some(Duration::ZERO);
    }
    deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
}
