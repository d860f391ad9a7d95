//! [`Driver`]: the trait through which measuring loops call the library. [`Facade`] calls the Rust
//! API and `c_library` the C functions. The compiler resolves the trait, so a call costs no
//! indirection.

use super::loops::SILENCE_IN_BLOCK;
use super::ports;
use crate::device::{keys_of_loopback, with_keys, without_configuration};
use crate::probe::{NAP, touch};
use crate::reach::{no_transport, scope};
use cci::__binding::{self, Contract, Threading};
use cci::trace::Stamps;
use cci::{
    Attribute, Completed, Connect, Connection, ConnectionOption, Context, Device, Endpoint, EndpointOptions, Event,
    EventKind, Memory, Notify, PollError, Rights, Rma, RmaError, RmaHandle, Scope, SendError, Status,
};
use cci_report::environment::Path;
use cci_report::names::{Mode, Threads};
use cci_report::session::Session;
use cci_report::{UserError, while_doing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverEvent<C> {
    Nothing,
    Sent,
    /// A message, copied to the caller's buffer.
    Received(C),
    /// A connection with this context is open: outgoing, or accepted.
    Open(C, u64),
    /// A connect or accept with this context failed.
    NotOpen(Status, u64),
    /// A connection request was accepted; its payload is in the caller's buffer.
    Asked,
    /// Something that is none of the run's.
    Other,
}

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
    /// Polls for at most one event. Accepts a connection request with the context `context_of` its
    /// payload.
    fn poll_event(
        &self,
        bytes: &mut Vec<u8>,
        context_of: impl FnMut(&[u8]) -> u64,
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
            DriverEvent::NotOpen(status, _) => return Err(UserError(format!("no connection: {status}"))),
            _ => {}
        }
        theirs |= matches!(server.poll_event(&mut bytes, |_| 0)?, DriverEvent::Open(..));
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
    /// The connections of a run, as far as they are there.
    heeded: Mutex<Option<[Option<Connection>; 2]>>,
}

/// The device of these options, with their keys.
pub(crate) fn device(opening: &DriverOptions) -> Result<Device, UserError> {
    let context = Context::new().map_err(while_doing("cannot find the devices"))?;
    let found = match &opening.transport {
        None => Some(context.default_device().map_err(|error| UserError(error.to_string()))?),
        Some(name) => context.devices().iter().find(|device| device.transport == *name),
    };
    let name = opening.transport.as_deref().unwrap_or_default();
    let device = found.cloned().or_else(|| without_configuration(name)).ok_or_else(|| no_transport(name))?;
    let arguments = with_keys(&device.arguments, &opening.keys);
    Ok(Device { arguments, ..device })
}

impl Driver for Facade {
    type Connection = Connection;

    fn open(opening: &DriverOptions) -> Result<Self, UserError> {
        Self::open_stamped(opening, None)
    }

    fn uri(&self) -> String {
        self.endpoint.uri().to_owned()
    }

    fn transport(&self) -> &str {
        &self.transport
    }

    fn max_send_size(&self, connection: Connection) -> u64 {
        connection.max_send_size().map_or(0, u64::from)
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
            .connect(&Connect::to(uri).payload(payload).attribute(attribute).context(context).timeout(timeout))
            .map_err(|error| UserError(format!("cannot connect to {uri}: {error}")))
    }

    fn watch(&self, connection: Connection) -> Result<(), UserError> {
        if scope(&self.transport) != Some(Scope::Network) {
            return Ok(());
        }
        let set = self.endpoint.set_option(connection, ConnectionOption::KeepaliveTimeout, SILENCE);
        set.map_err(while_doing("cannot set a keepalive timeout"))
    }

    #[inline(always)]
    fn send(&self, connection: Connection, message: &[u8], silent: bool) -> Result<(), PostError> {
        self.endpoint.send(connection, message, notify(silent)).map_err(|error| match error {
            SendError::NoBuffers => PostError::Full,
            other => PostError::Driver(DriverError::of(other.status())),
        })
    }

    #[inline(always)]
    fn rma(&self, connection: Connection, transfer: &Transfer<'_>, silent: bool) -> Result<(), PostError> {
        let message: Option<&[u8]> = transfer.message.then_some(&[]);
        let rma = Rma::new(transfer.local, transfer.remote, transfer.len).message(message);
        let started = match transfer.read {
            true => self.endpoint.read(connection, &rma, notify(silent)),
            false => self.endpoint.write(connection, &rma, notify(silent)),
        };
        started.map_err(|error| match error {
            RmaError::NoBuffers => PostError::Full,
            other => PostError::Driver(DriverError::of(other.status())),
        })
    }

    fn register(&self, memory: Memory) -> Result<RmaHandle, UserError> {
        self.endpoint.register_memory(memory, Rights::READ_WRITE).map_err(while_doing("cannot register memory"))
    }

    #[inline(always)]
    fn poll<const TOUCH: bool>(&self) -> Result<Completion, DriverError> {
        if TOUCH {
            return self.poll_touching();
        }
        let Some(event) = next(&self.endpoint)? else { return Ok(Completion::Nothing) };
        match &event {
            Event::Received(message) => Ok(Completion::Received(message.len())),
            Event::Completed(operation) => {
                self.unless_of_another(&event, outcome(operation, Completion::Sent), Completion::Other)
            }
            other => self.completion_of(other, 0),
        }
    }

    fn poll_event(
        &self,
        bytes: &mut Vec<u8>,
        mut context_of: impl FnMut(&[u8]) -> u64,
    ) -> Result<DriverEvent<Connection>, DriverError> {
        let Some(event) = next(&self.endpoint)? else { return Ok(DriverEvent::Nothing) };
        if let (Some(message), Some(connection)) = (event.received(), event.connection()) {
            bytes.resize(message.len(), 0);
            message.copy_to(bytes);
            return Ok(DriverEvent::Received(connection));
        }
        match event {
            Event::Request(request) => {
                *bytes = request.payload();
                let context = context_of(bytes);
                Ok(match request.accept(context) {
                    Ok(()) => DriverEvent::Asked,
                    Err(refused) => DriverEvent::NotOpen(refused.why.status(), context),
                })
            }
            Event::Completed(ref operation) => {
                self.unless_of_another(&event, outcome(operation, DriverEvent::Sent), DriverEvent::Other)
            }
            Event::Connected(_) | Event::Accepted(_) | Event::ConnectFailed(_) | Event::AcceptFailed(_) => {
                Ok(match (event.outcome(), event.connection()) {
                    (Ok(()), Some(connection)) => DriverEvent::Open(connection, event.context()),
                    (outcome, _) => {
                        DriverEvent::NotOpen(outcome.err().map_or(Status::Error, cci::Failure::status), event.context())
                    }
                })
            }
            Event::Disconnected(_) | Event::Keepalive(_) => {
                self.unless_of_another(&event, Err(DriverError::PeerLost), DriverEvent::Other)
            }
            Event::EndpointFailed(_) => Err(DriverError::Failed(Status::NetDown)),
            _ => Ok(DriverEvent::Sent),
        }
    }

    fn wait(&self) {
        if let Some(handle) = &self.handle {
            nap(handle);
        }
    }

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.handle.as_ref().map(AsFd::as_fd)
    }

    fn heed(&self, connections: [Option<Connection>; 2]) {
        *self.heeded.lock().unwrap_or_else(PoisonError::into_inner) = Some(connections);
    }

    fn disconnect(&self, connection: Connection) {
        // It may have ended by itself.
        let _ = self.endpoint.disconnect(connection);
    }
}

impl Facade {
    /// Opens an endpoint, whose layers are stamped if there are stamps.
    pub(crate) fn open_stamped(opening: &DriverOptions, stamps: Option<Arc<Stamps>>) -> Result<Self, UserError> {
        let device = device(opening)?;
        let mut options = __binding::with_stamps(EndpointOptions::new().disconnect_events(true), stamps);
        // Known at run time only, which checks it.
        __binding::set_threading(
            &mut options,
            match opening.threads {
                Threads::One => Threading::One,
                Threads::Many => Threading::Many,
            },
        );
        let endpoint = ports::open_in_range(&device.arguments, |keys| {
            let device = Device { arguments: keys.to_vec(), ..device.clone() };
            Endpoint::open(&device, &options).map_err(while_doing("cannot open an endpoint"))
        });
        let endpoint = endpoint.map_err(|why| ports::with_number(why, opening.ends))?;
        let handle = match opening.mode {
            Mode::Polling => None,
            Mode::Blocking => Some(endpoint.handle().map_err(|error| UserError(error.to_string()))?),
        };
        Ok(Self { endpoint, transport: device.transport, handle, heeded: Mutex::new(None) })
    }

    #[inline(always)]
    fn poll_touching(&self) -> Result<Completion, DriverError> {
        let Some(event) = next(&self.endpoint)? else { return Ok(Completion::Nothing) };
        let detail = touch(&event);
        self.completion_of(&event, detail)
    }

    #[inline(always)]
    fn completion_of(&self, event: &Event<'_>, detail: u32) -> Result<Completion, DriverError> {
        self.unless_of_another(event, Completion::of(event.kind(), detail), Completion::Other)
    }

    /// What an event says; `other`, if it says that a connection which is none of the run's fails.
    #[inline(always)]
    fn unless_of_another<T>(
        &self,
        event: &Event<'_>,
        says: Result<T, DriverError>,
        other: T,
    ) -> Result<T, DriverError> {
        match says {
            Err(_) if self.is_of_another(event) => Ok(other),
            says => says,
        }
    }

    #[cold]
    fn is_of_another(&self, event: &Event<'_>) -> bool {
        let heeded = *self.heeded.lock().unwrap_or_else(PoisonError::into_inner);
        heeded.is_some_and(|heeded| !heeded.contains(&event.connection()))
    }

    /// The endpoint itself, for what a driver does not do.
    pub(crate) fn into_endpoint(self) -> Endpoint {
        self.endpoint
    }
}

#[inline(always)]
fn next(endpoint: &Endpoint) -> Result<Option<Event<'_>>, DriverError> {
    match endpoint.get_event() {
        Ok(event) => Ok(event),
        Err(PollError::NoBuffers) => Ok(None),
        Err(error) => Err(DriverError::Failed(error.status())),
    }
}

/// Whether success is reported.
#[inline(always)]
fn notify(silent: bool) -> Notify {
    if silent { Notify::OnFailure(0) } else { Notify::Always(0) }
}

#[inline(always)]
fn outcome<T>(operation: &Completed<'_>, sent: T) -> Result<T, DriverError> {
    operation.outcome().map(|()| sent).map_err(|why| DriverError::of(why.status()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_an_event_ends_at_its_limit_though_others_come_all_the_time() {
        const LIMIT: Duration = Duration::from_millis(200);
        const LONG: Duration = Duration::from_secs(8);
        let open = || Facade::open(&DriverOptions::on_loopback("sm")).unwrap();
        let (client, server) = (open(), open());
        let connection = join(&client, &server, Attribute::ReliableOrdered).unwrap();
        let send = || assert!(client.send(connection, b"flood", true).is_ok());
        (0..4).for_each(|_| send());
        let begin = server.now();
        let found = await_event(&server, &mut Vec::new(), LIMIT, |event, _| {
            let _ = client.poll::<false>();
            // One for each that was taken: there is always one more.
            if matches!(event, DriverEvent::Received(_)) && server.now() - begin < LONG {
                std::thread::sleep(Duration::from_millis(1));
                send();
            }
            None::<()>
        });
        assert_eq!(found.unwrap(), None);
        let took = server.now() - begin;
        assert!(took >= LIMIT && took < 20 * LIMIT, "{took:?}");
    }

    /// An end whose sends to a stranger time out, since the stranger takes nothing.
    fn with_a_stranger(is_heeded: bool) -> (Facade, Facade) {
        let options = DriverOptions { threads: Threads::One, ..DriverOptions::on_loopback("sock") };
        let open = || Facade::open(&options).expect("an endpoint");
        let (server, stranger) = (open(), open());
        let connection = join(&server, &stranger, Attribute::ReliableOrdered).expect("a connection");
        let limit = Duration::from_millis(100);
        server.endpoint.set_option(connection, ConnectionOption::SendTimeout, limit).expect("set");
        server.heed(if is_heeded { [Some(connection), None] } else { [None; 2] });
        assert!(server.send(connection, b"refused", true).is_ok());
        (server, stranger)
    }

    /// What an end sees of that until nothing more comes.
    fn seen<T: PartialEq>(
        nothing: &T,
        mut look: impl FnMut() -> Result<T, DriverError>,
    ) -> Result<Vec<T>, DriverError> {
        let begin = std::time::Instant::now();
        let mut seen = Vec::new();
        while begin.elapsed() < Duration::from_secs(30) && seen.is_empty() {
            seen.extend(Some(look()?).filter(|one| one != nothing));
        }
        Ok(seen)
    }

    #[test]
    fn what_a_stranger_does_not_take_is_no_failure_of_the_run() {
        let timed_out = DriverError::Failed(Status::TimedOut);
        for (is_heeded, polled, event) in
            [(false, Ok(vec![Completion::Other]), Ok(vec![DriverEvent::Other])), (true, Err(timed_out), Err(timed_out))]
        {
            let (server, _stranger) = with_a_stranger(is_heeded);
            assert_eq!(seen(&Completion::Nothing, || server.poll::<false>()), polled);
            let (server, _stranger) = with_a_stranger(is_heeded);
            assert_eq!(seen(&Completion::Nothing, || server.poll::<true>()), polled);
            let (server, _stranger) = with_a_stranger(is_heeded);
            assert_eq!(seen(&DriverEvent::Nothing, || server.poll_event(&mut Vec::new(), |_| 0)), event);
        }
    }
}
