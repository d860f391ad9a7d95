//! An end of CCI over another network interface: a transport that carries CCI over a library, with
//! that library.

use crate::measure::facade::device;
use crate::methods::pairs;
use cci::__binding::{Contract, Flags};
use cci::{
    Attribute, Connect, Connection, Endpoint, EndpointOptions, EventKind, Notify, Registration, Rights, Rma, RmaHandle,
    SharedMemory,
};
use cci_report::{UserError, while_doing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of the longest RMA.
pub(super) const LONGEST: u64 = 4 << 20;
/// How long a connect may take: the first put between two processes opens a link.
const LIMIT: Duration = Duration::from_secs(10);

/// By which connection messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// RO: a message ends when the library beneath reports that the receiver has it.
    Reliable,
    /// UU: it ends when it has left.
    Unreliable,
}

/// How often another thread sends, and what: no message that is measured is so short.
const BESIDE: Duration = Duration::from_millis(1);
const BYTES_BESIDE: [u8; 1] = [7];
/// Bytes of the messages that end an end's turn: the other one goes back to what it did before, or
/// goes on while another thread uses each end, or no longer.
const BACK: usize = 0;
const SHARED: usize = 2;
const UNSHARED: usize = 3;

/// Another thread that uses an end.
struct Neighbour {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The end. Number 0 answers what comes; number 1 measures.
pub(super) struct Over {
    /// Such as `CCI over Portals`, for what is told.
    name: &'static str,
    endpoint: Arc<Endpoint>,
    local: Registration<SharedMemory>,
    remote: Option<RmaHandle>,
    connections: Vec<Connection>,
    bytes: Vec<u8>,
    neighbour: Option<Neighbour>,
}

fn gone(name: &str) -> UserError {
    UserError(format!("the other end of {name} is gone"))
}

/// What failed, of the end with this name.
fn failed<E: std::fmt::Display>(what: &'static str, name: &'static str) -> impl Fn(E) -> UserError {
    move |why| while_doing(&format!("{what} ({name})"))(why)
}

impl Over {
    /// `name` is that of the end, and `transport` carries CCI over `library`.
    pub(super) fn open(name: &'static str, transport: &str, library: &str) -> Result<Self, UserError> {
        let keys = vec![("library".to_owned(), library.to_owned())];
        let opening = pairs::opening(Some(&transport.to_owned()), &keys, 1);
        let mut device = device(&opening)?;
        // What is known without the keys is about another library.
        let driver = cci::driver(&device.transport).ok_or_else(|| gone(name))?;
        let condition = (driver.inspect)(&device.arguments);
        if !condition.up {
            return Err(UserError(condition.reason));
        }
        (device.up, device.reason, device.max_send_size) = (true, condition.reason, condition.max_send_size);
        let endpoint = Endpoint::open(&device, &EndpointOptions::new());
        let endpoint = endpoint.map_err(failed("cannot open an endpoint", name))?;
        let memory = SharedMemory::new(LONGEST as usize).map_err(failed("no memory for RMA", name))?;
        let local = endpoint.register(memory, Rights::READ_WRITE);
        let local = local.map_err(failed("cannot register memory", name))?;
        let endpoint = Arc::new(endpoint);
        Ok(Self { name, endpoint, local, remote: None, connections: Vec::new(), bytes: vec![7; 8192], neighbour: None })
    }

    pub(super) fn card(&self) -> (String, [u64; 4]) {
        (self.endpoint.uri().to_owned(), self.local.handle().words())
    }

    /// Connects to the end with this card, which accepts meanwhile.
    pub(super) fn connect(&mut self, (uri, handle): &(String, [u64; 4])) -> Result<(), UserError> {
        let name = self.name;
        self.remote = Some(RmaHandle::from_words(*handle));
        for attribute in [Attribute::ReliableOrdered, Attribute::Unreliable] {
            let connect = Connect::to(uri).attribute(attribute).context(0).timeout(LIMIT);
            self.endpoint.connect(&connect).map_err(failed("cannot connect", name))?;
            loop {
                let event = self.endpoint.get_event().map_err(failed("cannot take events", name))?;
                let Some(event) = event.filter(|event| event.kind() == EventKind::Connect) else { continue };
                self.connections.push(event.connection().ok_or_else(|| gone(name))?);
                break;
            }
        }
        Ok(())
    }

    /// Accepts both connections of the other end.
    pub(super) fn accept(&mut self) -> Result<(), UserError> {
        let name = self.name;
        let begun = Instant::now();
        let mut left = 2;
        while left > 0 {
            if begun.elapsed() > LIMIT {
                return Err(gone(name));
            }
            let event = self.endpoint.get_event().map_err(failed("cannot take events", name))?;
            match event {
                Some(event) if event.kind() == EventKind::ConnectRequest => {
                    let request = event.into_request().ok_or_else(|| gone(name))?;
                    request.accept(0).map_err(failed("cannot accept", name))?;
                }
                Some(event) if event.kind() == EventKind::Accept => {
                    self.connections.push(event.connection().ok_or_else(|| gone(name))?);
                    left -= 1;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Answers messages until the other end leaves.
    pub(super) fn serve(&mut self) -> Result<(), UserError> {
        let (name, endpoint) = (self.name, Arc::clone(&self.endpoint));
        loop {
            let event = endpoint.get_event().map_err(failed("cannot take events", name))?;
            let Some(event) = event else { continue };
            let (Some(message), Some(connection)) = (event.received(), event.connection()) else { continue };
            let len = message.len();
            message.copy_to(&mut self.bytes[..len]);
            drop(event);
            match len {
                BACK => return Ok(()),
                SHARED | UNSHARED => self.share_here(len == SHARED)?,
                len if len == BYTES_BESIDE.len() => {}
                len => self.send(connection, len)?,
            }
        }
    }

    fn send(&self, connection: Connection, len: usize) -> Result<(), UserError> {
        let name = self.name;
        let sent = self.endpoint.send(connection, &self.bytes[..len], Notify::OnFailure(0));
        sent.map_err(failed("cannot send", name))
    }

    /// Has the other end go back to what it did before.
    pub(super) fn leave(&self) -> Result<(), UserError> {
        self.tell(BACK)
    }

    /// Another thread of each process uses its end from now on, or no longer.
    pub(super) fn share(&mut self, is_shared: bool) -> Result<(), UserError> {
        if is_shared == self.neighbour.is_some() {
            return Ok(());
        }
        self.tell(if is_shared { SHARED } else { UNSHARED })?;
        self.share_here(is_shared)
    }

    fn tell(&self, bytes: usize) -> Result<(), UserError> {
        let name = self.name;
        let connection = *self.connections.first().ok_or_else(|| gone(name))?;
        let sent = self.endpoint.send_flags(connection, &[0; UNSHARED][..bytes], 0, Flags::BLOCKING);
        sent.map_err(failed("cannot send", name))
    }

    /// The other thread sends what nobody answers, so that the locks of the transport and of the
    /// library beneath both have two users.
    fn share_here(&mut self, is_shared: bool) -> Result<(), UserError> {
        if let Some(neighbour) = self.neighbour.take() {
            neighbour.is_over.store(true, Ordering::Relaxed);
            // It has not panicked, or that is told already.
            let _ = neighbour.thread.join();
        }
        if !is_shared {
            return Ok(());
        }
        let name = self.name;
        let connection = *self.connections.first().ok_or_else(|| gone(name))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (endpoint, watched) = (Arc::clone(&self.endpoint), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !watched.load(Ordering::Relaxed) {
                // One that fails is reported to the thread that takes events.
                let _ = endpoint.send(connection, &BYTES_BESIDE, Notify::OnFailure(0));
                std::thread::sleep(BESIDE);
            }
        });
        self.neighbour = Some(Neighbour { is_over, thread });
        Ok(())
    }

    /// So many messages there and back.
    pub(super) fn echo(&self, kind: Kind, len: usize, count: u64) -> Result<(), UserError> {
        let name = self.name;
        let connection = *self.connections.get(kind as usize).ok_or_else(|| gone(name))?;
        for _ in 0..count {
            self.send(connection, len)?;
            loop {
                let event = self.endpoint.get_event().map_err(failed("cannot take events", name))?;
                let Some(event) = event else { continue };
                match event.received() {
                    // What the other thread there sends is nobody's answer.
                    Some(message) if message.len() == len => break,
                    Some(_) => {}
                    None => event.outcome().map_err(|_| gone(name))?,
                }
            }
        }
        Ok(())
    }

    /// So many writes, one at a time. Returns the time that the calls took which begin them.
    pub(super) fn write(&self, len: u64, count: u64) -> Result<Duration, UserError> {
        let name = self.name;
        let connection = *self.connections.first().ok_or_else(|| gone(name))?;
        let remote = self.remote.as_ref().ok_or_else(|| gone(name))?;
        let mut overhead = Duration::ZERO;
        for _ in 0..count {
            let rma = Rma::new(self.local.handle(), remote, len);
            let begin = Instant::now();
            self.endpoint.rma(connection, &rma, 1, Flags::WRITE).map_err(failed("cannot write", name))?;
            overhead += begin.elapsed();
            loop {
                let event = self.endpoint.get_event().map_err(failed("cannot take events", name))?;
                let Some(event) = event else { continue };
                if event.kind() == EventKind::Send {
                    event.outcome().map_err(|_| gone(name))?;
                    break;
                }
            }
        }
        Ok(overhead)
    }
}
