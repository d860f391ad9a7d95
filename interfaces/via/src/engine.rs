//! The engine behind both languages: a NIC with its tables, used by many threads.
//!
//! [`crate::Nic`] is the safe side of it. Bindings use [`Core`] with a [`Token`] of their own.

use crate::attributes::{MAX_DESCRIPTORS, MAX_TRANSFER, Reliability, ViAttributes};
use crate::errors::{Error, Fault, FaultCode, Status};
use crate::state::{State, Vi, check};
use crate::task::WorkQueue;
use cci::{Device, Endpoint, EndpointOptions, OpenError, PollError};
use cci_ground::{BATCH, Changing, Drive, Driven, Entered, Held, ROUNDS};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::Duration;

pub use crate::clients::Clients;
pub use crate::rendezvous::{Asking, sleep_on};
pub use crate::state::{Taken, ViState};
pub use crate::task::{Completion, Op, Remote, Segment, Task, Token};

/// A NIC: one endpoint of CCI, and the tables of what uses it. Any thread may call it.
///
/// # Example
///
/// ```
/// use cci_via::engine::{Completion, Core, Token};
///
/// struct Number(u32);
/// impl Token for Number {
///     fn complete(&mut self, _: &Completion) {}
/// }
/// let core: Core<Number> = Core::open(cci::Context::new()?.default_device()?)?;
/// assert!(core.create_tag().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Core<T> {
    pub(crate) driven: Driven<State<T>>,
    host: IpAddr,
    /// Readable once the NIC is closed, for who waits for clients; made for the first of those.
    pub(crate) closed: OnceLock<OwnedFd>,
}

impl<T> std::fmt::Debug for Core<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Core({})", self.driven.endpoint().uri())
    }
}

/// The first address in a URI, an IPv4 one before others; a device that has none reaches this host
/// alone. One that is valid on a link only leads nowhere without the link's name.
fn host_of(uri: &str) -> IpAddr {
    let parts = || uri.split(|symbol: char| !symbol.is_ascii_hexdigit() && !".:".contains(symbol));
    let v4 = parts().flat_map(|part| part.split(':')).filter_map(|part| part.parse::<Ipv4Addr>().ok());
    let v6 = parts().filter_map(|part| part.parse::<Ipv6Addr>().ok()).filter(|host| !host.is_unicast_link_local());
    let mut all = v4.map(IpAddr::V4).chain(v6.map(IpAddr::V6));
    let host = all.find(|address| !address.is_unspecified()).unwrap_or(Ipv4Addr::LOCALHOST.into());
    // Each address of the loop-back network is this host.
    if host.is_ipv4() && host.is_loopback() { Ipv4Addr::LOCALHOST.into() } else { host }
}

pub(crate) const NO_VI: Error = Error::Parameter("no such VI; was it destroyed?");
pub(crate) const CLOSED: Error = Error::Parameter("the NIC has been closed; open another one");
const FAILED: Error = Error::Resource("the endpoint of the NIC has failed; close the NIC, and open it again");
pub(crate) const NO_QUEUE: Error = Error::Parameter("no such completion queue; was it destroyed?");
const ON_QUEUE: Error = Error::Parameter("this work queue reports to a completion queue; wait on that");

impl<T> Changing for State<T> {
    #[inline]
    fn changes(&self) -> u64 {
        self.changes
    }
}

impl<T: Token> Drive for State<T> {
    const SPINS: bool = false;

    /// So that its caller may sleep then.
    fn progress(&mut self, endpoint: &Endpoint) {
        for _ in 0..ROUNDS {
            match endpoint.poll(BATCH, |event| self.take(endpoint, event)) {
                Ok(0) | Err(PollError::NoBuffers) => break,
                Ok(_) => {}
                Err(_) => {
                    self.has_failed = true;
                    break;
                }
            }
        }
        self.catch_up(endpoint);
    }
}

impl<T: Token> State<T> {
    /// Refuses a NIC that was closed.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.is_closed { Err(CLOSED) } else { Ok(()) }
    }

    /// Refuses one whose endpoint has failed: nobody can connect to it, nor be connected to. A
    /// program that repeats what takes too long ends then.
    pub(crate) fn check_endpoint(&self) -> Result<(), Error> {
        if self.has_failed { Err(FAILED) } else { Ok(()) }
    }

    /// Goes on with what waited for room, and reports that the endpoint has failed.
    #[inline(never)]
    fn catch_up(&mut self, endpoint: &Endpoint) {
        if !self.blocked.is_empty() {
            for number in std::mem::take(&mut self.blocked) {
                self.pump(endpoint, number);
            }
        }
        if self.has_failed && !self.failure_is_reported {
            self.failure_is_reported = true;
            self.report(FaultCode::Catastrophic, None, None);
        }
    }
}

impl<T: Token> Core<T> {
    /// Opens a NIC on a device of CCI.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::open`], or no descriptor is left.
    pub fn open(device: &Device) -> Result<Self, OpenError> {
        let endpoint = Endpoint::open(device, &EndpointOptions::new().disconnect_events(true))?;
        let host = host_of(endpoint.uri());
        Ok(Self { driven: Driven::new(endpoint, State::new())?, host, closed: OnceLock::new() })
    }

    /// Returns the URI of the endpoint.
    #[must_use]
    pub fn uri(&self) -> &str {
        self.endpoint().uri()
    }

    /// Returns the address of the host, as peers use it.
    #[must_use]
    pub fn host(&self) -> IpAddr {
        self.host
    }

    #[inline(always)]
    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.driven.endpoint()
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> Entered<'_, State<T>> {
        self.driven.lock()
    }

    /// Runs a call under the lock, and wakes those whom its changes may concern.
    #[inline]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State<T>) -> R) -> R {
        self.driven.with(act)
    }

    /// Takes one event if there is one; whether there was.
    #[inline(never)]
    fn take_event(&self, state: &mut State<T>) -> bool {
        let was_there = match self.endpoint().get_event() {
            Ok(Some(event)) => {
                state.take(self.endpoint(), event);
                true
            }
            Ok(None) => false,
            Err(why) => {
                state.has_failed |= why != PollError::NoBuffers;
                false
            }
        };
        if state.has_failed || !state.blocked.is_empty() {
            state.catch_up(self.endpoint());
        }
        was_there
    }

    /// Takes what has come until `is_enough`, or until nothing comes; and wakes those whom it may
    /// concern.
    #[inline]
    pub(crate) fn look(&self, state: &mut Held<State<T>>, mut is_enough: impl FnMut(&mut State<T>) -> bool) {
        let before = state.changes;
        for _ in 0..BATCH {
            if !self.take_event(state) || is_enough(state) {
                break;
            }
        }
        if state.changes != before {
            self.driven.wake(state);
        }
    }

    /// Makes progress until `ready` gives something, at most for `limit`, or until the endpoint
    /// fails.
    pub(crate) fn wait<R>(
        &self,
        limit: Option<Duration>,
        mut ready: impl FnMut(&mut State<T>) -> Option<R>,
    ) -> Option<R> {
        self.driven.wait_for(limit, |state| ready(state).map(Some).or(state.has_failed.then_some(None))).flatten()
    }

    /// Returns a fault that nobody has been told of yet, oldest first. Makes no progress.
    pub fn fault(&self) -> Option<Fault> {
        self.lock().faults.pop_front()
    }

    /// Returns a count of what has changed: completions, states, faults.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Makes progress and sleeps until that count is another one. Nothing arrives at an endpoint
    /// that has failed: then it sleeps until a call of this side changes something.
    pub fn wait_change(&self, seen: u64) {
        let mut has_changed = |state: &mut State<T>| (state.changes != seen).then_some(());
        if self.wait(None, &mut has_changed).is_none() {
            self.driven.wait_beside(None, || self.lock(), has_changed);
        }
    }

    /// Counts a change, so that waits end.
    pub fn nudge(&self) {
        self.with(|state| state.changes += 1);
    }

    /// Returns messages that found no receive, or one that did not fit.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn check_attributes(state: &State<T>, attributes: &ViAttributes) -> Result<(), Error> {
        state.tags.get(attributes.tag.0).ok_or(Error::Tag)?;
        if attributes.max_transfer == 0 || attributes.max_transfer > MAX_TRANSFER {
            return Err(Error::TransferSize);
        }
        if attributes.qos != 0 {
            return Err(Error::Qos);
        }
        if attributes.access.read && attributes.reliability == Reliability::Unreliable {
            return Err(Error::RdmaRead);
        }
        Ok(())
    }

    /// Makes a VI; its queues report to completion queues if such are named.
    ///
    /// # Errors
    ///
    /// The first attribute that is not offered; [`Error::Parameter`] for a queue;
    /// [`Error::Resource`].
    pub fn create_vi(&self, attributes: &ViAttributes, send: Option<u32>, receive: Option<u32>) -> Result<u32, Error> {
        let mut state = self.lock();
        state.check_open()?;
        Self::check_attributes(&state, attributes)?;
        for queue in [send, receive].into_iter().flatten() {
            state.queues.get(queue).ok_or(NO_QUEUE)?;
        }
        let vi = Vi::new(*attributes, send, receive);
        let number = state.vis.insert(vi).ok_or(Error::Resource("no room for another VI; destroy others"))?;
        for queue in [send, receive].into_iter().flatten() {
            state.queues.get_mut(queue).ok_or(NO_QUEUE)?.users += 1;
        }
        Ok(number)
    }

    /// Ends a VI that is idle and has no descriptors.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]; [`Error::State`]: not idle; [`Error::Resource`]: descriptors are left.
    pub fn destroy_vi(&self, number: u32) -> Result<(), Error> {
        self.with(|state| {
            let vi = state.vis.get(number).ok_or(NO_VI)?;
            if vi.state != ViState::Idle {
                return Err(Error::State("the VI is not idle; disconnect it first"));
            }
            if !vi.send.entries.is_empty() || !vi.receive.entries.is_empty() {
                return Err(Error::Resource("the VI has descriptors; take them first"));
            }
            // A VI without descriptors drops nothing that could call the NIC.
            drop(self.forget(state, number));
            Ok(())
        })
    }

    /// Ends a VI in whatever state, with its descriptors.
    pub(crate) fn drop_vi(&self, number: u32) {
        // Its descriptors may call the NIC when they are dropped: after the lock.
        let vi = self.with(|state| {
            state.close(self.endpoint(), number, ViState::Idle, Status::FLUSHED);
            self.forget(state, number)
        });
        drop(vi);
    }

    fn forget(&self, state: &mut State<T>, number: u32) -> Option<Vi<T>> {
        let vi = state.vis.remove(number)?;
        for at in [vi.send.queue, vi.receive.queue].into_iter().flatten() {
            if let Some(queue) = state.queues.get_mut(at) {
                queue.users -= 1;
                queue.entries.retain(|(vi, _)| *vi != number);
            }
        }
        state.changes += 1;
        Some(vi)
    }

    /// Returns state and attributes of a VI, and whether its send and its receive queue are empty.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: no such VI.
    pub fn query_vi(&self, number: u32) -> Result<(ViState, ViAttributes, bool, bool), Error> {
        self.with(|state| {
            state.progress(self.endpoint());
            let vi = state.vis.get(number).ok_or(NO_VI)?;
            Ok((vi.state, vi.attributes, vi.send.entries.is_empty(), vi.receive.entries.is_empty()))
        })
    }

    /// Changes the attributes of an idle VI.
    ///
    /// # Errors
    ///
    /// As [`Core::create_vi`]; [`Error::State`]: not idle.
    pub fn set_attributes(&self, number: u32, attributes: &ViAttributes) -> Result<(), Error> {
        let mut state = self.lock();
        Self::check_attributes(&state, attributes)?;
        let vi = state.vis.get_mut(number).ok_or(NO_VI)?;
        if vi.state != ViState::Idle {
            return Err(Error::State("the VI is not idle; set its attributes before it connects"));
        }
        vi.attributes = *attributes;
        Ok(())
    }

    /// Ends the connection of a VI, and flushes its descriptors. The VI is idle then.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: no such VI.
    pub fn disconnect(&self, number: u32) -> Result<(), Error> {
        self.with(|state| {
            state.vis.get(number).ok_or(NO_VI)?;
            state.close(self.endpoint(), number, ViState::Idle, Status::FLUSHED);
            Ok(())
        })
    }

    /// Posts a descriptor to the send queue. With a `home`, memory in which the descriptor lies,
    /// that is checked before `read` is called to read the descriptor; `read` gets a function that
    /// tells whether so many bytes of `home` may be read.
    ///
    /// # Errors
    ///
    /// The token comes back. [`Error::Parameter`]: no such VI, or `home` is not usable by it.
    /// [`Error::State`]: not connected. [`Error::Resource`]: the queue is full.
    pub fn post_send(
        &self,
        number: u32,
        home: Option<Segment>,
        token: T,
        read: impl FnOnce(&T, &dyn Fn(u32) -> bool, &mut Task),
    ) -> Result<(), (T, Error)> {
        self.with(|state| {
            match state.vis.get(number).map(|vi| vi.state) {
                Some(ViState::Connected | ViState::Error) | None => {}
                Some(_) => return Err((token, Error::State("the VI is not connected; connect it before it sends"))),
            }
            self.post(state, number, home, token, false, read)
        })
    }

    /// Posts a descriptor to the receive queue, as [`Core::post_send`]; in any state.
    ///
    /// # Errors
    ///
    /// As [`Core::post_send`].
    pub fn post_receive(
        &self,
        number: u32,
        home: Option<Segment>,
        token: T,
        read: impl FnOnce(&T, &dyn Fn(u32) -> bool, &mut Task),
    ) -> Result<(), (T, Error)> {
        self.with(|state| self.post(state, number, home, token, true, read))
    }

    #[inline]
    fn post(
        &self,
        state: &mut State<T>,
        number: u32,
        home: Option<Segment>,
        token: T,
        is_receive: bool,
        read: impl FnOnce(&T, &dyn Fn(u32) -> bool, &mut Task),
    ) -> Result<(), (T, Error)> {
        let Some(vi) = state.vis.get_mut(number) else { return Err((token, NO_VI)) };
        if let Some(home) = home
            && check(&state.areas, vi.attributes.tag, &home).is_none()
        {
            let why = "the descriptor lies in no memory that this VI may use; register it, with the VI's tag";
            return Err((token, Error::Parameter(why)));
        }
        let tag = vi.attributes.tag;
        let queue = if is_receive { &mut vi.receive } else { &mut vi.send };
        if queue.entries.len() >= MAX_DESCRIPTORS {
            return Err((token, Error::Resource("the queue has 4,096 descriptors; take completed ones first")));
        }
        let areas = &state.areas;
        let covers = |length| home.is_some_and(|home| check(areas, tag, &Segment { length, ..home }).is_some());
        let entry = queue.post(home);
        read(&token, &covers, &mut entry.task);
        entry.token = Some(token);
        if vi.state == ViState::Error {
            let op = if is_receive { Status::OP_RECEIVE } else { entry.task.op_bits() };
            entry.finish(Status::FLUSHED | op, 0, None);
            state.publish(self.endpoint(), number);
        } else if !is_receive && !state.send_at_once(self.endpoint(), number) {
            state.pump(self.endpoint(), number);
        }
        Ok(())
    }

    /// Takes the oldest descriptor of a queue if it has completed. Makes progress if it has not.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: no such VI.
    #[inline]
    pub fn take(&self, number: u32, is_receive: bool) -> Result<Taken<T>, Error> {
        let mut state = self.lock();
        if state.queue_of(number, is_receive).ok_or(NO_VI)?.published == 0 {
            let is_enough = |queue: &mut WorkQueue<T>| queue.published > 0;
            self.look(&mut state, |state| state.queue_of(number, is_receive).is_none_or(is_enough));
        }
        state.queue_of(number, is_receive).map(taken).ok_or(NO_VI)
    }

    /// As [`Core::take`], and sleeps until the oldest has completed, at most for `limit`; not while
    /// nothing is posted.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]: no such VI, or the queue reports to a completion queue.
    /// [`Error::Timeout`].
    pub fn wait_taken(&self, number: u32, is_receive: bool, limit: Option<Duration>) -> Result<Taken<T>, Error> {
        let found = self.wait(limit, |state| {
            let Some(vi) = state.vis.get_mut(number) else { return Some(Err(NO_VI)) };
            let queue = if is_receive { &mut vi.receive } else { &mut vi.send };
            if queue.queue.is_some() {
                return Some(Err(ON_QUEUE));
            }
            Some(taken(queue)).filter(|taken| !matches!(taken, Taken::NotDone)).map(Ok)
        });
        found.unwrap_or(Err(Error::Timeout))
    }
}

#[inline]
fn taken<T>(queue: &mut WorkQueue<T>) -> Taken<T> {
    match queue.take() {
        Some((end, token)) => Taken::Done(end, token),
        None if queue.entries.is_empty() => Taken::Empty,
        None => Taken::NotDone,
    }
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn a_host_is_the_first_address_of_a_uri() {
        for (uri, host) in [
            ("sm://1396/1", "127.0.0.1"),
            ("sock://10.0.0.7:5000", "10.0.0.7"),
            ("sock://[2001:db8::7]:5000", "2001:db8::7"),
            ("tcp://[::1]:5000", "::1"),
            ("sock://[fe80::1%7]:5000", "127.0.0.1"),
            ("tcp://0.0.0.0:5000", "127.0.0.1"),
        ] {
            assert_eq!(host_of(uri).to_string(), host, "{uri}");
        }
    }
}
