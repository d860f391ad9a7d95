//! Progress, and waiting for it.

use crate::errors::Error;
use crate::interface::Interface;
use crate::state::State;
use cci::PollError;
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Events taken by one call of CCI, and such calls before the program has its turn.
const BATCH: usize = 64;
const ROUNDS: usize = 16;
/// One of so many calls that begin operations makes progress.
const OFTEN: u32 = 8;
/// How long a wait sleeps while messages wait for room.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a wait looks for events before it sleeps.
const SPIN: Duration = Duration::from_micros(20);

impl Interface {
    pub(crate) fn wake(&self, state: &State) {
        if state.has_sleeper {
            // Full means woken already.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
        if state.waiters > 0 {
            self.changed.notify_all();
        }
    }

    /// Takes what has come, and goes on with what waited for room.
    pub(crate) fn progress(&self, state: &mut State) {
        for _ in 0..ROUNDS {
            match self.endpoint.poll(BATCH, |event| state.take(&self.endpoint, event)) {
                Ok(found) if found == BATCH => {}
                Ok(_) | Err(PollError::NoBuffers) => break,
                Err(_) => {
                    state.has_failed = true;
                    break;
                }
            }
        }
        state.take_time(&self.endpoint);
        state.take_changes(&self.endpoint);
        state.pump_blocked(&self.endpoint);
        state.serve_self(&self.endpoint);
    }

    /// What a call that has begun an operation does: its program may begin others, and read no
    /// event.
    pub(crate) fn progress_at_times(&self, state: &mut State) {
        state.begun = state.begun.wrapping_add(1);
        if state.begun.is_multiple_of(OFTEN) || !state.to_self.is_empty() {
            self.progress(state);
        }
    }

    /// Makes progress until `ready` gives something, at most for `limit`. Sleeps meanwhile: one
    /// thread on the descriptors, others until it has found something.
    pub(crate) fn wait_for<R>(
        &self,
        limit: Option<Duration>,
        mut ready: impl FnMut(&mut State) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut spins = None;
        let mut state = self.lock();
        loop {
            let before = state.objects.changes;
            self.progress(&mut state);
            let result = if state.is_closed { Err(Error::Network) } else { Ok(ready(&mut state)) };
            let is_failed = state.has_failed && matches!(result, Ok(None));
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let is_over = !matches!(result, Ok(None)) || left.is_some_and(|left| left.is_zero()) || is_failed;
            // One of those who wait takes over the sleep on the descriptors.
            if state.objects.changes != before || is_over {
                self.wake(&state);
            }
            if is_over {
                return if is_failed { Err(Error::Failed) } else { result };
            }
            if state.has_sleeper {
                state.waiters += 1;
                state = match left {
                    Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                    None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                };
                state.waiters -= 1;
                continue;
            }
            let begun = *spins.get_or_insert_with(Instant::now);
            if begun.elapsed() < SPIN && !cci::is_oversubscribed() {
                drop(state);
                std::hint::spin_loop();
                state = self.lock();
                continue;
            }
            state.has_sleeper = true;
            let timer = state.peers.poll_timeout().map(|at| at.saturating_duration_since(Instant::now()));
            let pause = state.is_blocked().then_some(PAUSE);
            drop(state);
            self.sleep([left, timer, pause].into_iter().flatten().min());
            state = self.lock();
            state.has_sleeper = false;
        }
    }

    fn sleep(&self, left: Option<Duration>) {
        let handle = self.endpoint.as_fd();
        let _ = self.endpoint.arm();
        let mut descriptors = [PollFd::new(&handle, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
        let left = left.and_then(|left| rustix::event::Timespec::try_from(left).ok());
        // A signal ends it early, and its caller looks again.
        let _ = poll(&mut descriptors, left.as_ref());
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}
