//! Endpoints of Active Messages.

use crate::cci_mapping::CciMapping;
use crate::credits::Pool;
use crate::draft::Draft;
use crate::engine::{Core, OwnSegment, Turn};
use crate::errors::{MapError, RequestError};
use crate::handlers::Handlers;
use crate::mapping::Mapping;
use crate::options::Options;
use crate::outbox::Outbox;
use crate::peers::{Peer, Target, Way, table};
use crate::records::Records;
use crate::reply_buffers::ReplyBuffers;
use crate::staging::Staging;
use crate::waker::Waker;
use crate::wire::{Hello, MAX_ARGUMENTS};
use cci::{Device, Memory, OpenError, RegisterError, Rights};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The tag of an endpoint that refuses every request.
///
/// # Example
///
/// ```
/// fn refuse_all<S>(endpoint: &mut cci_am::Endpoint<S>) -> Result<(), cci::RegisterError> {
///     endpoint.set_tag(cci_am::TAG_NONE)
/// }
/// ```
pub const TAG_NONE: u64 = 0;
/// The tag of an endpoint that accepts every request.
///
/// # Example
///
/// ```
/// use cci_am::{Endpoint, MapError, Peer, TAG_ALL};
///
/// fn map<S>(endpoint: &mut Endpoint<S>, name: &str) -> Result<Peer, MapError> {
///     endpoint.map(name, TAG_ALL)
/// }
/// ```
pub const TAG_ALL: u64 = u64::MAX;

/// A connection request has at most 1,024 bytes, of which the hello takes 64 before the source.
const LONGEST_INTRODUCTION: usize = 900;

/// An endpoint: it owns the program's state, which its handlers get.
///
/// Handlers run in calls of this endpoint only: in [`Endpoint::poll`] and [`Endpoint::wait`], and
/// in requests that wait for a credit or go to this endpoint itself.
///
/// # Example
///
/// ```
/// use cci_am::{Endpoint, Handlers, Options, Reply, Request, TAG_ALL};
///
/// const ADD: u8 = 1;
/// const SUM: u8 = 2;
///
/// fn add(_: &mut u32, request: Request<'_>) {
///     let sum = request.arguments().iter().sum();
///     request.reply(SUM, &[sum]).expect("one argument");
/// }
///
/// fn sum(sums: &mut u32, reply: Reply<'_>) {
///     *sums += reply.arguments()[0];
/// }
///
/// let device = cci::Context::new()?.default_device()?.clone();
/// let handlers = || Handlers::new().request(ADD, add).reply(SUM, sum);
/// let open = || Endpoint::open(&device, &Options::new(), handlers(), 0);
/// let (mut server, mut client) = (open()?, open()?);
/// let peer = client.map(server.name().to_owned().as_str(), TAG_ALL)?;
/// // Both ends are in one thread here, so that the client may not wait for the server.
/// while client.now().request(peer, ADD, &[20, 22]).is_err() {
///     server.poll()?;
///     client.poll()?;
/// }
/// while *client.state() == 0 {
///     server.poll()?;
///     client.poll()?;
/// }
/// assert_eq!(*client.state(), 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Endpoint<S, M: Mapping = CciMapping> {
    // Registrations end before the mapping.
    core: Core<M>,
    state: S,
    handlers: Handlers<S>,
    mapping: M,
}

impl<S> Endpoint<S> {
    /// Opens an endpoint over CCI on a device. It accepts every tag, and has no segment.
    ///
    /// # Errors
    ///
    /// As [`cci::Endpoint::open`]; or no credits, or no memory for the buffers that stand behind
    /// them.
    pub fn open(device: &Device, options: &Options, handlers: Handlers<S>, state: S) -> Result<Self, OpenError> {
        let mapping = CciMapping::open(device, options.credits.max(1), options.send_timeout)?;
        Self::over(mapping, options, handlers, state)
    }

    /// Returns what ends a wait for this endpoint, or for its bundle, from another thread.
    ///
    /// # Errors
    ///
    /// The first one needs a descriptor, and none is left.
    pub fn waker(&self) -> Result<Waker, OpenError> {
        self.mapping.waker()
    }
}

impl<S, M: Mapping> Endpoint<S, M> {
    /// Makes an endpoint over a mapping.
    ///
    /// # Errors
    ///
    /// No memory or handle for the buffers of replies.
    pub fn over(mapping: M, options: &Options, handlers: Handlers<S>, state: S) -> Result<Self, OpenError> {
        let refused = |why: RegisterError| OpenError::new(why.status(), why.to_string());
        let credits = options.credits.max(1);
        // One more for a request of the endpoint to itself.
        let buffers = ReplyBuffers::new(credits + 1, options.longest_reply);
        let reply_region = mapping.register(buffers.memory(), Rights::NONE).map_err(refused)?;
        let staged = Staging::<M::Region>::memory(options.longest_bulk);
        let region = mapping.register(&staged, Rights::NONE).map_err(refused)?;
        let core = Core {
            parts: 0,
            targets: table(),
            sources: table(),
            records: Records::default(),
            outbox: Outbox::new(buffers),
            reply_region,
            staging: Staging::new(staged, region, options.longest_bulk),
            segment: OwnSegment { now: None, epoch: 0 },
            options: options.clone(),
            introduction: mapping.name().into(),
            tag: TAG_ALL,
            pool: Pool::new(credits),
            due: VecDeque::new(),
            batching: Vec::new(),
            unsent: VecDeque::new(),
            scratch: Vec::new(),
            arguments: [0; MAX_ARGUMENTS],
            clock: Core::<M>::clock(options.send_timeout),
        };
        Ok(Self { core, state, handlers, mapping })
    }

    #[inline]
    pub(crate) fn turn(&mut self) -> Turn<'_, S, M> {
        Turn { mapping: &self.mapping, core: &mut self.core, state: &mut self.state, handlers: &self.handlers }
    }

    /// Returns the name by which others map this endpoint: a URI.
    #[must_use]
    pub fn name(&self) -> &str {
        self.mapping.name()
    }

    /// Sets what this endpoint's requests name as their source ([`crate::Request::from`]), at most
    /// 900 bytes, in mappings from now on. It is [`Endpoint::name`] at first.
    pub fn introduce(&mut self, source: &str) {
        let mut end = source.len().min(LONGEST_INTRODUCTION);
        while !source.is_char_boundary(end) {
            end -= 1;
        }
        self.core.introduction = source[..end].into();
    }

    /// Returns the handlers, to change them.
    pub fn handlers(&mut self) -> &mut Handlers<S> {
        &mut self.handlers
    }

    /// Returns the program's state.
    #[inline]
    pub fn state(&mut self) -> &mut S {
        &mut self.state
    }

    /// Closes the endpoint, and returns the program's state.
    #[must_use]
    pub fn into_state(self) -> S {
        self.state
    }

    /// Maps a peer: requests to it carry `tag`. Returns at once; requests wait until the way to it
    /// is open, and come back if it does not open within the send timeout.
    ///
    /// The name is that of the peer's endpoint ([`Endpoint::name`]), or `job:RANK`: the endpoint
    /// that this rank of the parallel job has announced, where the context of this endpoint's
    /// device has the names of a job ([`cci::Context::set_names`]).
    ///
    /// # Errors
    ///
    /// The name is malformed, or leads nowhere from here.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use cci_am::{Endpoint, Handlers, Options, TAG_ALL};
    ///
    /// let (job, context) = (cci_job::Job::join()?, cci::Context::new()?);
    /// let mut endpoint = Endpoint::open(&job.device(&context)?, &Options::new(), Handlers::new(), ())?;
    /// context.set_names(job.announce(endpoint.name())?);
    /// let next = endpoint.map(&format!("job:{}", (job.rank() + 1) % job.size()), TAG_ALL)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map(&mut self, name: &str, tag: u64) -> Result<Peer, MapError> {
        let name = &*self.mapping.resolve(name).map_err(MapError::Refused)?;
        let is_local = name == self.mapping.name();
        let target = Target::new(if is_local { Way::Local } else { Way::Connecting }, tag);
        let peer = self.core.targets.insert_with(|_| target);
        if is_local {
            return Ok(peer);
        }
        let hello = Hello { tag, segment: self.core.segment.notice::<M>(true), name: &self.core.introduction }.emit();
        let context = Core::<M>::context_of(peer);
        self.mapping.connect(name, &hello, context).map_err(|why| {
            self.core.targets.remove(peer);
            MapError::Refused(why)
        })?;
        Ok(peer)
    }

    /// Ends a mapping. Open requests to the peer come back [`crate::Status::Unreachable`].
    pub fn unmap(&mut self, peer: Peer) {
        if self.core.targets.get(peer).is_some() {
            self.turn().unmap(peer.index());
        }
    }

    /// Returns how many requests to a peer have not ended.
    pub fn outstanding(&mut self, peer: Peer) -> usize {
        self.core.targets.get(peer).map_or(0, |target| target.open as usize)
    }

    /// Sets which tag requests to this endpoint must carry, [`TAG_ALL`] at first. Those with
    /// another one go back, and their peers cannot write the segment any more.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::set_segment`]; the tag is set all the same.
    pub fn set_tag(&mut self, tag: u64) -> Result<(), RegisterError> {
        self.turn().set_tag(tag)
    }

    /// Sets the memory that peers write and read, or none. The memory that was the segment is free
    /// on return: what peers write to it from now on comes back to them.
    ///
    /// # Errors
    ///
    /// No room for another registration; or a peer is in the midst of a copy, and the old segment
    /// stays.
    pub fn set_segment(&mut self, segment: Option<Memory>) -> Result<(), RegisterError> {
        self.turn().set_segment(segment)
    }

    /// Reports requests that have ended here and were kept for a batch. One that closes right
    /// afterwards does not have them come back [`crate::Status::Unreachable`]. Polls in vain and
    /// sleeps do it too. Never waits.
    pub fn flush(&mut self) {
        self.turn().flush_batches();
    }

    /// Returns the most bytes of a medium payload, cut or not.
    #[must_use]
    pub fn longest_medium(&self) -> usize {
        self.core.options.longest_medium
    }

    /// Returns the most bytes of a bulk request that is copied.
    #[must_use]
    pub fn longest_bulk(&self) -> usize {
        self.core.staging.longest()
    }

    /// Prepares a request whose payload of `len` bytes is written in place: where its receiver
    /// reads it, on `sm`. Polls while there is no credit or no room.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::request`], or longer than [`Endpoint::longest_in_place`].
    pub fn prepare(
        &mut self,
        to: Peer,
        at: u8,
        arguments: &[u32],
        len: usize,
    ) -> Result<Draft<'_, S, M>, RequestError> {
        Draft::new(self.turn(), to, (at, arguments), len)
    }

    /// Returns the most bytes of a payload that goes to a peer as one message, beside 16 arguments;
    /// `None` while the way to it is not open.
    pub fn longest_in_place(&mut self, peer: Peer) -> Option<usize> {
        let target = self.core.targets.get_mut(peer)?;
        let (way, most) = (target.way, target.longest as usize);
        match way {
            Way::Open(_) => Some(self.core.longest_in_place(most)),
            Way::Local => Some(self.core.options.longest_medium),
            Way::Connecting | Way::Broken => None,
        }
    }

    /// Takes what has come and runs its handlers; returns how many messages and other events there
    /// were. Never waits.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    #[inline]
    pub fn poll(&mut self) -> Result<usize, RequestError> {
        self.turn().poll()
    }

    /// As [`Endpoint::poll`], and sleeps until something has come, at most for `limit`; returns 0
    /// when the time is over, or when a [`Waker`] has ended the wait.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::poll`].
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<usize, RequestError> {
        self.turn().wait(limit)
    }
}

impl<S, M: Mapping> fmt::Debug for Endpoint<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.mapping.name())
    }
}
