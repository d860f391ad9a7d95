//! Endpoints: opened, waited for, closed.

use crate::binding;
use crate::device::Device;
use crate::endpoint_options::EndpointOptions;
use crate::errors::CloseError;
use crate::names::SharedNames;
use crate::transports::of_device;
use cci_mem::descriptors;
use cci_mem::guarded::Threading;
use cci_proto::{Status, Unusable};
use cci_transport::{Body, Core, CoreOptions, OpenError, room_for};
use std::fmt;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

/// Waits until no peer copies to or from memory that was registered with endpoints that are closed;
/// at most `limit`.
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

/// An endpoint: all buffers and one queue of events, whatever the number of peers. [`Endpoint`] and
/// [`LocalEndpoint`] say for which threads.
///
/// Calls that get events make progress; calls that wait do so too. No other thread works for an
/// endpoint, but for one of `sock` or `tcp` whose program makes no calls. The endpoint closes when
/// it is dropped, which waits at most 100 ms for what was sent. Events borrow it;
/// [`crate::Event::detach`] makes one that does not.
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
    pub(crate) names: SharedNames,
    /// The transport's handle: open as long as the endpoint.
    handle: RawFd,
    /// Closed already, or somebody else's to close.
    closed: bool,
    threads: PhantomData<T>,
}

/// More than all small tables of an endpoint take, bytes, with what the allocator takes at a time.
/// Large ones are asked for where they are made.
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
    /// The device is down, `options` asks for more buffers than there can be, the service is taken
    /// or malformed, or memory or descriptors are short.
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
        cci_transport::log_span!(_span, "open", device = %device.name, transport = %device.transport);
        if !device.up {
            return Err(OpenError::new(
                Status::NoDev,
                format!("the device {} is not usable: {}", device.name, device.reason),
            ));
        }
        let options = EndpointOptions { threading, ..options.clone() };
        options.check()?;
        room_for(TABLES)?;
        let core_options = CoreOptions {
            recv_count: options.recv_buffers.max(1) as usize,
            send_count: options.send_buffers.max(1) as usize,
            disconnect_events: options.disconnect_events,
            present: options.present,
            patient: options.patient,
            ways: of_device::ways(device, options.service.as_deref()),
            ..CoreOptions::default()
        };
        let private = counters_are_private()?;
        let mut failed = None;
        let (mut uri, mut handle) = (String::new(), -1);
        let cell = cci_transport::Endpoint::open(threading, |cell| {
            let body = Core::new(cell, &core_options).and_then(|mut core| {
                core.set_rights_open(of_device::rights_are_open(device)?);
                let transport = of_device::open(&core, device, &options)?;
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
        let names = device.names.clone();
        cci_transport::log_event!(info, uri = %uri, "endpoint opened");
        Ok(Self { cell, generation: cell.generation(), uri, names, handle, closed: false, threads: PhantomData })
    }

    /// Returns what others connect to. Programs pass it on and never take it apart.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Duplicates the descriptor of [`AsFd::as_fd`], for an event loop that owns its descriptors.
    /// The caller closes it.
    ///
    /// # Errors
    ///
    /// No descriptor left, or the endpoint cannot be used here.
    pub fn handle(&self) -> Result<OwnedFd, OpenError> {
        binding::handle(self.cell).map_err(|why| OpenError::new(why.status(), why.to_string()))?;
        let handle = descriptors::duplicate(self);
        handle.map_err(|source| OpenError::system("cannot duplicate the endpoint's handle", source))
    }

    /// Arms the handle now: ends the time in which the library expects the program to poll. Does
    /// nothing unless the handle was asked for.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn arm(&self) -> Result<(), Unusable> {
        binding::arm(self.cell)
    }

    /// Closes the endpoint, waiting at most 100 ms for what was sent.
    ///
    /// # Errors
    ///
    /// It cannot be used here. [`CloseError::Busy`]: closed, but a peer still copies.
    /// [`CloseError::Detached`]: closed later.
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
        // SAFETY: events borrow the endpoint, which is in its owner's last call; those that do not
        // have all let go of it.
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
    pub(crate) fn borrow_handle(&self) -> BorrowedFd<'_> {
        // SAFETY: the transport keeps its handle open until the endpoint closes, which is not
        // before this borrow ends. The handle is an epoll descriptor or an eventfd, which a forked
        // child keeps.
        unsafe { BorrowedFd::borrow_raw(self.handle) }
    }
}

impl<T> AsFd for EndpointFor<T> {
    /// A descriptor that is readable when [`EndpointFor::get_event`] should be called: for `poll`,
    /// `select` and `epoll`, level- or edge-triggered. Spurious readiness is possible.
    ///
    /// An edge-triggered program calls [`EndpointFor::get_event`] until it returns `None`. Whatever
    /// comes after that gives a new edge, without another call; to a program that has polled
    /// without a pause, within 1 ms; to one that has waited level-triggered, the first one within
    /// 16 ms.
    ///
    /// From the first call on the endpoint arms the descriptor when its program stops polling,
    /// which costs system calls.
    ///
    /// In a forked child the descriptor is the one that the child inherited: open, and readable as
    /// the parent's is. It says nothing about the child, where each call on the endpoint is refused
    /// ([`Unusable::Forked`]). [`EndpointFor::handle`] is refused there.
    fn as_fd(&self) -> BorrowedFd<'_> {
        // Refused in a forked child, where nothing arms, and which has the descriptor all the same:
        // the handler of `fork` closes sockets only, and no call in the child closes an endpoint of
        // the parent.
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

/// One holder of this life of an endpoint less; the last one closes it, whatever thread it belongs
/// to. In a forked child nothing is touched.
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
