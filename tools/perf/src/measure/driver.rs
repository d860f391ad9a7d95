//! [`Driver`]: the trait through which measuring loops call the library. `facade` calls the Rust
//! API and `c_library` the C functions. The compiler resolves the trait, so a call costs no
//! indirection.

use crate::device::keys_of_loopback;
use crate::probe::NAP;
use cci::{Attribute, EventKind, Memory, RmaHandle, Status};
use cci_admission::Origin;
use cci_report::UserError;
use cci_report::environment::Path;
use cci_report::names::{Mode, Threads};
use cci_report::session::Session;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

/// Result of one poll in a measuring loop; its event has been returned to the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    Nothing,
    /// An operation completed successfully.
    Sent,
    /// A message of this many bytes.
    Received(usize),
    /// An event that measuring loops do not wait for.
    Other,
}

impl Completion {
    /// Classifies an event of this kind; `detail` is its status or length.
    #[inline(always)]
    pub(crate) fn of(kind: EventKind, detail: u32) -> Result<Self, DriverError> {
        match kind {
            EventKind::Recv => Ok(Self::Received(detail as usize)),
            EventKind::Send if detail == Status::Success as u32 => Ok(Self::Sent),
            EventKind::Send => Err(DriverError::of(Status::from_u32(detail).unwrap_or(Status::Error))),
            EventKind::Disconnect | EventKind::KeepaliveTimedOut => Err(DriverError::PeerLost),
            _ => Ok(Self::Other),
        }
    }
}

/// An event of a driver, for everything but measuring loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DriverEvent<C> {
    Nothing,
    Sent,
    /// A message, copied to the caller's buffer.
    Received(C),
    /// A connection with this context is open: outgoing, or accepted.
    Open(C, u64),
    /// A connect or accept with this context failed.
    NotOpen(NotOpen, u64),
    /// A connection request was accepted; its payload is in the caller's buffer.
    Asked,
    /// Something that is none of the run's.
    Other,
}

/// Why a connection did not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotOpen {
    pub(crate) status: Status,
    /// What the library knows beyond the status.
    pub(crate) reason: Option<String>,
}

impl From<Status> for NotOpen {
    fn from(status: Status) -> Self {
        Self { status, reason: None }
    }
}

impl fmt::Display for NotOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => f.write_str(reason),
            None => self.status.fmt(f),
        }
    }
}

/// A connection request.
pub(crate) struct Asking<'a> {
    pub(crate) payload: &'a [u8],
    /// Whose it is, as far as the library knows; not the client's own word.
    pub(crate) origin: &'a dyn Fn() -> Origin,
}

/// What an event says; `other`, if it says that a connection fails which is none of the run's.
#[inline(always)]
pub(super) fn unless_of_another<T>(
    says: Result<T, DriverError>,
    other: T,
    is_of_another: impl FnOnce() -> bool,
) -> Result<T, DriverError> {
    match says {
        Err(_) if is_of_another() => Ok(other),
        says => says,
    }
}

/// How long a loop waits while nothing comes: longer than any operation takes, so that a peer which
/// stands still gives the other end back.
pub(crate) const SILENCE_IN_BLOCK: Duration = Duration::from_secs(60);

/// A failure that ends a measuring loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverError {
    /// The peer disconnected or died.
    PeerLost,
    /// An operation failed.
    Failed(Status),
    /// Nothing has come for as long as a block may wait.
    Silent,
}

impl DriverError {
    /// Maps the status of an operation, or of its start.
    pub(crate) fn of(status: Status) -> Self {
        if status == Status::Disconnected { Self::PeerLost } else { Self::Failed(status) }
    }
}

impl From<DriverError> for UserError {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::PeerLost => Self::new("the other end disconnected: it was ended, or closed the connection"),
            DriverError::Failed(status) => Self(format!("an operation failed: {status}")),
            DriverError::Silent => {
                let seconds = SILENCE_IN_BLOCK.as_secs();
                UserError(format!("nothing came within a block for {seconds} s: check that the other end still runs"))
            }
        }
    }
}

/// Why the driver did not accept an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostError {
    /// Backpressure: poll for events and retry.
    Full,
    Driver(DriverError),
}

/// How an endpoint is opened.
#[derive(Clone, Debug)]
pub(crate) struct DriverOptions {
    /// Transport, or the default device.
    pub(crate) transport: Option<String>,
    pub(crate) threads: Threads,
    pub(crate) mode: Mode,
    /// Keys of the device beyond those of its configuration, and above them.
    pub(crate) keys: Vec<(String, String)>,
    /// The shared library, where the driver needs one.
    pub(crate) library: Option<PathBuf>,
    /// Endpoints that the run has open on this host at once: each needs a port of its own.
    pub(crate) ends: u32,
}

impl DriverOptions {
    /// One endpoint of this transport for both ends on this host, for a program of many threads
    /// that polls.
    pub(crate) fn on_loopback(transport: &str) -> Self {
        Self {
            transport: Some(transport.to_owned()),
            threads: Threads::Many,
            mode: Mode::Polling,
            keys: keys_of_loopback(transport),
            library: None,
            ends: 1,
        }
    }

    /// As this session's measured endpoints are opened.
    pub(crate) fn for_session(&self, session: &Session) -> Self {
        Self { threads: session.threads, mode: session.mode, ..self.clone() }
    }

    /// At the port of this endpoint, where a key says which.
    pub(crate) fn at(mut self, driver: &impl Driver) -> Self {
        let uri = driver.uri();
        if let (Some(key), Some((_, number))) =
            (self.keys.iter_mut().find(|(key, _)| key == "port"), uri.rsplit_once(':'))
        {
            // A URI of several ways names others behind it.
            let number: String = number.chars().take_while(char::is_ascii_digit).collect();
            if !number.is_empty() {
                key.1 = number;
            }
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

/// An endpoint that a measuring loop drives. One thread uses it.
pub(crate) trait Driver: Sized {
    /// A connection.
    type Connection: Copy + PartialEq;

    fn open(opening: &DriverOptions) -> Result<Self, UserError>;
    fn uri(&self) -> String;
    fn transport(&self) -> &str;
    fn max_send_size(&self, connection: Self::Connection) -> u64;
    /// The path of operations, if the library reports it.
    fn path(&self, connection: Self::Connection) -> Option<Path>;
    /// Asks for a connection; [`DriverEvent::Open`] or [`DriverEvent::NotOpen`] with `context`
    /// follows.
    fn connect(
        &self,
        uri: &str,
        payload: &[u8],
        attribute: Attribute,
        context: u64,
        timeout: Duration,
    ) -> Result<(), UserError>;
    /// Enables a keepalive where the transport does not detect the death of a peer: a silent peer
    /// of this connection then causes [`DriverError::PeerLost`].
    fn watch(&self, _: Self::Connection) -> Result<(), UserError> {
        Ok(())
    }
    fn send(&self, connection: Self::Connection, message: &[u8], silent: bool) -> Result<(), PostError>;
    fn rma(&self, connection: Self::Connection, transfer: &Transfer<'_>, silent: bool) -> Result<(), PostError>;
    fn register(&self, memory: Memory) -> Result<RmaHandle, UserError>;
    /// Polls for at most one event and returns it to the library at once; `TOUCH` reads every byte
    /// of a message.
    fn poll<const TOUCH: bool>(&self) -> Result<Completion, DriverError>;
    /// Polls for at most one event. Accepts a connection request with the context that `context_of`
    /// gives it.
    fn poll_event(
        &self,
        bytes: &mut Vec<u8>,
        context_of: impl FnMut(&Asking<'_>) -> u64,
    ) -> Result<DriverEvent<Self::Connection>, DriverError>;
    /// Time on the clock of the transport, from an origin of its own: everything is timed by it.
    fn now(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
    }
    /// Sleeps in blocking mode until there may be an event, at most for [`NAP`]. Returns at once
    /// when polling.
    fn wait(&self);
    /// What is readable when there may be an event, in blocking mode.
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// As [`Driver::wait`], and until one of the others may have an event.
    fn wait_beside<'a>(&'a self, others: impl Iterator<Item = &'a Self>) {
        nap_beside(self, others);
    }
    /// From now on what fails on other connections than these is nothing to the run, and their end
    /// is not that of the peer: anybody may connect to an endpoint, and leave it or fall silent.
    fn heed(&self, _: [Option<Self::Connection>; 2]) {}
    /// Closes a connection, where the driver can: a peer that does not leave.
    fn disconnect(&self, _: Self::Connection) {}
}

/// How often a driver that sleeps looks for events of one that has no descriptor to sleep on.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

fn nap_beside<'a, P: Driver>(driver: &'a P, others: impl Iterator<Item = &'a P>) {
    let Some(own) = driver.handle() else { return };
    let (mut ready, mut limit) = (vec![PollFd::from_borrowed_fd(own, PollFlags::IN)], &NAP);
    for other in others {
        match other.handle() {
            Some(handle) => ready.push(PollFd::from_borrowed_fd(handle, PollFlags::IN)),
            None => limit = &LOOK,
        }
    }
    // A signal ends it early, which the caller's loop allows.
    let _ = poll(&mut ready, Some(limit));
}

/// Sleeps on a descriptor.
pub(crate) fn nap(fd: impl AsFd) {
    // A signal ends it early, which the caller's loop allows.
    let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&NAP));
}

/// Polls until `wanted` returns a value, the peer is lost, or the time limit passes.
pub(crate) fn await_event<P: Driver, T>(
    driver: &P,
    bytes: &mut Vec<u8>,
    limit: Duration,
    mut wanted: impl FnMut(DriverEvent<P::Connection>, &[u8]) -> Option<T>,
) -> Result<Option<T>, DriverError> {
    let begin = driver.now();
    loop {
        let event = driver.poll_event(bytes, |_| 0)?;
        let is_nothing = matches!(event, DriverEvent::Nothing);
        if !is_nothing && let Some(found) = wanted(event, bytes) {
            return Ok(Some(found));
        }
        // Those who do not stop to send are no reason to stay.
        if driver.now() - begin > limit {
            return Ok(None);
        }
        if is_nothing {
            driver.wait();
        }
    }
}

/// Keepalive timeout; the transport probes the peer a few times within it.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

/// Time limit for two endpoints of one process to connect.
const JOIN: Duration = Duration::from_secs(10);

/// Connects two endpoints of this thread; the client's side of the connection.
pub(crate) fn join<P: Driver>(client: &P, server: &P, attribute: Attribute) -> Result<P::Connection, UserError> {
    client.connect(&server.uri(), &[], attribute, 1, JOIN)?;
    let (begin, mut bytes) = (client.now(), Vec::new());
    let (mut ours, mut theirs) = (None, false);
    while client.now() - begin < JOIN {
        match client.poll_event(&mut bytes, |_| 0)? {
            DriverEvent::Open(connection, _) => ours = Some(connection),
            DriverEvent::NotOpen(why, _) => return Err(UserError(format!("no connection: {why}"))),
            _ => {}
        }
        theirs |= matches!(server.poll_event(&mut bytes, |_| 0)?, DriverEvent::Open(..));
        if let (Some(connection), true) = (ours, theirs) {
            return Ok(connection);
        }
    }
    Err(UserError::new("two endpoints of one process did not connect"))
}
