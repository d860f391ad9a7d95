//! A hub: an endpoint whose events are sorted by what waits for them. The awaitable and the
//! synchronous connections of the package stand on it.

mod calls;
mod methods;
mod pauses;
mod serving;
mod state;
mod unread;

use crate::errors::{Refusal, error};
use crate::message::Message;
use crate::opened::Opened;
use crate::waiting::{Deadline, SLICE, SPIN, Sleepers, spin};
pub(crate) use calls::{Span, register};
use cci::__binding::PerProcess;
use cci::{Endpoint, PollError, Unusable};
use pyo3::prelude::*;
use serving::Others;
use state::{Changes, State};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many events one call of `progress` takes, by one lock.
const BATCH: usize = 16;

/// After so many events a wait looks at signals and at its deadline.
const FOUND: u32 = 64;

/// An endpoint with its connections: what the classes of the package are built on.
#[pyclass(frozen, module = "cci._cci", weakref)]
pub(crate) struct Hub(Arc<Inner>);

/// What a hub consists of, which a wait of its thread on another one uses too.
pub(crate) struct Inner {
    opened: Opened,
    state: Mutex<State>,
    /// What a forked child has in its place, which stays empty.
    state_of_child: Mutex<State>,
    process: &'static Process,
    sleepers: Sleepers,
    spin: Duration,
}

impl Deref for Hub {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// This process: a forked child has another one. Not without size, so that its address is its own.
struct Process {
    _byte: u8,
}

static PROCESS: PerProcess<Process> = PerProcess::new();

impl Process {
    fn current() -> std::io::Result<&'static Self> {
        Ok(&PROCESS.get(|| Self { _byte: 0 })?.1)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.is_here() {
            // A thread that the child lacks may have been about to change it.
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::replace(state, State::new(false, &self.opened.gauge)));
        }
    }
}

impl Hub {
    pub(crate) fn over(endpoint: Endpoint, is_listening: bool, spin: Option<Duration>) -> PyResult<Self> {
        let opened = Opened::new(endpoint);
        Ok(Self(Arc::new(Inner {
            state: Mutex::new(State::new(is_listening, &opened.gauge)),
            state_of_child: Mutex::new(State::new(false, &opened.gauge)),
            opened,
            process: Process::current()?,
            sleepers: Sleepers::default(),
            spin: spin.unwrap_or(SPIN),
        })))
    }
}

impl Inner {
    /// Whether this process has opened it, and is no forked child of that one.
    fn is_here(&self) -> bool {
        Process::current().is_ok_and(|process| std::ptr::eq(process, self.process))
    }

    /// Held for moments, and never while code of the program may run, or while a thread waits for
    /// the interpreter: threads lock it with and without. A thread that looks without may hold it
    /// when another one forks, so that the child never touches it.
    fn state(&self) -> MutexGuard<'_, State> {
        let state = if self.is_here() { &self.state } else { &self.state_of_child };
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one event over, if there is one. By one lock with the look, so that no thread
    /// overtakes another with a later event: a message before its connection, or before the
    /// message before it.
    fn take(&self, endpoint: &Endpoint, changes: &mut Changes) -> Result<Option<()>, PollError> {
        let mut state = self.state();
        Ok(endpoint.get_event()?.map(|event| state.handle(endpoint, event, changes)))
    }

    /// What a look has found, if anything; what is done when it found nothing.
    fn looked(
        &self,
        py: Python<'_>,
        endpoint: &Endpoint,
        found: Result<bool, PollError>,
        changes: &mut Changes,
    ) -> PyResult<bool> {
        match found {
            Ok(false) => self.state().answer_waiting(endpoint),
            Ok(true) => return Ok(true),
            Err(PollError::NoBuffers) => {
                let mut state = self.state();
                if !std::mem::replace(&mut state.is_starving, true) {
                    changes.keys.extend(state.peers.keys());
                }
            }
            Err(why) => return Err(why.raise(py)),
        }
        Ok(false)
    }
}

impl Hub {
    /// The error of a call on a connection that the program has closed, or that is its parent's.
    fn unknown(&self, py: Python<'_>) -> PyErr {
        if !self.is_here() {
            return Unusable::Forked.raise(py);
        }
        error(py, cci::Status::Disconnected, "this connection has been closed here; connect again")
    }

    /// Looks for an event for a while, and takes it over.
    fn spin(&self, py: Python<'_>, endpoint: &Endpoint, time: Duration, changes: &mut Changes) -> bool {
        // Without a buffer nothing comes; the next look finds out again.
        matches!(spin(py, &self.sleepers, time, || self.take(endpoint, changes)), Ok(Some(())))
    }

    /// One look for an event. False: there is none now.
    fn look(&self, py: Python<'_>, endpoint: &Endpoint, changes: &mut Changes) -> PyResult<bool> {
        let found = self.take(endpoint, changes);
        self.looked(py, endpoint, found.map(|found| found.is_some()), changes)
    }

    /// Takes an event over: looks, and at first spins. False: none has come.
    fn find(
        &self,
        py: Python<'_>,
        endpoint: &Endpoint,
        deadline: &mut Deadline,
        has_looked: &mut bool,
    ) -> PyResult<bool> {
        let mut changes = Changes::default();
        let mut is_found = self.look(py, endpoint, &mut changes)?;
        if !is_found && !*has_looked {
            let left = deadline.left().map_or(self.spin, |left| left.min(self.spin));
            is_found = self.spin(py, endpoint, left, &mut changes);
        }
        *has_looked = !is_found;
        if is_found && !changes.keys.is_empty() {
            self.sleepers.wake();
        }
        Ok(is_found)
    }

    /// Repeats `attempt` until it gives something, and makes progress in between; `None`: the time
    /// is over. Looks, then sleeps, without the interpreter. A signal's handler may raise.
    fn wait<T>(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        mut attempt: impl FnMut() -> PyResult<Option<T>>,
    ) -> PyResult<Option<T>> {
        let mut deadline = Deadline::new(limit);
        let mut has_looked = false;
        let mut found = 0_u32;
        loop {
            // First: what was closed tells so by itself.
            if let Some(done) = attempt()? {
                return Ok(Some(done));
            }
            let Some(endpoint) = self.opened.share() else {
                // It was closed after the attempt, which may say it in its own way.
                return attempt()?.map_or_else(|| Err(Unusable::Closed.raise(py)), |done| Ok(Some(done)));
            };
            if self.find(py, &endpoint, &mut deadline, &mut has_looked)? {
                found = found.wrapping_add(1);
                // Events of others that do not end hold up neither signals nor the deadline.
                if found.is_multiple_of(FOUND) {
                    py.check_signals()?;
                    if deadline.left() == Some(Duration::ZERO) {
                        return attempt();
                    }
                }
                continue;
            }
            let others = Others::beside(&self.0);
            let is_served = others.serve(py);
            py.check_signals()?;
            let left = deadline.left();
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            if !is_served && let Some(done) = self.sleep(py, &endpoint, left, &others, &mut attempt)? {
                return Ok(Some(done));
            }
        }
    }

    /// Sleeps until something comes, here or for others of this thread, unless `attempt` gives
    /// something first.
    fn sleep<T>(
        &self,
        py: Python<'_>,
        endpoint: &Endpoint,
        left: Option<Duration>,
        others: &Others,
        attempt: &mut impl FnMut() -> PyResult<Option<T>>,
    ) -> PyResult<Option<T>> {
        let sleeper = self.sleepers.announce(py, endpoint)?;
        let beside = others.announce(py);
        // A close before the announcement woke nobody.
        if self.opened.share().is_none() {
            return Ok(None);
        }
        // Nor did what came before it.
        if let Some(done) = attempt()? {
            return Ok(Some(done));
        }
        let mut changes = Changes::default();
        if self.look(py, endpoint, &mut changes)? {
            self.sleepers.wake();
            return Ok(None);
        }
        drop(changes);
        if others.serve(py) {
            return Ok(None);
        }
        let left = if others.are_more { Some(left.map_or(SLICE, |left| left.min(SLICE))) } else { left };
        let waiting = self.sleepers.enter();
        py.detach(|| sleeper.sleep(left, &beside));
        drop(waiting);
        py.check_signals()?;
        Ok(None)
    }

    /// The next message of a connection, if there is one.
    fn take_message(&self, py: Python<'_>, peer: u64) -> PyResult<Option<Message>> {
        let mut state = self.state();
        let State { peers, totals, is_starving, .. } = &mut *state;
        let is_starving = *is_starving;
        let known = peers.get_mut(&peer).ok_or_else(|| self.unknown(py))?;
        let Some(message) = known.unread.pop(totals) else {
            if let Some((status, sentence)) = known.unsent.take().or_else(|| known.lost.clone()) {
                drop(state);
                return Err(error(py, status, &sentence));
            }
            // Buffers that wait to be received by others come back by themselves.
            if is_starving && self.opened.gauge.are_all_held() {
                drop(state);
                return Err(PollError::NoBuffers.raise(py));
            }
            return Ok(None);
        };
        if known.is_paused
            && known.unread.has_room_again(totals)
            && let Some(endpoint) = self.opened.share()
        {
            state.resume(&endpoint, peer);
        }
        drop(state);
        if message.is_in_place()
            && let Err(raised) = self.opened.gauge.warn(py)
        {
            // The message stays where it was: the call has not received it.
            self.state().put_back(peer, message);
            return Err(raised);
        }
        Ok(Some(Message::new(message.counted(&self.opened.gauge))))
    }
}

impl Hub {
    /// The connection of a number, if it is open.
    fn connection(&self, py: Python<'_>, peer: u64) -> PyResult<cci::Connection> {
        let mut state = self.state();
        let known = state.peers.get_mut(&peer).ok_or_else(|| self.unknown(py))?;
        if let Some((status, sentence)) = known.unsent.take().or_else(|| known.lost.clone()) {
            drop(state);
            return Err(error(py, status, &sentence));
        }
        known.connection.ok_or_else(|| Unusable::Closed.raise(py))
    }
}
