//! The facade: the Rust API as a driver.

use super::driver::{
    Asking, Completion, Driver, DriverError, DriverEvent, DriverOptions, NotOpen, PostError, SILENCE, Transfer, nap,
    unless_of_another,
};
use super::ports;
use crate::device::{with_keys, without_configuration};
use crate::probe::touch;
use crate::reach::{no_transport, scope};
use cci::__binding::{self, Contract, Threading};
use cci::trace::Stamps;
use cci::{
    Attribute, Completed, Connect, Connection, ConnectionOption, Context, Device, Endpoint, EndpointOptions, Event,
    Memory, Notify, Peer, PollError, Rights, Rma, RmaError, RmaHandle, Scope, SendError, Status,
};
use cci_admission::Origin;
use cci_report::environment::Path;
use cci_report::names::{Mode, Threads};
use cci_report::{UserError, while_doing};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

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
    // Finding them takes long, and a server opens an endpoint for each client.
    static FOUND: OnceLock<Context> = OnceLock::new();
    let context = match FOUND.get() {
        Some(context) => context,
        None => {
            let context = Context::new().map_err(while_doing("cannot find the devices"))?;
            FOUND.get_or_init(|| context)
        }
    };
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
        mut context_of: impl FnMut(&Asking<'_>) -> u64,
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
                let origin = || request.peer().map_or(Origin::Here, |peer| origin_of(&peer));
                let context = context_of(&Asking { payload: bytes, origin: &origin });
                Ok(match request.accept(context) {
                    Ok(()) => DriverEvent::Asked,
                    Err(refused) => DriverEvent::NotOpen(refused.why.status().into(), context),
                })
            }
            Event::Completed(ref operation) => {
                self.unless_of_another(&event, outcome(operation, DriverEvent::Sent), DriverEvent::Other)
            }
            Event::Connected(_) | Event::Accepted(_) | Event::ConnectFailed(_) | Event::AcceptFailed(_) => {
                Ok(match (event.outcome(), event.connection()) {
                    (Ok(()), Some(connection)) => DriverEvent::Open(connection, event.context()),
                    (outcome, _) => {
                        let status = outcome.err().map_or(Status::Error, cci::Failure::status);
                        DriverEvent::NotOpen(NotOpen { status, reason: event.reason() }, event.context())
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

    #[inline(always)]
    fn unless_of_another<T>(
        &self,
        event: &Event<'_>,
        says: Result<T, DriverError>,
        other: T,
    ) -> Result<T, DriverError> {
        unless_of_another(says, other, || self.is_of_another(event))
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

/// Whose a request is: on this host a process, or the endpoint at a port; else an address. What
/// neither names shares with this host.
fn origin_of(peer: &Peer) -> Origin {
    if let Some(process) = peer.process {
        return Origin::Local(process);
    }
    let place = peer.address.split_once("://").map_or("", |(_, place)| place);
    match place.parse::<SocketAddr>() {
        Ok(from) if from.ip().to_canonical().is_loopback() => Origin::Local(from.port().into()),
        Ok(from) => Origin::of(from.ip()),
        Err(_) => Origin::Here,
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
    use super::super::driver::{await_event, join};
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
