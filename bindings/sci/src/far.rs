//! Connections to segments, from the beginning of a connect that does not wait.

use crate::answer::{Answer, Refusal};
use crate::registry::{Handle, Owned, registry};
use crate::segments::{RemoteCallback, pointer, then};
use cci_sci::{Connecting, Error, Reason, RemoteSegment};
use std::collections::VecDeque;
use std::ffi::c_uint;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A callback of the program, and its argument.
pub(crate) type Function = (RemoteCallback, usize);

enum State {
    Connecting(Arc<Connecting>),
    Connected(Arc<RemoteSegment>),
    /// The connect has failed, or the connection has ended.
    Ended,
}

/// A connection as a program has it.
pub(crate) struct Far {
    state: Mutex<State>,
    /// What a connect has left to be taken: reasons, and codes.
    events: Mutex<VecDeque<(Reason, c_uint)>>,
    id: c_uint,
}

impl Far {
    pub(crate) fn connected(segment: RemoteSegment) -> Self {
        let id = segment.id();
        Self { state: Mutex::new(State::Connected(Arc::new(segment))), events: Mutex::default(), id }
    }

    pub(crate) fn connecting(connecting: Connecting, id: c_uint) -> Self {
        Self { state: Mutex::new(State::Connecting(Arc::new(connecting))), events: Mutex::default(), id }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<(Reason, c_uint)>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> c_uint {
        self.id
    }

    /// The connection, once there is one.
    pub(crate) fn segment(&self) -> Answer<Arc<RemoteSegment>> {
        match &*self.state() {
            State::Connected(segment) => Ok(Arc::clone(segment)),
            State::Connecting(_) | State::Ended => Err(Error::SegmentNotConnected.into()),
        }
    }

    /// Takes the end of a connect; its events.
    fn settle(&self, outcome: Result<RemoteSegment, Error>) -> Vec<(Reason, c_uint)> {
        let (state, events) = match outcome {
            Ok(segment) => {
                let events = vec![(Reason::Connect, 0), (Reason::Operational, 0)];
                (State::Connected(Arc::new(segment)), events)
            }
            Err(why) => (State::Ended, vec![(Reason::Lost, why.code())]),
        };
        let before = std::mem::replace(&mut *self.state(), state);
        // Without the lock: the end of a connect may wait for a callback.
        drop(before);
        events
    }

    /// Waits for an event, and its code.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> Answer<(Reason, c_uint)> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            if let Some(event) = self.events().pop_front() {
                return Ok(event);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let connecting = match &*self.state() {
                State::Connecting(connecting) => Arc::clone(connecting),
                State::Connected(segment) => {
                    let segment = Arc::clone(segment);
                    return of_segment(&segment, left);
                }
                State::Ended => return Err(Error::SegmentNotConnected.into()),
            };
            let begun = Instant::now();
            match connecting.wait(left) {
                // Another thread has taken it.
                Err(Error::Cancelled) => std::thread::yield_now(),
                // That of this wait, or of the connect.
                Err(Error::Timeout) if left.is_some_and(|left| begun.elapsed() >= left) => {
                    return Err(Error::Timeout.into());
                }
                Err(why @ (Error::IllegalOperation | Error::NotInitialized)) => return Err(why.into()),
                outcome => {
                    let events = self.settle(outcome);
                    self.events().extend(events);
                }
            }
        }
    }

    /// Ends a connect or a connection.
    pub(crate) fn disconnect(&self) -> Result<(), Error> {
        let segment = self.segment();
        if let Ok(segment) = segment {
            return segment.disconnect();
        }
        let before = std::mem::replace(&mut *self.state(), State::Ended);
        // Without the lock, as in `settle`.
        drop(before);
        Ok(())
    }
}

fn of_segment(segment: &RemoteSegment, limit: Option<Duration>) -> Answer<(Reason, c_uint)> {
    let reason = segment.wait(limit)?;
    let code = if reason == Reason::Lost { Error::SegmentNotConnected.code() } else { 0 };
    Ok((reason, code))
}

/// Has a function called for each event of a connection.
pub(crate) fn call_back(segment: &RemoteSegment, handle: usize, (function, arg): Function) -> Result<(), Error> {
    segment.on_event(move |reason| {
        let handle: Handle = std::ptr::without_provenance_mut(handle);
        let code = if reason == Reason::Lost { Error::SegmentNotConnected.code() } else { 0 };
        // SAFETY: the program's function, called without any lock, as long as the connection lives.
        then(unsafe { function(pointer(arg), handle, reason as c_uint, code) })
    })
}

/// Has a function called with the end of a connect, and then for each event of the connection.
pub(crate) fn call_back_later(far: &Arc<Owned<Far>>, handle: usize, function: Function) -> Answer<()> {
    let State::Connecting(connecting) = &*far.object.state() else { return Ok(()) };
    let connecting = Arc::clone(connecting);
    let ended = move |outcome| {
        // Removed meanwhile: then nobody waits for it.
        let Ok(far) = registry().and_then(|all| all.remotes.find(std::ptr::without_provenance_mut(handle))) else {
            return;
        };
        let events = far.object.settle(outcome);
        let goes_on = events.into_iter().all(|(reason, code)| {
            let handle: Handle = std::ptr::without_provenance_mut(handle);
            // SAFETY: as in `call_back`.
            then(unsafe { (function.0)(pointer(function.1), handle, reason as c_uint, code) })
                == cci_sci::Then::Continue
        });
        if goes_on && let Ok(segment) = far.object.segment() {
            // Refused where the program has disconnected in its callback.
            let _ = call_back(&segment, handle, function);
        }
    };
    connecting.on_end(ended).map_err(Refusal::from)
}
