//! How the measuring loops call the library: the facade here, the C functions in `probe::c_library`, through one trait that
//! the compiler resolves, so that nothing stands between a loop and the library.

use super::environment::Path;
use super::plan::{Mode, Plan, Session, Threads};
use super::{UserError, ports, virtual_time, while_doing};
use crate::probe;
use crate::reach::no_transport;
use cci::trace::Stamps;
use cci::{
    Attribute, Connection, ConnectionOption, Context, Device, Endpoint, EndpointOptions, Event, EventKind, Failure,
    Flags, Memory, PollError, Rights, RmaError, RmaHandle, SendError, Status, Threading,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What one call of get_event showed; the event has been given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    /// An operation has ended well.
    Sent,
    /// A message of so many bytes.
    Received(usize),
    /// Something that measuring loops do not wait for.
    Other,
}

impl Seen {
    /// What an event of this kind shows, by its status or length.
    #[inline(always)]
    pub(crate) fn of(kind: EventKind, detail: u32) -> Result<Self, Trouble> {
        match kind {
            EventKind::Recv => Ok(Self::Received(detail as usize)),
            EventKind::Send if detail == Status::Success as u32 => Ok(Self::Sent),
            EventKind::Send => Err(Trouble::of(Status::from_u32(detail).unwrap_or(Status::Error))),
            EventKind::Disconnect | EventKind::KeepaliveTimedOut => Err(Trouble::PeerGone),
            _ => Ok(Self::Other),
        }
    }
}

/// What one call showed, in full: for everything but measuring loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening<C> {
    Nothing,
    Sent,
    /// A message, whose bytes lie in the caller's buffer.
    Received(C),
    /// A connection with this context is open: ours, or one that was accepted.
    Open(C, u64),
    /// A connect or accept with this context failed.
    NotOpen(Status, u64),
    /// A peer asked and was accepted; its payload lies in the caller's buffer.
    Asked,
}

/// Why a loop cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The other end has disconnected or died.
    PeerGone,
    /// An operation failed.
    Failed(Status),
}

impl Trouble {
    /// An operation, or its start, ended with this status.
    pub(crate) fn of(status: Status) -> Self {
        if status == Status::Disconnected { Self::PeerGone } else { Self::Failed(status) }
    }
}

impl From<Trouble> for UserError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::PeerGone => Self::new("the other end is gone: it was ended, or closed the connection"),
            Trouble::Failed(status) => Self(format!("an operation failed: {status}")),
        }
    }
}

/// Why an operation was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No room now; look for events and try again.
    Full,
    Trouble(Trouble),
}

/// How an endpoint is opened.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// Transport, or the default device.
    pub(crate) transport: Option<String>,
    pub(crate) threads: Threads,
    pub(crate) mode: Mode,
    /// Keys of the device beyond those of its configuration, and above them.
    pub(crate) keys: Vec<(String, String)>,
    /// The shared library, where the port needs one.
    pub(crate) library: Option<PathBuf>,
    /// Endpoints that the run has open on this host at once: each needs a port of its own.
    pub(crate) ends: u32,
}

impl Opening {
    /// One endpoint of this transport for both ends on this host, for a program of many threads that polls.
    pub(crate) fn on_loopback(transport: &str) -> Self {
        Self {
            transport: Some(transport.to_owned()),
            threads: Threads::Many,
            mode: Mode::Polling,
            keys: Plan::keys_of_loopback(transport),
            library: None,
            ends: 1,
        }
    }

    /// As this session's measured endpoints are opened.
    pub(crate) fn for_session(&self, session: &Session) -> Self {
        Self { threads: session.threads, mode: session.mode, ..self.clone() }
    }

    /// At the port of this endpoint, where a key says which.
    pub(crate) fn at(mut self, port: &impl Port) -> Self {
        let uri = port.uri();
        if let (Some(key), Some((_, number))) =
            (self.keys.iter_mut().find(|(key, _)| key == "port"), uri.rsplit_once(':'))
        {
            key.1 = number.to_owned();
        }
        self
    }
}

/// An RMA of a measuring loop, at offset 0 of both memories.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer<'a> {
    pub(crate) local: &'a RmaHandle,
    pub(crate) remote: &'a RmaHandle,
    pub(crate) len: u64,
    pub(crate) read: bool,
    /// Tell the peer by an empty message after the data.
    pub(crate) message: bool,
}

/// An endpoint as the measuring loops see it. One thread uses it.
pub(crate) trait Port: Sized {
    /// A connection.
    type Connection: Copy + PartialEq;

    fn open(opening: &Opening) -> Result<Self, UserError>;
    fn uri(&self) -> String;
    fn transport(&self) -> &str;
    fn max_send_size(&self, connection: Self::Connection) -> u64;
    /// How operations travel, if the library tells.
    fn path(&self, connection: Self::Connection) -> Option<Path>;
    /// Asks for a connection; [`Happening::Open`] or [`Happening::NotOpen`] with `context` follows.
    fn connect(
        &self,
        uri: &str,
        payload: &[u8],
        attribute: Attribute,
        context: u64,
        timeout: Duration,
    ) -> Result<(), UserError>;
    /// From now on a peer of this connection that falls silent is [`Trouble::PeerGone`], as one is that dies, where the
    /// transport does not notice its death by itself.
    fn watch(&self, _: Self::Connection) -> Result<(), UserError> {
        Ok(())
    }
    fn send(&self, connection: Self::Connection, message: &[u8], silent: bool) -> Result<(), Refused>;
    fn rma(&self, connection: Self::Connection, transfer: &Transfer<'_>, silent: bool) -> Result<(), Refused>;
    fn register(&self, memory: Memory) -> Result<RmaHandle, UserError>;
    /// One event at most, given back at once; `TOUCH` reads every byte of a message.
    fn poll<const TOUCH: bool>(&self) -> Result<Seen, Trouble>;
    /// One event at most, in full. Requests are accepted: their context is `context_of` their payload.
    fn look(
        &self,
        bytes: &mut Vec<u8>,
        context_of: impl FnMut(&[u8]) -> u64,
    ) -> Result<Happening<Self::Connection>, Trouble>;
    /// Time on the clock of the transport, from an origin of its own: everything is timed by it.
    fn now(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
    }
    /// In blocking mode sleeps until there may be something to see, or for a while; when polling does nothing.
    fn wait(&self);
}

/// How long [`Port::wait`] sleeps at most: it bounds what a lost wake-up costs, and never shortens a wait.
pub(crate) const NAP: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Sleeps on a descriptor.
pub(crate) fn nap(fd: impl AsFd) {
    // A signal ends it early, which the caller's loop allows.
    let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&NAP));
}

/// Looks until `wanted` gives something, the peer is gone, or the time is over.
pub(crate) fn await_happening<P: Port, T>(
    port: &P,
    bytes: &mut Vec<u8>,
    limit: Duration,
    mut wanted: impl FnMut(Happening<P::Connection>, &[u8]) -> Option<T>,
) -> Result<Option<T>, Trouble> {
    let begin = port.now();
    loop {
        match port.look(bytes, |_| 0)? {
            Happening::Nothing if port.now() - begin > limit => return Ok(None),
            Happening::Nothing => port.wait(),
            happening => {
                if let Some(found) = wanted(happening, bytes) {
                    return Ok(Some(found));
                }
            }
        }
    }
}

/// Silence after which a peer is gone, microseconds: asked for a few times within it.
const SILENCE: u32 = 10_000_000;

/// How long two endpoints of one process may take to connect.
const JOIN: Duration = Duration::from_secs(10);

/// Connects two endpoints of this thread; the client's side of the connection.
pub(crate) fn join<P: Port>(client: &P, server: &P, attribute: Attribute) -> Result<P::Connection, UserError> {
    client.connect(&server.uri(), &[], attribute, 1, JOIN)?;
    let (begin, mut bytes) = (client.now(), Vec::new());
    let (mut ours, mut theirs) = (None, false);
    while client.now() - begin < JOIN {
        match client.look(&mut bytes, |_| 0)? {
            Happening::Open(connection, _) => ours = Some(connection),
            Happening::NotOpen(status, _) => return Err(UserError(format!("no connection: {status}"))),
            _ => {}
        }
        theirs |= matches!(server.look(&mut bytes, |_| 0)?, Happening::Open(..));
        if let (Some(connection), true) = (ours, theirs) {
            return Ok(connection);
        }
    }
    Err(UserError::new("two endpoints of one process did not connect"))
}

/// The facade.
pub(crate) struct Facade {
    endpoint: Endpoint,
    transport: String,
    /// Only in blocking mode: a polling endpoint never asks for its handle.
    handle: Option<OwnedFd>,
}

impl Port for Facade {
    type Connection = Connection;

    fn open(opening: &Opening) -> Result<Self, UserError> {
        Self::open_stamped(opening, None)
    }

    fn uri(&self) -> String {
        self.endpoint.uri().to_owned()
    }

    fn transport(&self) -> &str {
        &self.transport
    }

    fn max_send_size(&self, connection: Connection) -> u64 {
        u64::from(connection.max_send_size())
    }

    fn path(&self, connection: Connection) -> Option<Path> {
        let report = self.endpoint.report(connection).ok()?;
        Some(Path { messages: report.path, rma: report.rma_path, why: report.why })
    }

    fn connect(
        &self,
        uri: &str,
        payload: &[u8],
        attribute: Attribute,
        context: u64,
        timeout: Duration,
    ) -> Result<(), UserError> {
        self.endpoint
            .connect(uri, payload, attribute, context, Some(timeout))
            .map_err(|error| UserError(format!("cannot connect to {uri}: {error}")))
    }

    fn watch(&self, connection: Connection) -> Result<(), UserError> {
        if self.transport != "sock" {
            return Ok(());
        }
        let set = self.endpoint.set_option(connection, ConnectionOption::KeepaliveTimeout, SILENCE);
        set.map_err(while_doing("cannot set a keepalive timeout"))
    }

    #[inline(always)]
    fn send(&self, connection: Connection, message: &[u8], silent: bool) -> Result<(), Refused> {
        let flags = if silent { Flags::SILENT } else { Flags::NONE };
        self.endpoint.send(connection, message, 0, flags).map_err(|error| match error {
            SendError::NoBuffers => Refused::Full,
            other => Refused::Trouble(Trouble::of(other.status())),
        })
    }

    #[inline(always)]
    fn rma(&self, connection: Connection, transfer: &Transfer<'_>, silent: bool) -> Result<(), Refused> {
        let direction = if transfer.read { Flags::READ } else { Flags::WRITE };
        let flags = if silent { direction | Flags::SILENT } else { direction };
        let rma = cci::Rma {
            local: transfer.local,
            local_offset: 0,
            remote: transfer.remote,
            remote_offset: 0,
            len: transfer.len,
            message: transfer.message.then_some(&[]),
        };
        self.endpoint.rma(connection, &rma, 0, flags).map_err(|error| match error {
            RmaError::NoBuffers => Refused::Full,
            other => Refused::Trouble(Trouble::of(other.status())),
        })
    }

    fn register(&self, memory: Memory) -> Result<RmaHandle, UserError> {
        self.endpoint.register(memory, Rights::READ_WRITE).map_err(while_doing("cannot register memory"))
    }

    #[inline(always)]
    fn poll<const TOUCH: bool>(&self) -> Result<Seen, Trouble> {
        if TOUCH {
            return self.poll_touching();
        }
        let Some(event) = next(&self.endpoint)? else { return Ok(Seen::Nothing) };
        match event.kind() {
            EventKind::Recv => Ok(Seen::Received(event.received().map_or(0, |message| message.len()))),
            EventKind::Send => event.outcome().map(|()| Seen::Sent).map_err(trouble),
            kind => Seen::of(kind, 0),
        }
    }

    fn look(
        &self,
        bytes: &mut Vec<u8>,
        mut context_of: impl FnMut(&[u8]) -> u64,
    ) -> Result<Happening<Connection>, Trouble> {
        let Some(event) = next(&self.endpoint)? else { return Ok(Happening::Nothing) };
        if let (Some(message), Some(connection)) = (event.received(), event.connection()) {
            bytes.resize(message.len(), 0);
            message.copy_to(bytes);
            return Ok(Happening::Received(connection));
        }
        if let Some(request) = event.request() {
            *bytes = request.payload();
            let context = context_of(bytes);
            return match self.endpoint.accept(&event, context) {
                Ok(()) => Ok(Happening::Asked),
                Err(error) => Err(Trouble::Failed(error.status())),
            };
        }
        match event.kind() {
            EventKind::Send => event.outcome().map(|()| Happening::Sent).map_err(trouble),
            EventKind::Connect | EventKind::Accept => Ok(match (event.outcome(), event.connection()) {
                (Ok(()), Some(connection)) => Happening::Open(connection, event.context()),
                (outcome, _) => {
                    Happening::NotOpen(outcome.err().map_or(Status::Error, Failure::status), event.context())
                }
            }),
            EventKind::Disconnect | EventKind::KeepaliveTimedOut => Err(Trouble::PeerGone),
            EventKind::DeviceFailed => Err(Trouble::Failed(Status::NetDown)),
            _ => Ok(Happening::Sent),
        }
    }

    fn wait(&self) {
        if let Some(handle) = &self.handle {
            nap(handle);
        }
    }
}

impl Facade {
    /// Opens an endpoint, whose layers are stamped if there are stamps.
    pub(crate) fn open_stamped(opening: &Opening, stamps: Option<Arc<Stamps>>) -> Result<Self, UserError> {
        let context = Context::new().map_err(while_doing("cannot find the devices"))?;
        let found = match &opening.transport {
            None => Some(context.default_device().map_err(|error| UserError(error.to_string()))?),
            Some(name) => context.devices().iter().find(|device| device.transport == *name),
        };
        let device = match (found, opening.transport.as_deref()) {
            (Some(device), _) => device.clone(),
            (None, Some(virtual_time::TRANSPORT)) => virtual_device(),
            (None, name) => {
                return Err(no_transport(name.unwrap_or_default()));
            }
        };
        let options = EndpointOptions {
            threading: match opening.threads {
                Threads::One => Threading::One,
                Threads::Many => Threading::Many,
            },
            disconnect_events: true,
            stamps,
            ..EndpointOptions::default()
        };
        let endpoint = ports::open_in_range(&with_keys(&device.arguments, &opening.keys), |keys| {
            let device = Device { arguments: keys.to_vec(), ..device.clone() };
            Endpoint::open(&device, &options).map_err(while_doing("cannot open an endpoint"))
        });
        let endpoint = endpoint.map_err(|why| ports::with_number(why, opening.ends))?;
        let handle = match opening.mode {
            Mode::Polling => None,
            Mode::Blocking => Some(endpoint.handle().map_err(|error| UserError(error.to_string()))?),
        };
        Ok(Self { endpoint, transport: device.transport, handle })
    }

    #[inline(always)]
    fn poll_touching(&self) -> Result<Seen, Trouble> {
        let (kind, detail) = match probe::touch_next(&self.endpoint) {
            Ok(Some(event)) => event,
            Ok(None) | Err(PollError::NoBuffers) => return Ok(Seen::Nothing),
            Err(PollError::Unusable(why)) => return Err(Trouble::Failed(why.status())),
        };
        Seen::of(kind, detail)
    }

    /// The endpoint itself, for what a port does not do.
    pub(crate) fn into_endpoint(self) -> Endpoint {
        self.endpoint
    }

    /// The handle, in blocking mode.
    pub(crate) fn handle(&self) -> Option<&OwnedFd> {
        self.handle.as_ref()
    }
}

/// A device on a virtual network of this process, which needs no configuration.
fn virtual_device() -> Device {
    Device {
        name: virtual_time::TRANSPORT.into(),
        transport: virtual_time::TRANSPORT.into(),
        up: true,
        reason: "a virtual network in this process".into(),
        arguments: Vec::new(),
        max_send_size: 8192,
        rate: 0,
        pci: None,
        priority: 0,
        is_default: false,
    }
}

/// The keys of a device, and these in place of what its configuration says.
pub(crate) fn with_keys(configured: &[(String, String)], keys: &[(String, String)]) -> Vec<(String, String)> {
    let kept = configured.iter().filter(|(key, _)| !keys.iter().any(|(other, _)| other == key));
    kept.chain(keys).cloned().collect()
}

#[inline(always)]
fn next(endpoint: &Endpoint) -> Result<Option<Event<'_>>, Trouble> {
    match endpoint.get_event() {
        Ok(event) => Ok(event),
        Err(PollError::NoBuffers) => Ok(None),
        Err(PollError::Unusable(why)) => Err(Trouble::Failed(why.status())),
    }
}

fn trouble(failure: Failure) -> Trouble {
    Trouble::of(failure.status())
}
