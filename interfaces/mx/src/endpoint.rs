//! Endpoints.

use crate::errors::Error;
use crate::handler::{Answer, Unexpected};
use crate::options::Options;
use crate::place::{NotOpened, Place};
use crate::requests::Request;
use crate::state::{Counts, State};
use crate::types::{Address, Buffer, Match, Segments, Status};
use crate::waiting::{Core, this_thread};
use cci::Memory;
use cci_job::Job;
use cci_peers::Peers;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Partners at most.
const MOST_PARTNERS: u32 = 1 << 16;

/// An MX endpoint. Any thread may call it. Progress is made by calls that test, wait, peek and
/// probe.
///
/// `B` is the memory of segments, which a request owns until it has ended.
///
/// # Example
///
/// ```
/// use cci_mx::{Code, Endpoint, Match, Options, Place, buffer};
///
/// let place = Place::by_rule(cci::Context::new()?.default_device()?, None)?;
/// let endpoint = Endpoint::open(place, 0x1234, &Options::new())?;
///
/// let memory = buffer(vec![0; 64]);
/// let receive = endpoint.receive(memory.clone(), Match::exact(7), 0)?;
/// // To this endpoint itself.
/// let send = endpoint.send(buffer(b"hello".to_vec()), endpoint.address(), 7, 0)?;
/// let status = endpoint.wait(receive, None)?.ok_or("a wake-up")?;
/// assert_eq!((status.code, status.length, status.source), (Code::Success, 5, endpoint.address()));
/// assert_eq!(endpoint.test(send)?.map(|status| status.code), Some(Code::Success));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Endpoint<B: Buffer = Memory> {
    pub(crate) core: Core<B>,
    own: Address,
    key: u32,
    _job: Option<Arc<Job>>,
}

impl<B: Buffer> fmt::Debug for Endpoint<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({:?} at {})", self.own, self.core.endpoint().uri())
    }
}

impl<B: Buffer> Endpoint<B> {
    /// An endpoint at a place, to which those can connect who name the key.
    ///
    /// # Errors
    ///
    /// The options do not fit; or the system has no descriptor, no random numbers or no memory.
    pub fn open(place: Place, key: u32, options: &Options) -> Result<Self, NotOpened> {
        options.check()?;
        let Place { endpoint, name, directory, job, .. } = place;
        let mut session = [0; 4];
        // So few bytes come whole.
        rustix::rand::getrandom(&mut session, rustix::rand::GetRandomFlags::empty())
            .map_err(|source| cci::OpenError::system("no random numbers for a session", source))?;
        let own = Address::of(name, u32::from_ne_bytes(session));
        let peers = cci_peers::Options::new().most_peers(MOST_PARTNERS).refusal_limit(options.absent_limit);
        let peers = Peers::new(cci_peers::Name::Number(name), directory, &peers)?;
        let core = Core::new(endpoint, State::new(own, key, options, peers))?;
        Ok(Self { core, own, key, _job: job })
    }

    /// Which endpoint this is.
    #[must_use]
    pub fn address(&self) -> Address {
        self.own
    }

    /// The key that connects name.
    #[must_use]
    pub fn key(&self) -> u32 {
        self.key
    }

    /// The URI of the endpoint of CCI.
    #[must_use]
    pub fn uri(&self) -> &str {
        self.core.endpoint().uri()
    }

    /// Ends the endpoint: links close, requests are gone, waits end.
    ///
    /// # Errors
    ///
    /// [`Error::BadEndpoint`]: it has ended already; [`Error::CloseInHandler`].
    pub fn close(&self) -> Result<(), Error> {
        self.core.with(|state| {
            if state.in_handler == Some(this_thread()) {
                return Err(Error::CloseInHandler);
            }
            state.close(self.core.endpoint());
            Ok(())
        })
    }

    /// Sends a message. The request ends once the memory is the program's again; with `context` in
    /// its status.
    ///
    /// # Errors
    ///
    /// [`Error::SegmentCount`], [`Error::BadSegment`] (longer than 4 GiB),
    /// [`Error::NoResources`].
    #[inline]
    pub fn send(
        &self,
        segments: impl Into<Segments<B>>,
        to: Address,
        bits: u64,
        context: u64,
    ) -> Result<Request, Error> {
        self.start_send(segments.into(), to, (bits, context), false)
    }

    /// Sends a message, as [`Endpoint::send`]. The request ends once a receive has matched it.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::send`].
    pub fn send_sync(
        &self,
        segments: impl Into<Segments<B>>,
        to: Address,
        bits: u64,
        context: u64,
    ) -> Result<Request, Error> {
        self.start_send(segments.into(), to, (bits, context), true)
    }

    #[inline]
    fn start_send(&self, segments: Segments<B>, to: Address, of: (u64, u64), is_sync: bool) -> Result<Request, Error> {
        crate::send::check(&segments)?;
        let request = self.core.with(|state| state.send(self.core.endpoint(), segments, to, of, is_sync))?;
        if to.name() == self.own.name() {
            // Nobody else brings it on its way.
            drop(self.core.progress(self.core.lock(), |_| false));
        }
        Ok(request)
    }

    /// Posts a receive: it takes the oldest message that matches, now or later.
    ///
    /// # Errors
    ///
    /// [`Error::BadMask`], [`Error::BadContextMask`], and as [`Endpoint::send`].
    #[inline]
    pub fn receive(&self, segments: impl Into<Segments<B>>, wanted: Match, context: u64) -> Result<Request, Error> {
        let segments = segments.into();
        crate::send::check(&segments)?;
        self.core.with(|state| state.receive(self.core.endpoint(), segments, wanted, context))
    }

    /// Asks endpoint `id` of a NIC for a connection. The address is the `source` of the status.
    ///
    /// # Errors
    ///
    /// [`Error::BadEndpointId`], [`Error::NicNotFound`], [`Error::NoResources`].
    pub fn start_connect(&self, (nic, id): (u64, u32), key: u32, bits: u64, context: u64) -> Result<Request, Error> {
        self.core.with(|state| state.connect(self.core.endpoint(), (nic, id, key), (bits, context)))
    }

    /// Connects to endpoint `id` of a NIC, at most for `limit`, or until [`Endpoint::wake`], which
    /// ends it with [`Error::Timeout`]. So ends at once, in the unexpected handler, where nothing
    /// makes progress, a connect that would wait.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::start_connect`]; [`Error::BadKey`], [`Error::Timeout`],
    /// [`Error::NicNotFound`], [`Error::ConnectionFailed`].
    pub fn connect(&self, (nic, id): (u64, u32), key: u32, limit: Option<Duration>) -> Result<Address, Error> {
        use crate::errors::Code;
        let (request, wakes) = self.core.with(|state| {
            let request = state.connect(self.core.endpoint(), (nic, id, key), (0, 0))?;
            // Not for those who wait for any request.
            state.requests.hide(request.index());
            Ok((request, state.wakes))
        })?;
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let status = loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            // A wake-up may come between two waits.
            let ready = |state: &mut State<B>| {
                let ended = state.requests.find_ended(request);
                ended.map(Some).or_else(|| (state.wakes != wakes).then_some(None))
            };
            let take = |state: &mut State<B>, found: Option<Result<u32, Error>>| match found {
                Some(ended) => Ok(state.consume(ended?)),
                None => Ok(None),
            };
            if let Some(status) = self.core.wait_for(left, ready, take)? {
                break status;
            }
            // A timer of the request's would not do: it runs in progress, which nobody makes while
            // a thread is in the handler.
            self.core.with(|state| {
                let is_over = state.wakes != wakes || deadline.is_some_and(|end| Instant::now() >= end);
                if is_over || state.in_handler == Some(this_thread()) {
                    state.expire(request);
                }
                Ok(())
            })?;
        };
        match status.code {
            Code::Success => Ok(status.source),
            Code::BadKey => Err(Error::BadKey),
            Code::Timeout => Err(Error::Timeout),
            Code::EndpointUnknown => Err(Error::NicNotFound),
            _ => Err(Error::ConnectionFailed),
        }
    }

    /// Closes the link to an endpoint. What waits for it, and what it has not received whole, ends
    /// with [`crate::Code::EndpointClosed`]. A later send or connect opens the link again.
    ///
    /// # Errors
    ///
    /// [`Error::BadEndpoint`].
    pub fn disconnect(&self, address: Address) -> Result<(), Error> {
        self.core.with(|state| {
            state.disconnect(self.core.endpoint(), address);
            Ok(())
        })
    }

    /// Makes progress, and returns how a request has ended, which is gone then; `None`: it has not.
    ///
    /// # Errors
    ///
    /// [`Error::BadRequest`], [`Error::BadEndpoint`], [`Error::NicDead`].
    #[inline]
    pub fn test(&self, request: Request) -> Result<Option<Status>, Error> {
        self.wait(request, Some(Duration::ZERO))
    }

    /// Waits for the end of a request, at most for `limit`, or until [`Endpoint::wake`].
    ///
    /// # Errors
    ///
    /// As [`Endpoint::test`].
    #[inline]
    pub fn wait(&self, request: Request, limit: Option<Duration>) -> Result<Option<Status>, Error> {
        self.core.wait_for(limit, |state| state.requests.find_ended(request), |state, found| Ok(state.consume(found?)))
    }

    /// As [`Endpoint::test`], of the oldest finished request that matches.
    ///
    /// # Errors
    ///
    /// [`Error::BadMask`], [`Error::BadContextMask`], [`Error::BadEndpoint`], [`Error::NicDead`].
    #[inline]
    pub fn test_any(&self, wanted: Match) -> Result<Option<Status>, Error> {
        self.wait_any(wanted, Some(Duration::ZERO))
    }

    /// As [`Endpoint::wait`], for a request that matches.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::test_any`].
    #[inline]
    pub fn wait_any(&self, wanted: Match, limit: Option<Duration>) -> Result<Option<Status>, Error> {
        self.core.context_bits.check(wanted)?;
        self.core.wait_for(limit, |state| state.requests.find_done(wanted), |state, found| Ok(state.consume(found)))
    }

    /// The oldest request that has ended, which stays; waits for one at most for `limit`.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::test_any`].
    pub fn peek(&self, limit: Option<Duration>) -> Result<Option<Request>, Error> {
        self.core.wait_for(limit, |state| state.requests.oldest(), |_, found| Ok(Some(found)))
    }

    /// The oldest unexpected message that matches, which stays; waits for one at most for `limit`.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::test_any`].
    pub fn probe(&self, wanted: Match, limit: Option<Duration>) -> Result<Option<Status>, Error> {
        self.core.context_bits.check(wanted)?;
        self.core.wait_for(limit, |state| state.probe(wanted), |_, found| Ok(Some(found)))
    }

    /// Whether the memory of a send is the program's again, though the request may not have ended;
    /// waits for that at most for `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::BadRequest`]: of no send; as [`Endpoint::test`].
    pub fn buffered(&self, request: Request, limit: Option<Duration>) -> Result<bool, Error> {
        let ready = |state: &mut State<B>| match state.is_buffered(request) {
            Ok(false) => None,
            other => Some(other),
        };
        Ok(self.core.wait_for(limit, ready, |_, found| found.map(Some))?.unwrap_or(false))
    }

    /// Takes back a receive, a send that has not left, or a connect: it is gone, without a status.
    /// False: the receive has matched, or the request has ended.
    ///
    /// # Errors
    ///
    /// [`Error::CancelNotSupported`]: of a send that has left; [`Error::BadRequest`].
    pub fn cancel(&self, request: Request) -> Result<bool, Error> {
        self.core.with(|state| state.cancel(self.core.endpoint(), request))
    }

    /// Lets a request end by itself: nobody will ask for it.
    ///
    /// # Errors
    ///
    /// [`Error::BadRequest`].
    #[inline]
    pub fn forget(&self, request: Request) -> Result<(), Error> {
        self.core.with(|state| state.forget(request))
    }

    /// The context of a request.
    ///
    /// # Errors
    ///
    /// [`Error::BadRequest`].
    pub fn context(&self, request: Request) -> Result<u64, Error> {
        self.core.with(|state| state.requests.named(request).map(|slot| slot.context))
    }

    /// Ends a request with [`crate::Code::Timeout`] after `limit`, in a call that makes progress;
    /// `None`: never. A receive that has matched ends by itself.
    ///
    /// # Errors
    ///
    /// [`Error::BadRequest`].
    pub fn set_timeout(&self, request: Request, limit: impl Into<Option<Duration>>) -> Result<(), Error> {
        let limit = limit.into();
        self.core.with(|state| state.set_timeout(request, limit))
    }

    /// Sets what is called for a message that no receive has matched; `None`: nothing. It is called
    /// without a lock, in a call that makes progress; the endpoint takes no other message until it
    /// returns.
    ///
    /// # Errors
    ///
    /// [`Error::BadEndpoint`].
    pub fn on_unexpected<F>(&self, handler: Option<F>) -> Result<(), Error>
    where
        F: Fn(&Unexpected<'_>) -> Answer + Send + Sync + 'static,
    {
        let new = handler.map(|handler| Box::new(handler) as _);
        // Dropped without the lock.
        let before = self.core.with(|state| {
            (state.has_handler, state.handler_number) = (new.is_some(), state.handler_number + 1);
            Ok(std::mem::replace(&mut state.handler, new))
        })?;
        drop(before);
        Ok(())
    }

    /// Makes progress, until nothing has come or the unexpected handler has taken a message.
    ///
    /// # Errors
    ///
    /// [`Error::BadEndpoint`], [`Error::NicDead`].
    pub fn progress(&self) -> Result<(), Error> {
        let state = self.core.lock();
        if state.is_closed {
            return Err(Error::BadEndpoint);
        }
        let handled = state.counts.handled;
        let state = self.core.progress(state, |state| state.counts.handled != handled);
        if state.has_failed { Err(Error::NicDead) } else { Ok(()) }
    }

    /// Ends all waits of the moment, without a result.
    ///
    /// # Errors
    ///
    /// [`Error::BadEndpoint`].
    pub fn wake(&self) -> Result<(), Error> {
        self.core.with(|state| {
            state.wakes += 1;
            state.requests.changes += 1;
            Ok(())
        })
    }

    /// The endpoint of CCI, for bindings. It does not outlive this value.
    #[must_use]
    pub fn inner(&self) -> &cci::Endpoint {
        self.core.endpoint()
    }

    /// Whether a thread is in the unexpected handler.
    #[must_use]
    pub fn is_handling(&self) -> bool {
        self.core.lock().in_handler.is_some()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.core.lock().counts
    }

    /// Requests that are not consumed, and unexpected messages that nobody has received.
    #[must_use]
    pub fn pending(&self) -> (usize, usize) {
        let state = self.core.lock();
        (state.requests.open, state.unexpected.len())
    }
}

impl<B: Buffer> Drop for Endpoint<B> {
    fn drop(&mut self) {
        // Closed already, or in a forked child.
        let _ = self.close();
    }
}
