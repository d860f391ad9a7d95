//! Connections to segments, from the beginning of a connect that does not wait.

use crate::answer::Answer;
use cci_mem::mutex::lock;
use cci_sci::{Connecting, Error, Reason, RemoteSegment};
use std::collections::VecDeque;
use std::ffi::c_uint;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

#[derive(Clone)]
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
        lock(&self.state)
    }

    /// How far it is, without the lock: others go on while one waits.
    fn now(&self) -> State {
        self.state().clone()
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<(Reason, c_uint)>> {
        lock(&self.events)
    }

    pub(crate) fn id(&self) -> c_uint {
        self.id
    }

    /// The connection, once there is one.
    pub(crate) fn segment(&self) -> Answer<Arc<RemoteSegment>> {
        match self.now() {
            State::Connected(segment) => Ok(segment),
            State::Connecting(_) | State::Ended => Err(Error::SegmentNotConnected.into()),
        }
    }

    /// The connect, unless it has ended.
    pub(crate) fn unfinished(&self) -> Option<Arc<Connecting>> {
        if let State::Connecting(connecting) = self.now() { Some(connecting) } else { None }
    }

    /// Takes the end of a connect; its events. Without any where the program has ended it before.
    pub(crate) fn settle(&self, outcome: Result<RemoteSegment, Error>) -> Vec<(Reason, c_uint)> {
        let (after, events) = match outcome {
            Ok(segment) => {
                let events = vec![(Reason::Connect, 0), (Reason::Operational, 0)];
                (State::Connected(Arc::new(segment)), events)
            }
            Err(why) => (State::Ended, vec![(Reason::Lost, why.code())]),
        };
        let mut state = self.state();
        let is_ended = matches!(*state, State::Ended);
        let unwanted = if is_ended { after } else { std::mem::replace(&mut *state, after) };
        drop(state);
        // Without the lock: the end of a connect may wait for a callback.
        drop(unwanted);
        if is_ended { Vec::new() } else { events }
    }

    /// Waits for an event, and its code.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> Answer<(Reason, c_uint)> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            if let Some(event) = self.events().pop_front() {
                return Ok(event);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let connecting = match self.now() {
                State::Connecting(connecting) => connecting,
                State::Connected(segment) => return of_segment(&segment, left),
                State::Ended => return Err(Error::SegmentNotConnected.into()),
            };
            match connecting.outcome(left) {
                Ok(outcome) => {
                    let events = self.settle(outcome);
                    self.events().extend(events);
                }
                // Another thread has taken it, and is about to enter it here.
                Err(Error::Cancelled) if left != Some(Duration::ZERO) => std::thread::yield_now(),
                Err(Error::Cancelled) => return Err(Error::Timeout.into()),
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Ends a connect or a connection.
    pub(crate) fn disconnect(&self) -> Result<(), Error> {
        let mut state = self.state();
        let before = match &*state {
            State::Connected(segment) => State::Connected(Arc::clone(segment)),
            _ => std::mem::replace(&mut *state, State::Ended),
        };
        // Without the lock, as in `settle`.
        drop(state);
        match before {
            State::Connected(segment) => segment.disconnect(),
            // A thread that waits for it has it, too.
            State::Connecting(connecting) => {
                connecting.cancel();
                Ok(())
            }
            State::Ended => Ok(()),
        }
    }
}

fn of_segment(segment: &RemoteSegment, limit: Option<Duration>) -> Answer<(Reason, c_uint)> {
    let reason = segment.wait(limit)?;
    let code = if reason == Reason::Lost { Error::SegmentNotConnected.code() } else { 0 };
    Ok((reason, code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Refusal;
    use cci_conformance::{LIMIT, sm_device};
    use cci_sci::{Host, Options};
    use std::os::linux::fs::MetadataExt;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    /// Ends a connection while another thread waits for its events; what that thread gets.
    fn ended_while_waiting(far: &Far, is_waiting: impl Fn() -> bool) -> Result<(Reason, c_uint), bool> {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| far.wait(Some(LIMIT)));
            while !is_waiting() && !waiting.is_finished() {
                std::thread::yield_now();
            }
            far.disconnect().expect("it is there");
            let is_late = |why| why == Refusal::from(Error::Timeout);
            waiting.join().expect("no panic").map_err(is_late)
        })
    }

    #[test]
    fn who_waits_holds_nobody_up() {
        let host = Host::open(&Options::new().device(sm_device())).expect("a host");
        let id = std::process::id();
        let segment = host.create(id, 64).expect("memory");
        segment.prepare().and_then(|()| segment.publish()).expect("room");
        let far = Far::connected(host.connect(host.node(), id, Some(LIMIT)).expect("published"));
        let is_waiting =
            || matches!(&*far.state.lock().expect("no panic"), State::Connected(of) if Arc::strong_count(of) > 1);
        assert!(ended_while_waiting(&far, is_waiting) != Err(true), "it waits no longer");
    }

    /// A connect to a segment whose owner does not answer, and that owner.
    fn unanswered(host: &Host, id: c_uint, limit: Option<Duration>) -> (Far, UnixListener) {
        let user = std::fs::metadata("/proc/self").expect("Linux").st_uid();
        let name = format!("cci-sci/{user}/{}/s/{id}", host.node());
        let address = SocketAddr::from_abstract_name(name).expect("short");
        let owner = UnixListener::bind_addr(&address).expect("free");
        (Far::connecting(host.begin_connect(host.node(), id, limit).expect("a thread"), id), owner)
    }

    #[test]
    fn a_connect_that_times_out_is_told_though_each_wait_only_looks() {
        let host = Host::open(&Options::new().device(sm_device())).expect("a host");
        let (far, _owner) = unanswered(&host, !std::process::id() ^ 1, Some(Duration::from_millis(1)));
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let late = Refusal::from(Error::Timeout);
            let end = loop {
                match far.wait(Some(Duration::ZERO)) {
                    Err(why) if why == late => std::thread::yield_now(),
                    end => break end.ok(),
                }
            };
            let _ = tell.send((end, far.wait(Some(Duration::ZERO)).err()));
        });
        let (end, after) = told.recv_timeout(LIMIT).expect("a wait that only looks returns");
        assert_eq!(end, Some((Reason::Lost, Error::Timeout.code())));
        assert!(after == Some(Error::SegmentNotConnected.into()), "it is told once");
    }

    #[test]
    fn a_connect_that_is_ended_ends_for_who_waits() {
        let host = Host::open(&Options::new().device(sm_device())).expect("a host");
        let (far, _owner) = unanswered(&host, !std::process::id(), None);
        let is_waiting =
            || matches!(&*far.state.lock().expect("no panic"), State::Connecting(of) if Arc::strong_count(of) > 1);
        assert_eq!(ended_while_waiting(&far, is_waiting), Err(false), "it is no connection any more");
    }
}
