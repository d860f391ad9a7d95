//! Progress, and waiting for it.

use crate::calls::Calls;
use crate::changes::Changes;
use crate::errors::Error;
use crate::state::State;
use cci::{Endpoint, OpenError, PollError};
use cci_ground::{BATCH, Drive, Driven, Entered, Held, ROUNDS, may_spin};
use cci_mem::sync::spin;
use std::time::{Duration, Instant};

/// Turns of an engine's loop between two looks.
const LOOKS: usize = 4;
/// Commands that an engine follows before it looks for events.
const COMMANDS: usize = 32;

/// What the program and the engine share.
pub(crate) struct Core {
    driven: Driven<State>,
    /// What calls do without the lock, where a thread of its own makes the progress.
    pub(crate) calls: Option<Calls>,
    /// What the state has of it too.
    pub(crate) changes: Changes,
}

impl Drive for State {
    fn progress(&mut self, endpoint: &Endpoint) {
        self.take_all(endpoint);
    }
}

impl State {
    /// Takes what has come, and goes on with what waited for room. Returns how many events there
    /// were.
    pub(crate) fn take_all(&mut self, endpoint: &Endpoint) -> usize {
        let mut total = 0;
        for _ in 0..ROUNDS {
            match endpoint.poll(BATCH, |event| self.take(endpoint, event)) {
                Ok(found) => {
                    total += found;
                    // The end of a read of mapped memory is there at once, and a partner waits.
                    if found < BATCH && !std::mem::take(&mut self.has_begun_reads) {
                        break;
                    }
                }
                Err(PollError::NoBuffers) => break,
                Err(_) => {
                    self.has_failed = true;
                    break;
                }
            }
        }
        if self.has_deferred_work() {
            self.catch_up(endpoint);
        }
        total
    }
}

impl Core {
    pub(crate) fn new(endpoint: Endpoint, state: State, calls: Option<Calls>) -> Result<Self, OpenError> {
        let changes = state.objects.changes.clone();
        Ok(Self { driven: Driven::new(endpoint, state)?, calls, changes })
    }

    #[inline(always)]
    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.driven.endpoint()
    }

    #[inline]
    pub(crate) fn has_engine(&self) -> bool {
        self.calls.is_some()
    }

    /// The engine: follows commands and makes progress until the interface is closed or has failed.
    pub(crate) fn run(&self) {
        let Some(calls) = &self.calls else { return };
        let _end = EndByPanic(self);
        let mut begun = Instant::now();
        let mut state = self.driven.lock();
        while !state.is_closed && !state.has_failed {
            let before = state.objects.changes.get();
            let followed = state.follow(self.endpoint(), COMMANDS);
            let has_worked = state.take_all(self.endpoint()) + followed > 0;
            calls.note_room(&state);
            if state.objects.changes.get() != before {
                self.wake(&state);
            }
            if state.is_closed || state.has_failed {
                break;
            }
            if has_worked {
                begun = Instant::now();
                drop(state);
            } else if may_spin(begun, Instant::now()) {
                drop(state);
                (0..LOOKS).for_each(|_| spin());
            } else if calls.doze(&state) {
                drop(self.driven.sleep(state, None));
                calls.rise();
                begun = Instant::now();
            } else {
                drop(state);
            }
            calls.give_way();
            state = self.driven.lock();
        }
        calls.end();
        state.follow(self.endpoint(), usize::MAX);
        self.wake(&state);
    }

    /// Progress by a call of the program, unless an engine makes it.
    #[inline]
    pub(crate) fn progress_of_call(&self, state: &mut State) {
        if !self.has_engine() {
            state.take_all(self.endpoint());
        }
    }

    /// Takes the lock for a call.
    #[inline(always)]
    pub(crate) fn lock(&self) -> Entered<'_, State> {
        match &self.calls {
            Some(calls) => calls.lock(|| self.driven.lock()),
            None => self.driven.lock(),
        }
    }

    #[inline]
    pub(crate) fn wake(&self, state: &Held<State>) {
        self.driven.wake(state);
    }

    /// What a call that has begun an operation does: its program may begin others, and read no
    /// event.
    pub(crate) fn progress_at_times(&self, state: &mut State) {
        if state.is_progress_due() || !state.to_self.is_empty() {
            self.progress_of_call(state);
        }
    }

    /// Makes progress until `ready` gives something, at most for `limit`.
    pub(crate) fn wait<R>(
        &self,
        limit: Option<Duration>,
        mut ready: impl FnMut(&mut State) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let ready = |state: &mut State| {
            if state.is_closed {
                return Some(Err(Error::Network));
            }
            ready(state).map(Ok).or(state.has_failed.then_some(Err(Error::Failed)))
        };
        let ended = match &self.calls {
            Some(_) => self.driven.wait_beside(limit, || self.lock(), ready),
            None => self.driven.wait_for(limit, ready),
        };
        ended.transpose()
    }
}

/// The engine's thread. Dropped by a panic: calls go on without it, and waits end.
struct EndByPanic<'c>(&'c Core);

impl Drop for EndByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.calls.iter().for_each(Calls::end);
            let mut state = self.0.driven.lock();
            state.has_failed = true;
            self.0.wake(&state);
        }
    }
}
