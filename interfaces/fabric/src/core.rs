//! An endpoint of CCI, and what its lock protects.

use crate::code::Code;
use crate::domain::Keeper;
use crate::state::State;
use crate::watch::Source;
use cci::Endpoint;
use cci_ground::{Changing, Drive, Driven, readable, sleep_until_ready};
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What queues, counters and the program's calls share of an endpoint that is enabled.
pub(crate) struct Core {
    driven: Driven<State>,
}

impl Core {
    pub(crate) fn new(endpoint: Endpoint, state: State) -> Result<Arc<Self>, Code> {
        let driven = Driven::new(endpoint, state).map_err(|why| Code::of_open(&why))?;
        let core = Arc::new(Self { driven });
        let me: Weak<Self> = Arc::downgrade(&core);
        core.driven.lock().me = me;
        Ok(core)
    }

    /// Runs a call under the lock. Who sleeps looks again if something is to be tried again, or is
    /// due by the clock, that was not before.
    #[inline]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State, &Endpoint) -> R) -> R {
        let mut state = self.driven.lock();
        let had_work = state.has_deferred_work();
        let result = act(&mut state, self.driven.endpoint());
        if !had_work && state.has_deferred_work() {
            state.nudge();
        }
        result
    }

    /// Sleeps until an event comes, at most for `limit`.
    pub(crate) fn sleep(&self, limit: Duration) {
        let limit = self.left().map_or(limit, |left| left.min(limit));
        if let Ok(sleeper) = self.endpoint().sleeper() {
            sleep_until_ready(&mut [readable(sleeper.as_fd())], Some(limit));
        }
    }
}

impl Source for Core {
    #[inline]
    fn progress(&self) {
        self.with(|state, endpoint| state.progress(endpoint));
    }

    #[inline]
    fn endpoint(&self) -> &Endpoint {
        self.driven.endpoint()
    }

    fn left(&self) -> Option<Duration> {
        self.driven.lock().left()
    }
}

impl Keeper for Core {
    fn forget_region(&self, key: u64, life: u32) {
        self.driven.lock().forget_region(key, life);
    }
}
