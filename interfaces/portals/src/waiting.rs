//! Progress, and waiting for it.

use crate::calls::Calls;
use crate::changes::Changes;
use crate::errors::Error;
use crate::state::State;
use cci::{Endpoint, PollError};
use cci_mem::barrier::prepare;
use cci_mem::guarded::{Guard, Guarded, Sleepers};
use cci_mem::sync::spin;
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Events taken by one call of CCI, and such calls before the program has its turn.
const BATCH: usize = 64;
const ROUNDS: usize = 16;
/// How long a wait looks for events before it sleeps.
pub(crate) const SPIN: Duration = Duration::from_micros(20);
/// Turns of an engine's loop between two looks.
const LOOKS: usize = 4;
/// Commands that an engine follows before it looks for events.
const COMMANDS: usize = 32;

/// What the program and the engine share.
pub(crate) struct Core {
    pub(crate) endpoint: Endpoint,
    /// Biased towards the thread that uses it: a locked instruction would wait for stores to cache
    /// lines of partners.
    state: Guarded<State>,
    /// Those who sleep while another thread sleeps on the descriptors.
    sleepers: Sleepers,
    /// Something has changed, for the thread that sleeps on the descriptors.
    wake: OwnedFd,
    /// What calls do without the lock, where a thread of its own makes the progress.
    pub(crate) calls: Option<Calls>,
    /// What the state has of it too.
    pub(crate) changes: Changes,
}

impl Core {
    pub(crate) fn new(endpoint: Endpoint, state: State, calls: Option<Calls>, wake: OwnedFd) -> Self {
        let changes = state.objects.changes.clone();
        let state = Guarded::new(state, prepare());
        Self { endpoint, state, sleepers: Sleepers::new(), wake, calls, changes }
    }

    #[inline]
    pub(crate) fn has_engine(&self) -> bool {
        self.calls.is_some()
    }

    /// Takes the lock for a call.
    #[inline(always)]
    pub(crate) fn lock(&self) -> Guard<'_, State> {
        match &self.calls {
            Some(calls) => calls.lock(|| self.lock_at_once()),
            None => self.lock_at_once(),
        }
    }

    #[inline(always)]
    pub(crate) fn lock_at_once(&self) -> Guard<'_, State> {
        match self.state.enter() {
            Ok(guard) => guard,
            Err(_) => entered_twice(),
        }
    }

    /// The engine: follows commands and makes progress until the interface is closed or has failed.
    pub(crate) fn run(&self) {
        let Some(calls) = &self.calls else { return };
        let _end = EndByPanic(self);
        let mut begun = Instant::now();
        let mut state = self.lock_at_once();
        while !state.is_closed && !state.has_failed {
            let before = state.objects.changes.get();
            let followed = state.follow(&self.endpoint, COMMANDS);
            let has_worked = self.progress(&mut state) + followed > 0;
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
            } else if begun.elapsed() < SPIN && !cci::is_oversubscribed() {
                drop(state);
                (0..LOOKS).for_each(|_| spin());
            } else if calls.doze(&state) {
                let left = state.left();
                state.has_sleeper = true;
                drop(state);
                self.sleep(left);
                self.lock_at_once().has_sleeper = false;
                calls.rise();
                begun = Instant::now();
            } else {
                drop(state);
            }
            calls.give_way();
            state = self.lock_at_once();
        }
        calls.end();
        state.follow(&self.endpoint, usize::MAX);
        self.wake(&state);
    }

    /// Has those look again whom changes may concern.
    #[inline]
    pub(crate) fn wake(&self, state: &State) {
        if state.has_sleeper || state.waiters > 0 {
            self.wake_sleepers(state);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_sleepers(&self, state: &State) {
        // An engine sleeps through what calls of the program leave to the program.
        if state.has_sleeper && (!self.has_engine() || state.is_closed || state.has_work()) {
            // Full means woken already.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
        if state.waiters > 0 {
            self.sleepers.wake_all();
        }
    }

    /// Progress by a call of the program, unless an engine makes it.
    #[inline]
    pub(crate) fn progress_of_call(&self, state: &mut State) {
        if !self.has_engine() {
            self.progress(state);
        }
    }

    /// Takes what has come, and goes on with what waited for room. Returns how many events there
    /// were.
    pub(crate) fn progress(&self, state: &mut State) -> usize {
        let mut total = 0;
        for _ in 0..ROUNDS {
            match self.endpoint.poll(BATCH, |event| state.take(&self.endpoint, event)) {
                Ok(found) => {
                    total += found;
                    // The end of a read of mapped memory is there at once, and a partner waits.
                    if found < BATCH && !std::mem::take(&mut state.has_begun_reads) {
                        break;
                    }
                }
                Err(PollError::NoBuffers) => break,
                Err(_) => {
                    state.has_failed = true;
                    break;
                }
            }
        }
        if state.has_deferred_work() {
            state.catch_up(&self.endpoint);
        }
        total
    }

    /// What a call that has begun an operation does: its program may begin others, and read no
    /// event.
    pub(crate) fn progress_at_times(&self, state: &mut State) {
        if state.is_progress_due() || !state.to_self.is_empty() {
            self.progress_of_call(state);
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
            let before = state.objects.changes.get();
            self.progress_of_call(&mut state);
            let result = if state.is_closed { Err(Error::Network) } else { Ok(ready(&mut state)) };
            let is_failed = state.has_failed && matches!(result, Ok(None));
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let is_over = !matches!(result, Ok(None)) || left.is_some_and(|left| left.is_zero()) || is_failed;
            // One of those who wait takes over the sleep on the descriptors.
            if state.objects.changes.get() != before || is_over {
                self.wake(&state);
            }
            if is_over {
                return if is_failed { Err(Error::Failed) } else { result };
            }
            let begun = *spins.get_or_insert_with(Instant::now);
            // A wait has looked at its queues before, where there is an engine.
            if !self.has_engine() && begun.elapsed() < SPIN && !cci::is_oversubscribed() {
                drop(state);
                spin();
                state = self.lock();
                continue;
            }
            // An engine sleeps there, or another thread.
            if self.has_engine() || state.has_sleeper {
                state = self.sleep_beside(state, left);
                continue;
            }
            state.has_sleeper = true;
            let left = left.into_iter().chain(state.left()).min();
            drop(state);
            self.sleep(left);
            state = self.lock();
            state.has_sleeper = false;
        }
    }

    /// Sleeps until another thread has changed something.
    fn sleep_beside<'a>(&'a self, mut state: Guard<'a, State>, left: Option<Duration>) -> Guard<'a, State> {
        state.waiters += 1;
        self.sleepers.sleep(state, left);
        state = self.lock();
        state.waiters -= 1;
        state
    }

    fn sleep(&self, left: Option<Duration>) {
        // The descriptor is armed for this sleep only: whoever polls afterwards costs its peers no
        // system calls.
        if let Ok(sleeper) = self.endpoint.sleeper() {
            let mut descriptors = [PollFd::new(&sleeper, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            let left = left.and_then(|left| rustix::event::Timespec::try_from(left).ok());
            // A signal ends it early, and its caller looks again.
            let _ = poll(&mut descriptors, left.as_ref());
        }
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}

/// The engine's thread. Dropped by a panic: calls go on without it, and waits end.
struct EndByPanic<'c>(&'c Core);

impl Drop for EndByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.calls.iter().for_each(Calls::end);
            let mut state = self.0.lock_at_once();
            state.has_failed = true;
            self.0.wake(&state);
        }
    }
}

#[cold]
#[inline(never)]
fn entered_twice() -> ! {
    panic!("memory of a descriptor called its interface as it was dropped; let it only free itself")
}
