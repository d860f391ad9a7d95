//! Endpoints.

use crate::bits::{MULTI_RECV, READ, RECV, REMOTE_WRITE, SEND, WRITE};
use crate::code::Code;
use crate::core::Core;
use crate::counter::Counter;
use crate::domain::{Domain, Open};
use crate::operations::{EndpointOptions, Receive, Remote, Send};
use crate::queue::{Bound, Queue};
use crate::record::{RECORD, Record};
use crate::requests::Requests;
use crate::segments::Segments;
use crate::state::{Counters, NO_ENTRY, Setup, State};
use crate::vector::AddressVector;
use crate::watch::Source;
use cci::{EndpointOptions as Options, OpenError};
use cci_mem::mutex::lock;
use cci_peers::{Directory, Found, Name, Peers};
use cci_rendezvous::Windows;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

/// What windows of all links take together, bytes.
const WINDOWS: u32 = 64 << 20;
/// What unexpected messages may hold beside them, bytes.
const UNEXPECTED_MAX: u64 = 1 << 30;
/// What is free at least in a buffer that takes several messages, unless the program says it.
const LEAST_MULTI: usize = 64;
/// How long it is tried to reach a peer that refuses.
const REFUSED: Duration = Duration::from_secs(5);

/// An RDM endpoint. Any thread may call it. Progress is made by reading its queues and counters.
///
/// # Example
///
/// ```
/// use cci_fabric::{
///     AddressVector, Code, Domain, Endpoint, EndpointOptions, NOT_AVAILABLE, Queue, QueueOptions, Receive, Segments,
///     Send, Space, What, bits,
/// };
/// use std::sync::Arc;
///
/// let domain = Domain::open()?;
/// let vector = AddressVector::open(&domain);
/// let queue = Queue::open(&domain, QueueOptions { waits: true, ..QueueOptions::default() })?;
/// let open = || {
///     let endpoint = Endpoint::new(&domain, EndpointOptions::default());
///     endpoint.bind_vector(&vector)?;
///     endpoint.bind_queue(&queue, bits::TRANSMIT | bits::RECV)?;
///     endpoint.enable()?;
///     Ok::<_, Code>(endpoint)
/// };
/// let (here, there) = (open()?, open()?);
/// let to = vector.insert(&there.address()?)?;
///
/// let memory = cci::Memory::of_bytes(&Arc::new(cci::HeapBytes::new(vec![0; 8])));
/// let (space, segments) = (Space::Tagged, Segments::from(memory.clone()));
/// there.receive(Receive { segments, from: NOT_AVAILABLE, space, tag: 7, ignore: 0, context: 1, flags: 0 })?;
/// let what = What::Bytes(b"hello");
/// here.send(Send { what, to, space, tag: 7, data: None, context: 0, flags: 0 })?;
/// let mut received = None;
/// queue.wait(1, None, |entry| received = Some((entry.context, entry.len)))?;
/// assert_eq!(received, Some((1, 5)));
/// # Ok::<(), Code>(())
/// ```
pub struct Endpoint {
    domain: Domain,
    options: EndpointOptions,
    pending: Mutex<Pending>,
    core: OnceLock<Arc<Core>>,
    _open: Open,
}

/// What it was bound to before it was enabled, and stays.
#[derive(Default)]
struct Pending {
    vector: Option<AddressVector>,
    transmit: Option<(Queue, u64)>,
    receive: Option<(Queue, u64)>,
    counters: Vec<(Counter, u64)>,
    least_multi: Option<usize>,
    is_closed: bool,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.core.get() {
            Some(core) => write!(f, "Endpoint({})", core.endpoint().uri()),
            None => f.write_str("Endpoint(not enabled)"),
        }
    }
}

/// Peers are where their records lead; whoever has one may connect.
struct Records;

impl Directory for Records {
    fn find(&mut self, name: &Name) -> Found {
        Record::of_name(name).and_then(|record| record.uri()).map_or(Found::Unknown, Found::Uri)
    }
}

impl Endpoint {
    /// An endpoint that is not enabled.
    #[must_use]
    pub fn new(domain: &Domain, options: EndpointOptions) -> Self {
        let (pending, core) = (Mutex::default(), OnceLock::new());
        Self { domain: domain.clone(), options, pending, core, _open: domain.count() }
    }

    /// Binds the address vector.
    ///
    /// # Errors
    ///
    /// [`Code::BadState`]: it is enabled. [`Code::Invalid`]: it has one.
    pub fn bind_vector(&self, vector: &AddressVector) -> Result<(), Code> {
        let mut pending = self.before_enable()?;
        if pending.vector.is_some() {
            return Err(Code::Invalid);
        }
        pending.vector = Some(vector.clone());
        Ok(())
    }

    /// Binds a completion queue: `TRANSMIT`, `RECV`, with `SELECTIVE_COMPLETION` where only
    /// operations that ask for it make entries.
    ///
    /// # Errors
    ///
    /// [`Code::BadState`]: it is enabled. [`Code::Invalid`]: it has one. [`Code::BadFlags`].
    pub fn bind_queue(&self, queue: &Queue, flags: u64) -> Result<(), Code> {
        let mut pending = self.before_enable()?;
        if flags & (SEND | RECV) == 0 {
            return Err(Code::BadFlags);
        }
        let is_twice = |bit: u64, place: &Option<_>| flags & bit != 0 && place.is_some();
        if is_twice(SEND, &pending.transmit) || is_twice(RECV, &pending.receive) {
            return Err(Code::Invalid);
        }
        if flags & SEND != 0 {
            pending.transmit = Some((queue.clone(), flags));
        }
        if flags & RECV != 0 {
            pending.receive = Some((queue.clone(), flags));
        }
        Ok(())
    }

    /// Binds a counter of these operations: `SEND`, `RECV`, `READ`, `WRITE`, `REMOTE_WRITE` (writes
    /// of peers with remote data).
    ///
    /// # Errors
    ///
    /// [`Code::BadState`]: it is enabled. [`Code::BadFlags`].
    pub fn bind_counter(&self, counter: &Counter, flags: u64) -> Result<(), Code> {
        let mut pending = self.before_enable()?;
        if flags & (SEND | RECV | READ | WRITE | REMOTE_WRITE) == 0 {
            return Err(Code::BadFlags);
        }
        pending.counters.push((counter.clone(), flags));
        Ok(())
    }

    fn before_enable(&self) -> Result<std::sync::MutexGuard<'_, Pending>, Code> {
        let pending = lock(&self.pending);
        if self.core.get().is_some() || pending.is_closed { Err(Code::BadState) } else { Ok(pending) }
    }

    /// Opens the endpoint of CCI. From here on peers reach it.
    ///
    /// # Errors
    ///
    /// [`Code::NoVector`], [`Code::NoQueue`]: none is bound. [`Code::BadState`]: it is enabled. The
    /// endpoint cannot be opened.
    pub fn enable(&self) -> Result<(), Code> {
        let pending = self.before_enable()?;
        let vector = pending.vector.clone().ok_or(Code::NoVector)?;
        if pending.transmit.is_none() && pending.receive.is_none() {
            return Err(Code::NoQueue);
        }
        // Ranks compute without a call, and whole jobs are stopped.
        let mut options = Options::new().disconnect_events(true).present(true).patient(true);
        if let Some(place) = self.options.place {
            let is_any = place.ip().is_unspecified();
            options = options.service(if is_any { place.port().to_string() } else { place.to_string() });
        }
        let endpoint = cci::Endpoint::open(self.domain.device(), &options);
        let endpoint = endpoint.map_err(|why| Code::of_open(&why))?;
        let mut identity = [0; 8];
        // So few bytes come whole.
        rustix::rand::getrandom(&mut identity, rustix::rand::GetRandomFlags::empty()).map_err(|_| Code::Other)?;
        let own = Record::of_uri(endpoint.uri(), u64::from_ne_bytes(identity)).ok_or(Code::AddressNotAvailable)?;
        let options = cci_peers::Options::new().limit(Duration::MAX).return_limit(Duration::MAX);
        let peers = Peers::new(own.name(), Box::new(Records), &options.refusal_limit(REFUSED));
        let peers = peers.map_err(|why: OpenError| Code::of_open(&why))?;
        let bound = |of: &Option<(Queue, u64)>| of.as_ref().map(|(queue, flags)| Bound::new(queue.clone(), *flags));
        let setup = Setup {
            domain: self.domain.clone(),
            vector,
            transmit: bound(&pending.transmit),
            receive: bound(&pending.receive),
            counters: counters(&pending.counters),
            options: self.options,
            least_multi: pending.least_multi.unwrap_or(LEAST_MULTI),
            unexpected_max: UNEXPECTED_MAX,
        };
        let core = Core::new(endpoint, State::new(setup, own, peers));
        let source: Arc<dyn Source> = Arc::<Core>::clone(&core);
        self.attach(&pending, &source).inspect_err(|_| self.detach(&pending, &source))?;
        self.core.set(core).map_err(|_| Code::BadState)
    }

    /// Has all that it was bound to look at it.
    fn attach(&self, bound: &Pending, source: &Arc<dyn Source>) -> Result<(), Code> {
        for (queue, _) in bound.transmit.iter().chain(&bound.receive) {
            queue.attach(source)?;
        }
        for (counter, _) in &bound.counters {
            counter.attach(source)?;
        }
        self.domain.driver().map_or(Ok(()), |driver| driver.attach(source))
    }

    fn detach(&self, bound: &Pending, source: &Arc<dyn Source>) {
        if let Some(driver) = self.domain.driver() {
            driver.detach(source);
        }
        for (queue, _) in bound.transmit.iter().chain(&bound.receive) {
            queue.detach(source);
        }
        for (counter, _) in &bound.counters {
            counter.detach(source);
        }
    }

    /// The address, which never changes.
    ///
    /// # Errors
    ///
    /// [`Code::BadState`]: it is not enabled.
    pub fn address(&self) -> Result<[u8; RECORD], Code> {
        Ok(self.core()?.with(|state, _| state.own.to_bytes()))
    }

    #[inline]
    fn core(&self) -> Result<&Arc<Core>, Code> {
        self.core.get().ok_or(Code::BadState)
    }

    /// Keeps at most so many bytes of messages, and of entries of peers, that the program does not
    /// take.
    #[cfg(test)]
    pub(crate) fn keep_at_most(&self, most: u64) {
        self.core.get().expect("it is enabled").with(|state, _| state.setup.unexpected_max = most);
    }

    /// What is free at least in a buffer that takes several messages and was posted last, bytes.
    #[must_use]
    pub fn min_multi_receive(&self) -> usize {
        match self.core.get() {
            Some(core) => core.with(|state, _| state.setup.least_multi),
            None => lock(&self.pending).least_multi.unwrap_or(LEAST_MULTI),
        }
    }

    /// Sets what is free at least in a buffer that takes several messages and is posted later.
    pub fn set_min_multi_receive(&self, least: usize) {
        match self.core.get() {
            Some(core) => core.with(|state, _| state.setup.least_multi = least),
            None => lock(&self.pending).least_multi = Some(least),
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// [`Code::Invalid`]: no such peer, or more than 4 segments. [`Code::MessageSize`]: more than
    /// is copied. [`Code::NoQueue`], [`Code::NoMemory`], [`Code::BadState`].
    #[inline]
    pub fn send(&self, send: Send<'_>) -> Result<(), Code> {
        self.core()?.with(|state, endpoint| state.send(endpoint, send))
    }

    /// Posts a receive: it takes the oldest message that matches, now or later. Or looks for one,
    /// keeps it for a later receive, or drops it.
    ///
    /// # Errors
    ///
    /// [`Code::Invalid`]: no such peer, no such message is kept, more than 4 segments, or several
    /// for a buffer that takes several messages. [`Code::NoQueue`], [`Code::NoMemory`],
    /// [`Code::BadState`].
    #[inline]
    pub fn receive(&self, receive: Receive) -> Result<(), Code> {
        let core = self.core()?;
        if receive.flags & MULTI_RECV != 0 && receive.segments.parts().len() != 1 {
            return Err(Code::Invalid);
        }
        if receive.flags & crate::bits::PEEK != 0 {
            core.progress();
        }
        core.with(|state, endpoint| state.receive(endpoint, receive))
    }

    /// Reads or writes memory of a peer.
    ///
    /// # Errors
    ///
    /// [`Code::Invalid`]: no such peer, other lengths on both sides, more than 4 segments.
    /// [`Code::MessageSize`]: more than is copied, of an `INJECT`.
    /// [`Code::NoQueue`], [`Code::NoMemory`], [`Code::BadState`].
    pub fn remote(&self, remote: Remote) -> Result<(), Code> {
        self.core()?.with(|state, endpoint| state.remote(endpoint, remote))
    }

    /// Writes copied bytes, at most 32, and makes no entry when that ends well.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::remote`]; [`Code::MessageSize`].
    pub fn inject_write(&self, bytes: &[u8], to: u64, at: (u64, u64), data: Option<u64>) -> Result<(), Code> {
        if bytes.len() > crate::INJECT_SIZE {
            return Err(Code::MessageSize);
        }
        let ((offset, key), len) = (at, bytes.len() as u64);
        let segments = if bytes.is_empty() {
            Segments::None
        } else {
            cci::Memory::of_bytes(&Arc::new(cci::HeapBytes::new(bytes.to_vec()))).into()
        };
        let pieces = vec![(offset, len, key)];
        self.remote(Remote { segments, to, pieces, is_write: true, data, context: 0, flags: NO_ENTRY })
    }

    /// Takes back the operation of a context that has not matched, or not left: it ends with
    /// [`Code::Canceled`].
    ///
    /// # Errors
    ///
    /// [`Code::NoEntry`]: there is none; its own end has come, or will.
    pub fn cancel(&self, context: u64) -> Result<(), Code> {
        self.core()?.with(|state, _| state.cancel(context))
    }

    /// Ends the endpoint: receives are dropped, and what was reported as done leaves, for which
    /// this waits, at most for 10 s in which nothing goes on.
    pub fn close(&self) {
        if std::mem::replace(&mut lock(&self.pending).is_closed, true) {
            return;
        }
        let Some(core) = self.core.get() else { return };
        core.close();
        let source: Arc<dyn Source> = Arc::<Core>::clone(core);
        let pending = std::mem::take(&mut *lock(&self.pending));
        self.detach(&pending, &source);
        lock(&self.pending).is_closed = true;
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.close();
    }
}

fn counters(bound: &[(Counter, u64)]) -> Counters {
    let of = |bit: u64| bound.iter().find(|(_, flags)| flags & bit != 0).map(|(counter, _)| counter.clone());
    Counters { send: of(SEND), receive: of(RECV), read: of(READ), write: of(WRITE), remote_write: of(REMOTE_WRITE) }
}

impl State {
    fn new(setup: Setup, own: Record, peers: Peers<()>) -> Self {
        Self {
            setup,
            own,
            me: Weak::<Core>::new(),
            requests: Requests::new(),
            spaces: Default::default(),
            buffers: Default::default(),
            offers: Default::default(),
            reads: Default::default(),
            peers,
            partners: Vec::new(),
            by_address: Vec::new(),
            epoch: 0,
            blocked: Vec::new(),
            owing: Vec::new(),
            windows: Windows::new(WINDOWS / cci_rendezvous::GRANULE as u32),
            kept: 0,
            registered: Default::default(),
            scratch: Vec::new(),
            askers: Default::default(),
            calls: 0,
            accesses: 0,
            flushes: 0,
            failed: None,
            is_closed: false,
        }
    }
}
