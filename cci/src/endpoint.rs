//! Endpoints: opened, waited for, closed, and what is asked of them.

use crate::binding;
use crate::connection::Connection;
use crate::device::Device;
pub(crate) use crate::endpoint_options::EndpointOptions;
use crate::errors::BlockingError;
use crate::event::Event;
use crate::import::Import;
use crate::operations::{Connect, Notify, Rma};
use crate::registration::{Region, Registration};
use crate::reserved::Reserved;
use crate::transports;
use cci_mem::guarded::Threading;
use cci_mem::memory::Memory;
use cci_proto::{
    Access, Atomic, ConnectError, Flags, ImportError, OptionError, PollError, RegisterError, Rights, RmaError,
    RmaHandle, SendError, Status, Unusable,
};
use cci_transport::{Body, ConnectionReport, Core, CoreOptions, OpenError, room_for};
use std::fmt;
use std::io::IoSlice;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

/// Why an endpoint was not closed, or what is left after it was.
///
/// # Example
///
/// ```
/// use cci::{CloseError, Endpoint};
/// use std::time::Duration;
///
/// /// Closes an endpoint whose registered memory is unmapped next.
/// fn close(endpoint: Endpoint) -> Result<(), CloseError> {
///     match endpoint.close() {
///         Err(CloseError::Busy(_)) => cci::wait_for_copies(Duration::from_secs(10)),
///         closed => closed,
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseError {
    /// It cannot be used here, and is not closed by this call.
    Unusable(Unusable),
    /// It is closed, but this peer is in the midst of an RMA and does not go on. Memory that was registered by its address must stay
    /// mapped until [`wait_for_copies`] succeeds; the library keeps memory that a [`Registration`] owns.
    Busy(String),
    /// So many detached events keep it open. It closes when the last of them is dropped.
    Detached(u32),
}

impl From<Unusable> for CloseError {
    fn from(why: Unusable) -> Self {
        Self::Unusable(why)
    }
}

impl fmt::Display for CloseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => why.fmt(f),
            Self::Busy(peer) => write!(
                f,
                "the endpoint is closed, but {peer} is in the midst of an RMA and does not go on; keep registered memory mapped \
                 until it goes on or ends"
            ),
            Self::Detached(count) => {
                write!(f, "{count} detached events keep the endpoint open; drop them to close it")
            }
        }
    }
}

impl std::error::Error for CloseError {}

/// Waits until no peer copies to or from memory that was registered with endpoints that are closed; at most `limit`.
///
/// # Errors
///
/// [`CloseError::Busy`]: a peer still copies.
///
/// # Example
///
/// ```
/// assert_eq!(cci::wait_for_copies(std::time::Duration::ZERO), Ok(()));
/// ```
pub fn wait_for_copies(limit: Duration) -> Result<(), CloseError> {
    cci_transport::wait_for_copies(limit).map_or(Ok(()), |peer| Err(CloseError::Busy(peer)))
}

/// The mark of an endpoint that any thread may use: see [`Endpoint`].
///
/// # Example
///
/// ```
/// use cci::{Endpoint, EndpointFor, ManyThreads};
///
/// fn same(endpoint: EndpointFor<ManyThreads>) -> Endpoint {
///     endpoint
/// }
/// ```
#[derive(Debug)]
pub enum ManyThreads {}

/// The mark of an endpoint that stays on the thread that opened it: see [`LocalEndpoint`].
///
/// # Example
///
/// ```
/// use cci::{EndpointFor, LocalEndpoint, OneThread};
///
/// fn same(endpoint: EndpointFor<OneThread>) -> LocalEndpoint {
///     endpoint
/// }
/// ```
#[derive(Debug)]
pub struct OneThread(PhantomData<*mut ()>);

/// An endpoint for any number of threads, one lock per call: [`EndpointFor`] has its methods.
///
/// # Example
///
/// ```
/// use cci::{Connect, Context, Endpoint, EndpointOptions, Event};
///
/// let device = Context::new()?.default_device()?.clone();
/// let (server, client) = (Endpoint::open(&device, &EndpointOptions::new())?, Endpoint::open(&device, &EndpointOptions::new())?);
/// client.connect(&Connect::to(server.uri()))?;
/// // One thread for each end; two threads could share one end as well.
/// let connected = std::thread::spawn(move || client.wait(None).map(|event| matches!(event, Some(Event::Connected(_)))));
/// while let Some(event) = server.wait(None)? {
///     match event {
///         Event::Request(request) => request.accept(1)?,
///         _ => break,
///     }
/// }
/// assert_eq!(connected.join().ok(), Some(Ok(true)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Endpoint = EndpointFor<ManyThreads>;

/// An endpoint for the thread that opens it: it is not [`Send`], and its calls take no lock.
///
/// # Example
///
/// ```
/// use cci::{Context, EndpointOptions, LocalEndpoint};
///
/// let endpoint = LocalEndpoint::open(Context::new()?.default_device()?, &EndpointOptions::new())?;
/// assert!(endpoint.get_event()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It stays on its thread:
///
/// ```compile_fail,E0277
/// # use cci::{Context, EndpointOptions, LocalEndpoint};
/// # let endpoint = LocalEndpoint::open(Context::new()?.default_device()?, &EndpointOptions::new())?;
/// std::thread::spawn(move || endpoint.get_event().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type LocalEndpoint = EndpointFor<OneThread>;

/// An endpoint: all buffers and one queue of events, whatever the number of peers. [`Endpoint`] and [`LocalEndpoint`] say for which
/// threads.
///
/// Calls that get events make progress; calls that wait do so too. No other thread works for an endpoint, but for one of `sock`
/// whose program makes no calls. The endpoint closes when it is dropped, which waits at most 100 ms for what was sent. Events borrow
/// it; [`Event::detach`] makes one that does not.
///
/// # Example
///
/// ```
/// use cci::{EndpointFor, PollError};
///
/// /// Takes and drops all events that there are, of an endpoint for any threads.
/// fn drain<T>(endpoint: &EndpointFor<T>) -> Result<usize, PollError> {
///     let mut count = 0;
///     while let Some(event) = endpoint.get_event()? {
///         drop(event);
///         count += 1;
///     }
///     Ok(count)
/// }
/// ```
pub struct EndpointFor<T> {
    pub(crate) cell: &'static binding::EndpointCell,
    generation: u32,
    uri: String,
    /// The transport's handle: open as long as the endpoint.
    handle: RawFd,
    /// Closed already, or somebody else's to close.
    closed: bool,
    threads: PhantomData<T>,
}

/// More than all small tables of an endpoint take, bytes, with what the allocator takes at a time. Large ones are asked for
/// where they are made.
const TABLES: usize = 4 << 20;

/// Whether the user does not want the counters published: a filter of system calls might kill.
fn counters_are_private() -> Result<bool, OpenError> {
    match std::env::var_os("CCI_COUNTERS").filter(|value| !value.is_empty()) {
        None => Ok(false),
        Some(value) if value == "private" => Ok(true),
        Some(value) => Err(OpenError::new(
            Status::Inval,
            format!("CCI_COUNTERS: '{}' is not a value; the only one is 'private'", value.display()),
        )),
    }
}

impl Endpoint {
    /// Opens an endpoint on a device.
    ///
    /// # Errors
    ///
    /// The device is down, `options` asks for more buffers than there can be, the service is taken or malformed, or memory or
    /// descriptors are short.
    pub fn open(device: &Device, options: &EndpointOptions) -> Result<Self, OpenError> {
        Self::open_for(device, options, options.threading)
    }
}

impl LocalEndpoint {
    /// Opens an endpoint on a device, for this thread.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::open`].
    pub fn open(device: &Device, options: &EndpointOptions) -> Result<Self, OpenError> {
        Self::open_for(device, options, Threading::One)
    }
}

impl<T> EndpointFor<T> {
    pub(crate) fn open_for(
        device: &Device,
        options: &EndpointOptions,
        threading: Threading,
    ) -> Result<Self, OpenError> {
        if !device.up {
            return Err(OpenError::new(
                Status::NoDev,
                format!("the device {} is not usable: {}", device.name, device.reason),
            ));
        }
        options.check()?;
        room_for(TABLES)?;
        let options = EndpointOptions { threading, ..options.clone() };
        let core_options = CoreOptions {
            recv_count: options.recv_buffers.max(1) as usize,
            send_count: options.send_buffers.max(1) as usize,
            disconnect_events: options.disconnect_events,
            ..CoreOptions::default()
        };
        let private = counters_are_private()?;
        let mut failed = None;
        let (mut uri, mut handle) = (String::new(), -1);
        let cell = cci_transport::Endpoint::open(threading, |cell| {
            let body = Core::new(cell, &core_options).and_then(|mut core| {
                core.set_rights_open(transports::rights_are_open(device)?);
                let transport = transports::open(&core, device, &options)?;
                transport.uri().clone_into(&mut uri);
                handle = transport.handle().as_raw_fd();
                if !private {
                    core.publish_counters(&device.transport, &uri);
                }
                Ok(Body { core, transport })
            });
            body.map_err(|error| failed = Some(error)).ok()
        })
        .map_err(|source| OpenError::system("no memory for an endpoint", source))?;
        if let Some(error) = failed {
            cell.recycle();
            return Err(error);
        }
        Ok(Self { cell, generation: cell.generation(), uri, handle, closed: false, threads: PhantomData })
    }

    /// Returns what others connect to. Programs pass it on and never take it apart.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Duplicates the descriptor of [`AsFd::as_fd`], for an event loop that owns its descriptors. The caller closes it.
    ///
    /// # Errors
    ///
    /// No descriptor left, or the endpoint cannot be used here.
    pub fn handle(&self) -> Result<OwnedFd, OpenError> {
        binding::handle(self.cell).map_err(|why| OpenError::new(why.status(), why.to_string()))?;
        let handle = self.as_fd().try_clone_to_owned();
        handle.map_err(|source| OpenError::system("cannot duplicate the endpoint's handle", source))
    }

    /// Arms the handle now: ends the time in which the library expects the program to poll. Does nothing unless the handle was
    /// asked for.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn arm(&self) -> Result<(), Unusable> {
        binding::arm(self.cell)
    }

    /// Returns the next event, or `None` now. Makes progress and never blocks.
    ///
    /// # Errors
    ///
    /// Nothing to report and the program holds every receive buffer, or the endpoint cannot be used here.
    #[inline]
    pub fn get_event(&self) -> Result<Option<Event<'_>>, PollError> {
        Ok(self.cell.next_event()?.map(Event::of))
    }

    /// Asks the endpoint at the URI for a connection. Never blocks; one event, [`Event::Connected`] or [`Event::ConnectFailed`],
    /// reports the end.
    ///
    /// # Errors
    ///
    /// Refused at once: no event comes.
    pub fn connect(&self, connect: &Connect<'_>) -> Result<(), ConnectError> {
        binding::connect(self.cell, &connect.0)
    }

    /// Closes a connection: local and immediate. Open operations end with [`cci_proto::Failure::Disconnected`].
    ///
    /// # Errors
    ///
    /// Closed already.
    pub fn disconnect(&self, connection: Connection) -> Result<(), OptionError> {
        binding::disconnect(self.cell, || connection.live(self.cell))
    }

    /// Sends a message of at most [`Connection::max_send_size`] bytes. The bytes are the caller's again on return. Never blocks; the
    /// end is reported as `notify` says: by [`Event::Completed`], after the peer's program or library has taken the message over
    /// (reliable connections), or once it has left (unreliable ones).
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent, and no event comes.
    #[inline]
    pub fn send(&self, connection: Connection, message: &[u8], notify: impl Into<Notify>) -> Result<(), SendError> {
        let (context, flags) = notify.into().parts();
        binding::send(self.cell, || connection.live(self.cell), message.into(), context, flags)
    }

    /// Sends a message that answers another one, as [`EndpointFor::send`], with the buffers that
    /// [`EndpointFor::set_answer_buffers`] has set aside. While fewer answers than that are open it is not refused for lack of buffers,
    /// whatever else the program sends; on `sock` and `sim` this holds for answers of up to one frame ([`ConnectionReport::mtu`]). So a
    /// handler of requests ([`EndpointFor::poll`]) need not wait for room, if no more requests than that are under way.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::send`].
    ///
    /// # Example
    ///
    /// ```
    /// # fn serve(endpoint: &cci::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// use cci::{Event, Notify};
    ///
    /// endpoint.poll(16, |event| {
    ///     if let Event::Received(request) = event
    ///         && let Some(client) = request.connection()
    ///     {
    ///         let answered = endpoint.answer(client, b"done", Notify::OnFailure(0));
    ///         answered.unwrap_or_else(|why| eprintln!("a client gets no answer: {why}"));
    ///     }
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn answer(&self, connection: Connection, message: &[u8], notify: impl Into<Notify>) -> Result<(), SendError> {
        let (context, flags) = notify.into().parts();
        binding::send_answer(self.cell, || connection.live(self.cell), message.into(), context, flags)
    }

    /// Gives room for a message of at most `len` bytes, to be written in place and then [sent](Reserved::send). On `sm` a message of
    /// more than 56 bytes is written where its receiver reads it, as long as the lane has slots to spare; any other is written into
    /// memory of this endpoint, and copied when it is sent, as by [`EndpointFor::send`]: on `sock` and `sim` because messages share
    /// frames.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::send`]: the message would be too long, the connection is not open, or the program has as many rooms as send
    /// buffers.
    pub fn reserve(&self, connection: Connection, len: usize) -> Result<Reserved<'_, T>, SendError> {
        Reserved::new(self, connection, len)
    }

    /// Sends this memory as one message of any length below 4 GiB - 1. Up to [`Connection::max_send_size`] it goes as any other, and is
    /// the caller's again on return. A longer one is not copied here: the peer is asked for memory ([`EndpointFor::set_large_limit`])
    /// and its library written to, at whatever pace it has room; the memory must not change until the end is reported, or the peer may
    /// see the change. On an ordered connection it takes its place among the messages: what is sent after it arrives after it, and
    /// waits for it.
    ///
    /// The end is that of [`EndpointFor::send`]; [`cci_proto::Failure::TooLong`]: the peer does not allow messages of this length, and
    /// the connection lives on.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::send`]. Too long also: a connection that is not reliable takes messages of its maximum only.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci::{Connection, Endpoint, SendError};
    /// use cci::{HeapBytes, Memory};
    /// use std::sync::Arc;
    ///
    /// /// Sends a file's contents as one message; the library keeps them until they have arrived.
    /// fn publish(endpoint: &Endpoint, peer: Connection, contents: Vec<u8>) -> Result<(), SendError> {
    ///     endpoint.send_large(peer, &Memory::of_bytes(&Arc::new(HeapBytes::new(contents))), 1)
    /// }
    /// ```
    pub fn send_large(
        &self,
        connection: Connection,
        memory: &Memory,
        notify: impl Into<Notify>,
    ) -> Result<(), SendError> {
        let (context, flags) = notify.into().parts();
        binding::send_large(self.cell, || connection.live(self.cell), memory, context, flags)
    }

    /// As [`EndpointFor::send_large`], and waits for the end. Makes progress meanwhile, and leaves events to their program.
    ///
    /// # Errors
    ///
    /// Refused, or failed later: [`BlockingError`] tells which.
    pub fn send_large_blocking(&self, connection: Connection, memory: &Memory) -> Result<(), BlockingError<SendError>> {
        binding::send_large_blocking(self.cell, || connection.live(self.cell), memory, Flags::NONE)
    }

    /// Sends a message gathered from parts, as [`EndpointFor::send`].
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::send`].
    pub fn send_vectored(
        &self,
        connection: Connection,
        parts: &[IoSlice<'_>],
        notify: impl Into<Notify>,
    ) -> Result<(), SendError> {
        let (context, flags) = notify.into().parts();
        binding::send(self.cell, || connection.live(self.cell), parts.into(), context, flags)
    }

    /// Sends a message and waits for its end. Makes progress meanwhile, and leaves events to their program.
    ///
    /// # Errors
    ///
    /// Refused, or failed later: [`BlockingError`] tells which.
    pub fn send_blocking(&self, connection: Connection, message: &[u8]) -> Result<(), BlockingError<SendError>> {
        let live = || connection.live(self.cell);
        binding::send_blocking(self.cell, live, message.into(), Flags::NONE)
    }

    /// Reads from the peer's memory into memory of this endpoint. Never blocks; the end is reported as `notify` says.
    ///
    /// # Errors
    ///
    /// Refused: nothing was copied, and no event comes.
    pub fn read(&self, connection: Connection, rma: &Rma<'_>, notify: impl Into<Notify>) -> Result<(), RmaError> {
        let (context, flags) = notify.into().parts();
        binding::rma(self.cell, || connection.live(self.cell), &rma.with(Access::Read), context, flags)
    }

    /// Writes from memory of this endpoint into the peer's memory. Never blocks; the end is reported as `notify` says.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::read`].
    pub fn write(&self, connection: Connection, rma: &Rma<'_>, notify: impl Into<Notify>) -> Result<(), RmaError> {
        let (context, flags) = notify.into().parts();
        binding::rma(self.cell, || connection.live(self.cell), &rma.with(Access::Write), context, flags)
    }

    /// Changes one word of the peer's memory, and brings its old value: the `rma` names the peer's word, of 4 or 8 bytes, and where
    /// in local memory the old value goes. Never blocks; the end is reported as `notify` says. The peer has given both rights, and
    /// its word is aligned to its length; otherwise the operation ends with [`cci_proto::Failure::RemoteHandle`], and nothing is
    /// changed. After any other failure the word may have been changed, once. (An `Arc<[AtomicU64]>` is aligned, and so is
    /// [`crate::SharedMemory`]; a `Vec<u8>` is as the allocator happens to make it.)
    ///
    /// It happens exactly once, also where frames are lost, and is one operation of the processor that owns the memory: all that use
    /// the word by such operations, by whatever connection or transport, or in the peer's own program, see one order of changes.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::read`]; or the length is neither 4 nor 8.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci::{Connection, Endpoint, RmaError, RmaHandle};
    /// use cci::{Atomic, Registration, Rma};
    ///
    /// /// Takes a ticket from a counter of the peer; the event with context 1 says that it has come to `ticket`.
    /// fn take(
    ///     endpoint: &Endpoint,
    ///     peer: Connection,
    ///     counter: &RmaHandle,
    ///     ticket: &Registration<Vec<u8>>,
    /// ) -> Result<(), RmaError> {
    ///     endpoint.atomic(peer, &Rma::new(ticket.handle(), counter, 8), Atomic::FetchAdd(1), 1)
    /// }
    /// ```
    pub fn atomic(
        &self,
        connection: Connection,
        rma: &Rma<'_>,
        atomic: Atomic,
        notify: impl Into<Notify>,
    ) -> Result<(), RmaError> {
        let (context, flags) = notify.into().parts();
        binding::rma(self.cell, || connection.live(self.cell), &rma.with(Access::Atomic(atomic)), context, flags)
    }

    /// Changes a word as [`EndpointFor::atomic`], and waits for the end.
    ///
    /// # Errors
    ///
    /// Refused, or failed later: [`BlockingError`] tells which.
    pub fn atomic_blocking(
        &self,
        connection: Connection,
        rma: &Rma<'_>,
        atomic: Atomic,
    ) -> Result<(), BlockingError<RmaError>> {
        binding::rma_blocking(self.cell, || connection.live(self.cell), &rma.with(Access::Atomic(atomic)))
    }

    /// Reads as [`EndpointFor::read`], and waits for the end.
    ///
    /// # Errors
    ///
    /// Refused, or failed later: [`BlockingError`] tells which.
    pub fn read_blocking(&self, connection: Connection, rma: &Rma<'_>) -> Result<(), BlockingError<RmaError>> {
        binding::rma_blocking(self.cell, || connection.live(self.cell), &rma.with(Access::Read))
    }

    /// Writes as [`EndpointFor::write`], and waits for the end.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::read_blocking`].
    pub fn write_blocking(&self, connection: Connection, rma: &Rma<'_>) -> Result<(), BlockingError<RmaError>> {
        binding::rma_blocking(self.cell, || connection.live(self.cell), &rma.with(Access::Write))
    }

    /// Registers memory for RMA, and takes it over; `rights` are those of peers. This side may always use it.
    ///
    /// # Errors
    ///
    /// Empty memory, or no room for another registration; the memory is dropped.
    pub fn register<M: Region>(&self, memory: M, rights: Rights) -> Result<Registration<M>, RegisterError> {
        Registration::new(self.cell, self.generation, memory, rights, binding::ALL)
    }

    /// Registers memory as [`EndpointFor::register`], for RMA of one connection alone: its peer's, and this side's. Any other
    /// operation with the handle fails as one with an unknown handle, and touches nothing. When the connection ends, so does all
    /// use of the memory, and the registration is still to be dropped or deregistered.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::register`]; or the connection is not open, or not reliable.
    pub fn register_for<M: Region>(
        &self,
        connection: Connection,
        memory: M,
        rights: Rights,
    ) -> Result<Registration<M>, RegisterError> {
        let served = binding::Served::One(|| connection.live(self.cell));
        Registration::new(self.cell, self.generation, memory, rights, served)
    }

    /// Maps memory that the peer of a connection has registered with the right to read, as a whole: on `sm`, memory that the library
    /// has allocated ([`crate::SharedMemory`]). `handle` is the peer's.
    ///
    /// # Errors
    ///
    /// The transport maps none, or not this; the handle is unknown, stale, not for this connection or without the right; or the
    /// connection is not open.
    pub fn import(&self, connection: Connection, handle: &RmaHandle) -> Result<Import, ImportError> {
        binding::import(self.cell, || connection.live(self.cell), handle).map(Import::new)
    }

    /// Returns path, window and counters of a connection, and why this path.
    ///
    /// # Errors
    ///
    /// The connection is closed, or the endpoint cannot be used here.
    pub fn report(&self, connection: Connection) -> Result<ConnectionReport, OptionError> {
        binding::report(self.cell, || connection.live(self.cell))
    }

    /// Closes the endpoint, waiting at most 100 ms for what was sent.
    ///
    /// # Errors
    ///
    /// It cannot be used here. [`CloseError::Busy`]: closed, but a peer still copies. [`CloseError::Detached`]: closed later.
    pub fn close(mut self) -> Result<(), CloseError> {
        self.closed = true;
        if self.cell.generation() != self.generation {
            return Err(Unusable::Closed.into());
        }
        match self.cell.let_go() {
            0 => self.shut(),
            count => Err(CloseError::Detached(count)),
        }
    }

    #[expect(unsafe_code, reason = "the memory of payloads ends with the endpoint")]
    fn shut(&self) -> Result<(), CloseError> {
        // SAFETY: events borrow the endpoint, which is in its owner's last call; those that do not have all let go of it.
        unsafe { binding::close(self.cell) }
    }

    /// Leaves the endpoint open without this owner.
    pub(crate) fn leave_open(mut self) -> &'static binding::EndpointCell {
        self.closed = true;
        self.cell
    }

    /// Its cell.
    pub(crate) fn cell(&self) -> &'static binding::EndpointCell {
        self.cell
    }

    /// Which life of its cell this is.
    pub(crate) fn life(&self) -> u32 {
        self.generation
    }

    #[expect(unsafe_code, reason = "the transport owns the descriptor")]
    fn borrow_handle(&self) -> BorrowedFd<'_> {
        // SAFETY: the transport keeps its handle open until the endpoint closes, which is not before this borrow ends. The handle is
        // an epoll descriptor or an eventfd, which a forked child keeps.
        unsafe { BorrowedFd::borrow_raw(self.handle) }
    }
}

impl<T> AsFd for EndpointFor<T> {
    /// A descriptor that is readable when [`EndpointFor::get_event`] should be called: for `poll`, `select` and `epoll`, level- or
    /// edge-triggered. Spurious readiness is possible.
    ///
    /// An edge-triggered program calls [`EndpointFor::get_event`] until it returns `None`. Whatever comes after that gives a new
    /// edge, without another call; to a program that has polled without a pause, within 1 ms; to one
    /// that has waited level-triggered, the first one within 16 ms.
    ///
    /// From the first call on the endpoint arms the descriptor when its program stops polling, which costs system calls.
    ///
    /// In a forked child the descriptor is the one that the child inherited: open, and readable as the parent's is. It says nothing
    /// about the child, where each call on the endpoint is refused ([`Unusable::Forked`]). [`EndpointFor::handle`] is refused there.
    fn as_fd(&self) -> BorrowedFd<'_> {
        // Refused in a forked child, where nothing arms, and which has the descriptor all the same: the handler of `fork` closes
        // sockets only, and no call in the child closes an endpoint of the parent.
        let _ = binding::handle(self.cell);
        self.borrow_handle()
    }
}

impl<T> Drop for EndpointFor<T> {
    fn drop(&mut self) {
        if !self.closed && self.cell.generation() == self.generation {
            let_go(self.cell, self.generation);
        }
    }
}

/// One holder of this life of an endpoint less; the last one closes it, whatever thread it belongs to. In a forked child nothing is
/// touched.
#[expect(unsafe_code, reason = "the memory of payloads ends with the endpoint")]
pub(crate) fn let_go(cell: &'static binding::EndpointCell, life: u32) {
    if cell.let_go() == 0 {
        // SAFETY: events borrow the endpoint or hold it, and the last holder has let go.
        let _ = unsafe { binding::close_for_owner(cell, life) };
    }
}

impl<T> fmt::Debug for EndpointFor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.uri)
    }
}
