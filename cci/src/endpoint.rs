//! Endpoints.

use crate::connection::Connection;
use crate::device::Device;
use crate::event::Event;
use crate::{raw, transports};
use cci_mem::guarded::Threading;
use cci_mem::memory::Memory;
use cci_proto::{
    Attribute, CONN_REQ_LEN, ConnectError, Flags, OptionError, PollError, RegisterError, RequestError, Rights,
    RmaError, RmaHandle, SendError, Status, Unusable,
};
use cci_transport::{Body, Connect, ConnectionReport, Core, CoreOptions, Message, OpenError, room_for};
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How an endpoint is opened.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// A name of the transport's own: a port for `sock` and `tcp`, "pid/id" for `sm`.
    pub service: Option<String>,
    /// Who may call it.
    pub threading: Threading,
    /// Raise an event when a peer disconnects or dies.
    pub disconnect_events: bool,
    /// Receive buffers, at most [`EndpointOptions::MAX_BUFFERS`]; options can lower it later.
    pub recv_buffers: u32,
    /// Send buffers, at most [`EndpointOptions::MAX_BUFFERS`]; options can lower it later.
    pub send_buffers: u32,
    /// Stamps of the time that each layer takes, of an endpoint that is measured; none for every other.
    #[cfg(feature = "trace")]
    pub stamps: Option<std::sync::Arc<cci_transport::trace::Stamps>>,
}

impl EndpointOptions {
    /// The largest number of receive buffers, and of send buffers, of an endpoint.
    pub const MAX_BUFFERS: u32 = 1 << 20;

    /// Refuses numbers of buffers that no endpoint can have.
    fn check(&self) -> Result<(), OpenError> {
        let most = Self::MAX_BUFFERS;
        for (name, count) in [("recv_buffers", self.recv_buffers), ("send_buffers", self.send_buffers)] {
            if count > most {
                let what = format!("{name} is {count}, and an endpoint has at most {most}; lower {name}");
                return Err(OpenError::new(Status::Inval, what));
            }
        }
        Ok(())
    }
}

impl Default for EndpointOptions {
    fn default() -> Self {
        let core = CoreOptions::default();
        Self {
            service: None,
            threading: Threading::Many,
            disconnect_events: false,
            recv_buffers: u32::try_from(core.recv_count).unwrap_or(u32::MAX),
            send_buffers: u32::try_from(core.send_count).unwrap_or(u32::MAX),
            #[cfg(feature = "trace")]
            stamps: None,
        }
    }
}

/// An RMA: which bytes go where.
#[derive(Clone, Copy, Debug)]
pub struct Rma<'a> {
    /// The local registration.
    pub local: &'a RmaHandle,
    /// Offset in the local registration, bytes.
    pub local_offset: u64,
    /// The peer's registration, as the peer sent it.
    pub remote: &'a RmaHandle,
    /// Offset in the peer's registration, bytes.
    pub remote_offset: u64,
    /// Bytes to copy; at least 1.
    pub len: u64,
    /// A message that the peer receives after the data.
    pub message: Option<&'a [u8]>,
}

/// Why an endpoint was not closed, or what is left after it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseError {
    /// It cannot be used here, and is not closed by this call.
    Unusable(Unusable),
    /// It is closed, but this peer is in the midst of an RMA and does not go on. Memory that was registered must stay mapped until
    /// [`wait_for_copies`] succeeds.
    Busy(String),
}

impl From<Unusable> for CloseError {
    fn from(why: Unusable) -> Self {
        Self::Unusable(why)
    }
}

impl std::fmt::Display for CloseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unusable(why) => why.fmt(f),
            Self::Busy(peer) => write!(
                f,
                "the endpoint is closed, but {peer} is in the midst of an RMA and does not go on; keep registered memory mapped \
                 until it goes on or ends"
            ),
        }
    }
}

impl std::error::Error for CloseError {}

/// Waits until no peer copies to or from memory that was registered with endpoints that are closed; at most `limit`.
///
/// # Errors
///
/// [`CloseError::Busy`]: a peer still copies.
pub fn wait_for_copies(limit: Duration) -> Result<(), CloseError> {
    cci_transport::wait_for_copies(limit).map_or(Ok(()), |peer| Err(CloseError::Busy(peer)))
}

/// An endpoint: all buffers and one queue of events, whatever the number of peers. Closed when dropped.
pub struct Endpoint {
    pub(crate) cell: &'static raw::EndpointCell,
    generation: u32,
    uri: String,
    /// Closed already, or somebody else's to close.
    closed: bool,
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
    /// The device is down, `options` asks for more buffers than there can be, the service is taken or malformed, or memory or descriptors are short.
    pub fn open(device: &Device, options: &EndpointOptions) -> Result<Self, OpenError> {
        if !device.up {
            return Err(OpenError::new(
                Status::NoDev,
                format!("the device {} is not usable: {}", device.name, device.reason),
            ));
        }
        options.check()?;
        room_for(TABLES)?;
        let core_options = CoreOptions {
            recv_count: options.recv_buffers.max(1) as usize,
            send_count: options.send_buffers.max(1) as usize,
            disconnect_events: options.disconnect_events,
            ..CoreOptions::default()
        };
        let private = counters_are_private()?;
        let mut failed = None;
        let mut uri = String::new();
        let cell = cci_transport::Endpoint::open(options.threading, |cell| {
            let body = Core::new(cell, &core_options).and_then(|mut core| {
                core.rights_are_open = transports::rights_are_open(device)?;
                let transport = transports::open(&core, device, options)?;
                transport.uri().clone_into(&mut uri);
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
        Ok(Self { cell, generation: cell.generation(), uri, closed: false })
    }

    /// What others connect to. Programs pass it on and never take it apart.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// A descriptor that is readable when [`Endpoint::get_event`] should be called: for `poll`, `select` and `epoll`,
    /// level- or edge-triggered. Spurious readiness is possible. It is a duplicate, closed by the caller.
    ///
    /// An edge-triggered program calls [`Endpoint::get_event`] until it returns `None`. Whatever comes after that gives a new
    /// edge, without another call; to a program that has polled without a pause, within 1 ms.
    ///
    /// # Errors
    ///
    /// No descriptor left, or the endpoint cannot be used here.
    pub fn handle(&self) -> Result<OwnedFd, OpenError> {
        let handle = self.cell.with(|core, transport| {
            core.handle_in_use = true;
            transport.handle().try_clone_to_owned()
        });
        handle
            .map_err(|why| OpenError::new(why.status(), why.to_string()))?
            .map_err(|source| OpenError::system("cannot duplicate the endpoint's handle", source))
    }

    /// Arms the handle now: ends the time in which the library expects the program to poll. Does nothing unless
    /// [`Endpoint::handle`] was called.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    pub fn arm(&self) -> Result<(), Unusable> {
        raw::arm(self.cell)
    }

    /// Asks the endpoint at `uri` for a connection. Never blocks; one CONNECT event with `context` tells the end.
    ///
    /// # Errors
    ///
    /// Refused at once: no event comes.
    pub fn connect(
        &self,
        uri: &str,
        payload: &[u8],
        attribute: Attribute,
        context: u64,
        timeout: Option<Duration>,
    ) -> Result<(), ConnectError> {
        if payload.len() > CONN_REQ_LEN {
            return Err(ConnectError::PayloadTooLong);
        }
        let connect = Connect { uri, payload, attribute, context, timeout };
        self.cell.with(|core, transport| transport.connect(core, &connect))?
    }

    /// Accepts the request in `event`. One ACCEPT event with `context` follows.
    ///
    /// # Errors
    ///
    /// Not an unanswered request.
    pub fn accept(&self, event: &Event<'_>, context: u64) -> Result<(), RequestError> {
        raw::accept_on(event.slot, self.cell, context)
    }

    /// Rejects the request in `event`.
    ///
    /// # Errors
    ///
    /// Not an unanswered request.
    pub fn reject(&self, event: &Event<'_>) -> Result<(), RequestError> {
        raw::reject(event.slot)
    }

    /// Closes a connection: local and immediate. Open operations end with `Failure::Disconnected`.
    ///
    /// # Errors
    ///
    /// Closed already.
    pub fn disconnect(&self, connection: Connection) -> Result<(), OptionError> {
        raw::disconnect(self.cell, || connection.live(self.cell))
    }

    /// Sends a message: BLOCKING, NO_COPY and SILENT may be set. The bytes are the caller's again on return.
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent. BLOCKING: or failed.
    #[inline]
    pub fn send(&self, connection: Connection, message: &[u8], context: u64, flags: Flags) -> Result<(), SendError> {
        let flags = Flags::for_send(flags.bits()).ok_or(SendError::BadFlags)?;
        raw::send(self.cell, || connection.live(self.cell), Message::One(message), context, flags)
    }

    /// Sends a message gathered from parts.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::send`].
    pub fn send_vectored(
        &self,
        connection: Connection,
        parts: &[IoSlice<'_>],
        context: u64,
        flags: Flags,
    ) -> Result<(), SendError> {
        let flags = Flags::for_send(flags.bits()).ok_or(SendError::BadFlags)?;
        let len = parts.iter().map(|part| part.len()).sum();
        raw::send(self.cell, || connection.live(self.cell), Message::Many(parts, len), context, flags)
    }

    /// The next event, or none now. Never blocks.
    ///
    /// # Errors
    ///
    /// Nothing to report and every receive buffer is held by the program.
    #[inline]
    pub fn get_event(&self) -> Result<Option<Event<'_>>, PollError> {
        Ok(self.cell.next_event()?.map(Event::new))
    }

    /// Registers memory for RMA; `rights` are those of peers.
    ///
    /// # Errors
    ///
    /// Null or empty range, or no room for another registration.
    pub fn register(&self, memory: Memory, rights: Rights) -> Result<RmaHandle, RegisterError> {
        raw::register(self.cell, memory, rights)
    }

    /// Ends a registration. When it returns without error nobody touches the memory any more.
    ///
    /// # Errors
    ///
    /// No such registration, or a stopped peer holds it.
    pub fn deregister(&self, handle: &RmaHandle) -> Result<(), RegisterError> {
        self.cell.with(|core, transport| transport.deregister(core, handle))?
    }

    /// Starts an RMA: exactly one of READ and WRITE, and BLOCKING, SILENT, FENCE as wanted.
    ///
    /// # Errors
    ///
    /// Refused: nothing was copied. BLOCKING: or failed.
    pub fn rma(&self, connection: Connection, rma: &Rma<'_>, context: u64, flags: Flags) -> Result<(), RmaError> {
        let flags = Flags::for_rma(flags.bits()).ok_or(RmaError::BadFlags)?;
        let rma = cci_transport::Rma {
            local: rma.local,
            local_offset: rma.local_offset,
            remote: rma.remote,
            remote_offset: rma.remote_offset,
            len: rma.len,
            read: flags.has(Flags::READ),
            fence: flags.has(Flags::FENCE),
            message: rma.message,
        };
        raw::rma(self.cell, || connection.live(self.cell), &rma, context, flags)
    }

    /// Path, window, counters of a connection, and why this path.
    ///
    /// # Errors
    ///
    /// The connection is closed, or the endpoint cannot be used here.
    pub fn report(&self, connection: Connection) -> Result<ConnectionReport, OptionError> {
        self.cell.with(|core, transport| {
            let cell = connection.live(self.cell).ok_or(OptionError::Disconnected)?;
            Ok(transport.report(core, cell))
        })?
    }

    /// The cell in its slab, for a binding.
    #[must_use]
    pub fn cell(&self) -> &'static raw::EndpointCell {
        self.cell
    }

    /// Closes the endpoint, waiting at most 100 ms for what is published.
    ///
    /// # Errors
    ///
    /// It cannot be used here. [`CloseError::Busy`]: closed, but a peer still copies.
    pub fn close(mut self) -> Result<(), CloseError> {
        let result = self.shut();
        self.closed = true;
        result
    }

    /// Leaves the endpoint open without this handle, for a binding that closes it by [`raw::close`].
    #[must_use]
    pub fn into_cell(mut self) -> &'static raw::EndpointCell {
        self.closed = true;
        self.cell
    }

    fn shut(&self) -> Result<(), CloseError> {
        if self.cell.generation() == self.generation { raw::close(self.cell) } else { Err(Unusable::Closed.into()) }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // In a forked child nothing may be touched.
        if !self.closed {
            let _ = raw::close_for_owner(self.cell, self.generation);
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Endpoint({})", self.uri)
    }
}
