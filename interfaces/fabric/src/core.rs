//! An endpoint of CCI, and what its lock protects.

use crate::domain::Keeper;
use crate::state::State;
use crate::watch::Source;
use cci::Endpoint;
use cci_ground::{readable, sleep_until_ready};
use cci_mem::barrier::prepare;
use cci_mem::guarded::{Guard, Guarded};
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What queues, counters and the program's calls share of an endpoint that is enabled. Threads
/// sleep on queues and counters, and never for the state itself.
pub(crate) struct Core {
    endpoint: Endpoint,
    state: Guarded<State>,
}

impl Core {
    pub(crate) fn new(endpoint: Endpoint, state: State) -> Arc<Self> {
        let core = Arc::new(Self { endpoint, state: Guarded::new(state, prepare()) });
        let me: Weak<Self> = Arc::downgrade(&core);
        core.lock().me = me;
        core
    }

    #[inline]
    fn lock(&self) -> Guard<'_, State> {
        self.state.enter().unwrap_or_else(|_| unreachable!("nothing under this lock takes it again"))
    }

    /// Runs a call under the lock. Who sleeps looks again if something is to be tried again, or is
    /// due by the clock, that was not before.
    #[inline]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State, &Endpoint) -> R) -> R {
        let mut state = self.lock();
        state.calls = state.calls.wrapping_add(1);
        self.act(&mut state, act)
    }

    #[inline]
    fn act<R>(&self, state: &mut State, act: impl FnOnce(&mut State, &Endpoint) -> R) -> R {
        let had_work = state.has_deferred_work();
        let result = act(state, &self.endpoint);
        if !had_work && state.has_deferred_work() {
            state.nudge();
        }
        result
    }

    /// Sleeps until an event comes, at most for `limit`.
    pub(crate) fn sleep(&self, limit: Duration) {
        let limit = self.left().map_or(limit, |left| left.min(limit));
        if let Ok(sleeper) = self.endpoint.sleeper() {
            sleep_until_ready(&mut [readable(sleeper.as_fd())], Some(limit));
        }
    }
}

impl Source for Core {
    #[inline]
    fn progress(&self) {
        self.with(State::progress);
    }

    fn drive(&self) -> u64 {
        let mut state = self.lock();
        self.act(&mut state, State::progress);
        state.calls
    }

    #[inline]
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn left(&self) -> Option<Duration> {
        self.lock().left()
    }
}

impl Keeper for Core {
    fn forget_region(&self, key: u64, life: u32) {
        self.lock().forget_region(key, life);
    }
}
