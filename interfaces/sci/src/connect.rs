//! How a host finds owners and connects to them, and connects that do not wait.

use crate::claims::{self, Limit, Named};
use crate::errors::Error;
use crate::names;
use crate::nodes::{Place, is_number};
use crate::notices::{Call, Source};
use crate::objects::{Pending, Request};
use crate::partner::Partner;
use crate::remote::RemoteSegment;
use crate::shared::Shared;
use crate::state::State;
use crate::types::Then;
use crate::wire::Message;
use cci_mem::quiet_thread;
use cci_mem::sync::{AtomicBool, Ordering};
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Ends a connect early.
type Stop<'a> = Option<&'a AtomicBool>;
/// The end of a connect until somebody takes it.
type Outcome = Arc<Mutex<Option<Result<RemoteSegment, Error>>>>;

fn take(outcome: &Outcome) -> Option<Result<RemoteSegment, Error>> {
    outcome.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn is_stopped(stop: Stop<'_>) -> bool {
    // Publishes nothing.
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}

impl Shared {
    /// Where a node is that can be reached from here.
    pub(crate) fn place(&self, node: u32) -> Result<&Place, Error> {
        if !is_number(&node) {
            return Err(Error::IllegalNode);
        }
        let place = self.nodes.place(node).ok_or(Error::NoSuchNode)?;
        if place.is_here || self.is_networked() { Ok(place) } else { Err(Error::NotImplemented) }
    }

    /// Who owns a name.
    pub(crate) fn find(
        &self,
        (node, what): (u32, Named),
        (deadline, stop): (Option<Instant>, Stop<'_>),
        is_own: impl Fn(&State) -> bool,
        nobody: Error,
    ) -> Result<Partner, Error> {
        let place = self.place(node)?;
        self.check_wait()?;
        if self.with(|state| Ok(is_own(state)))? {
            return Ok(None);
        }
        let is_over = || is_stopped(stop) || self.is_closed();
        let until = Limit { deadline, is_over: Some(&is_over) };
        let owner = match place.is_here {
            true => claims::find(node, what, &until)?,
            false => names::find(place, node, what, &until)?,
        };
        let owner = owner.ok_or(nobody)?;
        let peer = self.with(|state| Ok(state.links.peer_of(owner.number, &owner.uri)))?;
        // It is this host's own name, which was claimed since.
        peer.map(Some).ok_or(nobody)
    }

    /// Asks an owner for a connection, and waits for the answer; its token.
    pub(crate) fn ask(
        &self,
        request: Request,
        (deadline, stop): (Option<Instant>, Stop<'_>),
        message: impl FnOnce(u64) -> Message,
    ) -> Result<u64, Error> {
        let endpoint = self.endpoint();
        let token = self.with(|state| {
            let (token, partner) = (state.next(), request.partner);
            state.requests.insert(token, request);
            let begun = state.begin(endpoint, partner, message(token));
            if begun.is_err() {
                state.requests.remove(&token);
            }
            begun.map(|()| token)
        })?;
        let answered = self.wait_until(deadline, false, |state| {
            if is_stopped(stop) { Some(Err(Error::Cancelled)) } else { state.requests.get(&token)?.outcome }
        });
        // An answer that comes later is disconnected; one that came as the wait ended counts.
        let outcome = self.with(|state| Ok(state.requests.remove(&token).and_then(|request| request.outcome)))?;
        if outcome == Some(Ok(())) { Ok(token) } else { answered.map(|()| token) }
    }
}

/// Connects to a segment of a node.
pub(crate) fn connect(
    shared: &Arc<Shared>,
    (node, id): (u32, u32),
    until: (Option<Instant>, Stop<'_>),
) -> Result<RemoteSegment, Error> {
    // The memory of a device needs no way to the owner. One of this host is asked first: it is told
    // of the connection.
    let is_elsewhere = shared.nodes.is_here(node) == Some(false);
    if is_elsewhere {
        if let Some(far) = find_in_device(shared, node, id)? {
            return Ok(far);
        }
        if !shared.is_networked() && shared.with(|state| Ok(state.device.is_some()))? {
            return Err(Error::NoSuchSegment);
        }
    }
    let own = shared.nodes.own();
    let is_own = |state: &State| node == own && state.has_segment(id);
    let find = || shared.find((node, Named::Segment(id)), until, is_own, Error::NoSuchSegment);
    let partner = match find() {
        Err(why @ Error::NoSuchSegment) => {
            let far = find_in_device(shared, node, id)?.ok_or(why)?;
            // It may have been published in between: then its owner is to be told.
            match find() {
                Err(Error::NoSuchSegment) => return Ok(far),
                partner => partner?,
            }
        }
        partner => partner?,
    };
    let request = Request { partner, node, segment: Some(id), outcome: None };
    let token = shared.ask(request, until, |token| Message::Connect { token, segment: id, node: own })?;
    let asked = RemoteSegment::new(shared, token)?;
    // It may have been published since, and a mirror is the longer way to the memory of a device.
    let far = if is_elsewhere { find_in_device(shared, node, id)? } else { None };
    Ok(far.unwrap_or(asked))
}

fn find_in_device(shared: &Arc<Shared>, node: u32, id: u32) -> Result<Option<RemoteSegment>, Error> {
    let found = shared.with(|state| Ok(state.device.as_ref().and_then(|device| device.find(node, id))))?;
    found.map(|found| RemoteSegment::found(shared, node, id, &found)).transpose()
}

/// A connect that does not wait: a thread of the library waits for the owner. Dropping it ends the
/// connect, and a connection that nobody has taken.
///
/// # Example
///
/// ```
/// use cci_sci::{Host, Options};
///
/// let (owner, other) = (Host::open(&Options::new())?, Host::open(&Options::new())?);
/// let segment = owner.create(std::process::id(), 64)?;
/// segment.prepare()?;
/// segment.publish()?;
/// let connecting = other.begin_connect(owner.node(), segment.id(), None)?;
/// // Something else meanwhile.
/// assert_eq!(connecting.wait(None)?.len(), 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Connecting {
    shared: Arc<Shared>,
    key: u64,
    stop: Arc<AtomicBool>,
    outcome: Outcome,
}

/// Begins to connect.
pub(crate) fn begin(
    shared: &Arc<Shared>,
    (node, id): (u32, u32),
    deadline: Option<Instant>,
) -> Result<Connecting, Error> {
    shared.place(node)?;
    let key = shared.with(|state| {
        let key = state.next();
        state.connecting.insert(key, Pending::default());
        Ok(key)
    })?;
    let (stop, outcome) = (Arc::new(AtomicBool::new(false)), Outcome::default());
    let connecting = Connecting { shared: Arc::clone(shared), key, stop, outcome };
    let (shared, stop) = (Arc::clone(shared), Arc::clone(&connecting.stop));
    let outcome = Arc::clone(&connecting.outcome);
    let run = move || {
        let ended = connect(&shared, (node, id), (deadline, Some(&stop)));
        *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        if shared.with(|state| Ok(state.finish_connect(key))) != Ok(true) {
            // Nobody waits for it any more: dropped without the lock.
            take(&outcome);
        }
    };
    // A connect whose thread cannot start ends with the drop of the value.
    let started = quiet_thread::spawn("cci-sci-connect", quiet_thread::STACK, run);
    started.map_err(|_| Error::NoSpace)?;
    Ok(connecting)
}

impl State {
    /// The end of a connect. False: nobody waits for it.
    fn finish_connect(&mut self, key: u64) -> bool {
        let Some(pending) = self.connecting.get_mut(&key) else { return false };
        pending.has_outcome = true;
        self.callbacks.ready.push_back(Source::Connecting(key));
        self.waits.has_changed = true;
        true
    }
}

impl Connecting {
    /// Waits for the end of the connect, at most for `limit`. It is given once.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Host::connect`], and those of [`Connecting::outcome`]. A time-out is of
    /// either.
    pub fn wait(&self, limit: Option<Duration>) -> Result<RemoteSegment, Error> {
        self.outcome(limit)?
    }

    /// Waits for the end of the connect, at most for `limit`, and keeps the errors of the wait
    /// apart from those of the connect, which are inside. The end is given once.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: of this wait; the connect goes on. [`Error::Cancelled`]: it was given
    /// before. [`Error::IllegalOperation`]: it has a callback, or this is one.
    pub fn outcome(&self, limit: Option<Duration>) -> Result<Result<RemoteSegment, Error>, Error> {
        self.shared.wait_for(limit, |state| {
            let Entry::Occupied(entry) = state.connecting.entry(self.key) else {
                return Some(Err(Error::Cancelled));
            };
            if entry.get().has_callback {
                return Some(Err(Error::IllegalOperation));
            }
            entry.get().has_outcome.then(|| entry.remove()).map(|_| Ok(()))
        })?;
        take(&self.outcome).ok_or(Error::Cancelled)
    }

    /// Sets what is called once with the end of the connect, on the thread of the host, in place of
    /// [`Connecting::wait`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`]: the end was given before. [`Error::IllegalOperation`]: it has a
    /// callback. [`Error::NotInitialized`].
    pub fn on_end(&self, callback: impl FnOnce(Result<RemoteSegment, Error>) + Send + 'static) -> Result<(), Error> {
        let outcome = Arc::clone(&self.outcome);
        let call = move || {
            if let Some(ended) = take(&outcome) {
                callback(ended);
            }
            Then::Cancel
        };
        // One that is refused is dropped without the lock: it may own objects of the host.
        let mut call: Option<Call> = Some(Box::new(call));
        self.shared.with(|state| {
            let pending = state.connecting.get_mut(&self.key).ok_or(Error::Cancelled)?;
            if std::mem::replace(&mut pending.has_callback, true) {
                return Err(Error::IllegalOperation);
            }
            pending.callback = call.take();
            state.callbacks.ready.push_back(Source::Connecting(self.key));
            Ok(())
        })
    }
}

impl Connecting {
    /// Ends the connect, also for a thread that waits for it, which gets [`Error::Cancelled`]. A
    /// connection that nobody has taken ends, too.
    pub fn cancel(&self) {
        // Publishes nothing.
        self.stop.store(true, Ordering::Relaxed);
        let forget = |state: &mut State| {
            let has_outcome = state.forget_connect(self.key);
            state.waits.has_changed = true;
            Ok(has_outcome)
        };
        match self.shared.with(forget) {
            Ok(has_outcome) => {
                // Dropped without the lock.
                drop(has_outcome.then(|| take(&self.outcome)));
                self.shared.settle(Source::Connecting(self.key));
            }
            // The host has ended, and has left the outcome. A child does not touch it: the lock may
            // be held for ever there.
            Err(_) if self.shared.is_here() => drop(take(&self.outcome)),
            Err(_) => {}
        }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connecting({})", self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::options::Options;
    use cci_conformance::{LIMIT, sm_device};

    /// The host answers itself before the end of the connect is noticed.
    #[test]
    fn an_answer_that_comes_as_the_wait_ends_is_a_connection() {
        let host = Host::open(&Options::new().device(sm_device())).expect("a host");
        let id = fastrand::u32(..);
        let segment = host.create(id, 64).expect("memory");
        segment.prepare().and_then(|()| segment.publish()).expect("room");
        let stop = AtomicBool::new(true);
        let far = connect(&host.shared, (host.node(), id), (None, Some(&stop))).expect("answered");
        assert_eq!(far.len(), 64);
        drop(far);
        let left = host.shared.with(|state| Ok(state.remotes.len() + state.connectors.len()));
        assert_eq!(left, Ok(0), "it has ended for both");
    }

    /// Nothing is sent to who has connected, or to the owner: their ends are to be noticed.
    #[test]
    fn both_ends_of_a_connection_over_a_network_are_probed_as_long_as_it_stands() {
        let device = cci_conformance::device_of("sock", &[("ip", "127.0.0.1")]);
        let open = || Host::open(&Options::new().nodes(crate::Nodes::new()).device(device.clone())).expect("a host");
        let (owner, other) = (open(), open());
        let are_probed = || [&owner, &other].map(|host| host.shared.with(|state| Ok(state.links.has_probes())));
        let [plain, with_bytes] = [fastrand::u32(..1 << 31), fastrand::u32(1 << 31..)];
        let _interrupts = (owner.interrupt(Some(plain)), owner.data_interrupt(Some(with_bytes)));
        for has_bytes in [false, true] {
            let node = owner.node();
            let attached = match has_bytes {
                false => (other.connect_interrupt(node, plain, Some(LIMIT)).ok(), None),
                true => (None, other.connect_data_interrupt(node, with_bytes, Some(LIMIT)).ok()),
            };
            assert!(attached.0.is_some() || attached.1.is_some(), "it is there");
            assert_eq!(are_probed(), [Ok(true), Ok(true)]);
            drop(attached);
            let begun = Instant::now();
            while are_probed() != [Ok(false), Ok(false)] {
                assert!(begun.elapsed() < LIMIT, "they are left alone");
                std::thread::yield_now();
            }
        }
    }

    /// A name that somebody has who does not answer.
    fn mute(host: &Host) -> (u32, rustix::fd::OwnedFd) {
        let id = fastrand::u32(..);
        (id, claims::claim(host.node(), Named::Segment(id)).expect("free"))
    }

    #[test]
    fn a_connect_takes_one_place_in_the_backlog_of_a_stopped_owner() {
        let host = Host::open(&Options::new().device(sm_device())).expect("a host");
        let (id, claim) = mute(&host);
        let connecting = host.begin_connect(host.node(), id, Some(Duration::from_millis(220))).expect("a thread");
        assert_eq!(connecting.wait(None).err(), Some(Error::Timeout));
        let places = std::iter::from_fn(|| rustix::net::accept(&claim).ok()).count();
        assert_eq!(places, 1);
    }

    /// A segment of this host, connected to by the host itself.
    fn connected(host: &Host) -> (crate::LocalSegment, RemoteSegment) {
        let segment = host.create(fastrand::u32(..), 64).expect("memory");
        segment.prepare().and_then(|()| segment.publish()).expect("room");
        let far = host.connect(host.node(), segment.id(), Some(LIMIT)).expect("it is there");
        (segment, far)
    }

    /// It is dropped, with what it owns, and that ends a connection of the host.
    #[test]
    fn a_callback_that_is_refused_may_own_objects_of_the_host() {
        let host = Host::open(&Options::new().device(sm_device())).expect("a host");
        let (id, _claim) = mute(&host);
        let connecting = host.begin_connect(host.node(), id, None).expect("a thread");
        connecting.on_end(|_| ()).expect("it has none");
        let (_segment, far) = connected(&host);
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let refused = connecting.on_end(move |_| drop(far));
            // Its listener has given up otherwise.
            let _ = tell.send(refused);
        });
        assert_eq!(told.recv_timeout(LIMIT), Ok(Err(Error::IllegalOperation)));
    }

    #[test]
    fn an_outcome_that_nobody_has_taken_ends_with_a_cancel() {
        let host = Host::open(&Options::new().device(sm_device())).expect("a host");
        let (segment, first) = connected(&host);
        drop(first);
        let count = || host.shared.with(|state| Ok((state.remotes.len(), state.connectors.len())));
        let connecting = host.begin_connect(host.node(), segment.id(), Some(LIMIT)).expect("a thread");
        let begun = Instant::now();
        while count() != Ok((1, 1)) {
            assert!(begun.elapsed() < LIMIT, "it is there");
            std::thread::yield_now();
        }
        connecting.cancel();
        while count() != Ok((0, 0)) {
            assert!(begun.elapsed() < LIMIT, "nobody ends the connection");
            std::thread::yield_now();
        }
        assert_eq!(connecting.wait(None).err(), Some(Error::Cancelled));
    }

    #[test]
    fn the_end_of_a_host_ends_its_connects() {
        let host = Host::open(&Options::new().device(sm_device())).expect("a host");
        let (id, claim) = mute(&host);
        let connecting = host.begin_connect(host.node(), id, None).expect("a thread");
        let shared = Arc::clone(&host.shared);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| connect(&shared, (shared.nodes.own(), id), (None, None)).map(drop));
            // Both are at it, and get no answer.
            let (begun, mut asking) = (Instant::now(), Vec::new());
            while asking.len() < 2 {
                assert!(begun.elapsed() < LIMIT, "the connects have not begun");
                asking.extend(rustix::net::accept(&claim));
            }
            drop(host);
            assert!(matches!(waiting.join(), Ok(Err(Error::Cancelled))));
        });
        let begun = Instant::now();
        // Its own, and that of the value.
        while Arc::strong_count(&shared) > 2 {
            assert!(begun.elapsed() < LIMIT, "its thread goes on");
            std::thread::yield_now();
        }
        assert_eq!(connecting.wait(None).err(), Some(Error::NotInitialized));
    }
}
