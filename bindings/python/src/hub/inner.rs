//! A hub as its calls and the waits of its thread share it.

use super::state::{Changes, State};
use crate::errors::{Refusal, error};
use crate::message::Message;
use crate::opened::Opened;
use crate::waiting::{SPIN, Sleepers};
use cci::__binding::PerProcess;
use cci::{Endpoint, PollError, Unusable};
use pyo3::prelude::*;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many events one call of `progress` takes, by one lock.
pub(super) const BATCH: usize = 16;

/// An endpoint with its connections: what the classes of the package are built on.
#[pyclass(frozen, module = "cci._cci", weakref)]
pub(crate) struct Hub(pub(super) Arc<Inner>);

/// What a hub consists of, which a wait of its thread on another one uses too.
pub(crate) struct Inner {
    pub(super) opened: Opened,
    state: Mutex<State>,
    /// What a forked child has in its place, which stays empty.
    state_of_child: Mutex<State>,
    process: &'static Process,
    pub(super) sleepers: Sleepers,
    pub(super) spin: Duration,
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
    pub(super) fn is_here(&self) -> bool {
        Process::current().is_ok_and(|process| std::ptr::eq(process, self.process))
    }

    /// Held for moments, and never while code of the program may run, or while a thread waits for
    /// the interpreter: threads lock it with and without. A thread that looks without may hold it
    /// when another one forks, so that the child never touches it.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        let state = if self.is_here() { &self.state } else { &self.state_of_child };
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one event over, if there is one. By one lock with the look, so that no thread
    /// overtakes another with a later event: a message before its connection, or before the
    /// message before it.
    pub(super) fn take(&self, endpoint: &Endpoint, changes: &mut Changes) -> Result<Option<()>, PollError> {
        let mut state = self.state();
        Ok(endpoint.get_event()?.map(|event| state.handle(endpoint, event, changes)))
    }

    /// What a look has found, if anything; what is done when it found nothing.
    pub(super) fn looked(
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
    pub(super) fn unknown(&self, py: Python<'_>) -> PyErr {
        if !self.is_here() {
            return Unusable::Forked.raise(py);
        }
        error(py, cci::Status::Disconnected, "this connection has been closed here; connect again")
    }

    /// The next message of a connection, if there is one.
    pub(super) fn take_message(&self, py: Python<'_>, peer: u64) -> PyResult<Option<Message>> {
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
    /// The connection of a number, if it is open.
    pub(super) fn connection(&self, py: Python<'_>, peer: u64) -> PyResult<cci::Connection> {
        let mut state = self.state();
        let known = state.peers.get_mut(&peer).ok_or_else(|| self.unknown(py))?;
        if let Some((status, sentence)) = known.unsent.take().or_else(|| known.lost.clone()) {
            drop(state);
            return Err(error(py, status, &sentence));
        }
        known.connection.ok_or_else(|| Unusable::Closed.raise(py))
    }
}
