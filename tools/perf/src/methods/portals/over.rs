//! An end of CCI over Portals: the transport `portals`, with a library of its own.

use crate::measure::driver::device;
use crate::methods::pairs;
use cci::__binding::{Contract, Flags};
use cci::{
    Attribute, Connect, Connection, Endpoint, EndpointOptions, EventKind, Notify, Registration, Rights, Rma, RmaHandle,
    SharedMemory,
};
use cci_report::{UserError, while_doing};
use std::time::{Duration, Instant};

/// Bytes of the longest RMA.
pub(super) const LONGEST: u64 = 4 << 20;
/// How long a connect may take: the first put between two processes opens a link.
const LIMIT: Duration = Duration::from_secs(10);

/// By which connection messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// RO: a message ends when Portals acknowledges its put.
    Reliable,
    /// UU: it ends when the put has left.
    Unreliable,
}

/// The end. Number 0 answers what comes; number 1 measures.
pub(super) struct Over {
    endpoint: Endpoint,
    local: Registration<SharedMemory>,
    remote: Option<RmaHandle>,
    connections: Vec<Connection>,
    bytes: Vec<u8>,
}

fn gone() -> UserError {
    UserError::new("the other end of CCI over Portals is gone")
}

impl Over {
    pub(super) fn open(library: &str) -> Result<Self, UserError> {
        let keys = vec![("library".to_owned(), library.to_owned())];
        let opening = pairs::opening(Some(&"portals".to_owned()), &keys, 1);
        let mut device = device(&opening)?;
        // What is known without the keys is about another library.
        let driver = cci::driver(&device.transport).ok_or_else(gone)?;
        let condition = (driver.inspect)(&device.arguments);
        if !condition.up {
            return Err(UserError(condition.reason));
        }
        (device.up, device.reason, device.max_send_size) = (true, condition.reason, condition.max_send_size);
        let endpoint = Endpoint::open(&device, &EndpointOptions::new());
        let endpoint = endpoint.map_err(while_doing("cannot open an endpoint of CCI over Portals"))?;
        let memory = SharedMemory::new(LONGEST as usize).map_err(while_doing("no memory for RMA over Portals"))?;
        let local = endpoint.register(memory, Rights::READ_WRITE);
        let local = local.map_err(while_doing("cannot register memory over Portals"))?;
        Ok(Self { endpoint, local, remote: None, connections: Vec::new(), bytes: vec![7; 8192] })
    }

    pub(super) fn card(&self) -> (String, [u64; 4]) {
        (self.endpoint.uri().to_owned(), self.local.handle().words())
    }

    /// Connects to the end with this card, which accepts meanwhile.
    pub(super) fn connect(&mut self, (uri, handle): &(String, [u64; 4])) -> Result<(), UserError> {
        self.remote = Some(RmaHandle::from_words(*handle));
        for attribute in [Attribute::ReliableOrdered, Attribute::Unreliable] {
            let connect = Connect::to(uri).attribute(attribute).context(0).timeout(LIMIT);
            self.endpoint.connect(&connect).map_err(while_doing("cannot connect over Portals"))?;
            loop {
                let event = self.endpoint.get_event().map_err(while_doing("cannot take events over Portals"))?;
                let Some(event) = event.filter(|event| event.kind() == EventKind::Connect) else { continue };
                self.connections.push(event.connection().ok_or_else(gone)?);
                break;
            }
        }
        Ok(())
    }

    /// Accepts both connections of the other end.
    pub(super) fn accept(&mut self) -> Result<(), UserError> {
        let begun = Instant::now();
        let mut left = 2;
        while left > 0 {
            if begun.elapsed() > LIMIT {
                return Err(gone());
            }
            let event = self.endpoint.get_event().map_err(while_doing("cannot take events over Portals"))?;
            match event {
                Some(event) if event.kind() == EventKind::ConnectRequest => {
                    let request = event.into_request().ok_or_else(gone)?;
                    request.accept(0).map_err(while_doing("cannot accept over Portals"))?;
                }
                Some(event) if event.kind() == EventKind::Accept => left -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// Answers messages until an empty one comes.
    pub(super) fn serve(&mut self) -> Result<(), UserError> {
        loop {
            let event = self.endpoint.get_event().map_err(while_doing("cannot take events over Portals"))?;
            let Some(event) = event else { continue };
            let (Some(message), Some(connection)) = (event.received(), event.connection()) else { continue };
            let len = message.len();
            if len == 0 {
                return Ok(());
            }
            message.copy_to(&mut self.bytes[..len]);
            self.send(connection, len)?;
        }
    }

    fn send(&self, connection: Connection, len: usize) -> Result<(), UserError> {
        let sent = self.endpoint.send(connection, &self.bytes[..len], Notify::OnFailure(0));
        sent.map_err(while_doing("cannot send over Portals"))
    }

    /// Has the other end go back to what it did before.
    pub(super) fn leave(&self) -> Result<(), UserError> {
        self.endpoint
            .send_flags(*self.connections.first().ok_or_else(gone)?, &[], 0, Flags::BLOCKING)
            .map_err(while_doing("cannot send over Portals"))
    }

    /// So many messages there and back.
    pub(super) fn echo(&self, kind: Kind, len: usize, count: u64) -> Result<(), UserError> {
        let connection = *self.connections.get(kind as usize).ok_or_else(gone)?;
        for _ in 0..count {
            self.send(connection, len)?;
            loop {
                let event = self.endpoint.get_event().map_err(while_doing("cannot take events over Portals"))?;
                let Some(event) = event else { continue };
                if event.kind() == EventKind::Recv {
                    break;
                }
                event.outcome().map_err(|_| gone())?;
            }
        }
        Ok(())
    }

    /// So many writes, one at a time. Returns the time that the calls took which begin them.
    pub(super) fn write(&self, len: u64, count: u64) -> Result<Duration, UserError> {
        let connection = *self.connections.first().ok_or_else(gone)?;
        let remote = self.remote.as_ref().ok_or_else(gone)?;
        let mut overhead = Duration::ZERO;
        for _ in 0..count {
            let rma = Rma::new(self.local.handle(), remote, len);
            let begin = Instant::now();
            self.endpoint.rma(connection, &rma, 1, Flags::WRITE).map_err(while_doing("cannot write over Portals"))?;
            overhead += begin.elapsed();
            loop {
                let event = self.endpoint.get_event().map_err(while_doing("cannot take events over Portals"))?;
                let Some(event) = event else { continue };
                if event.kind() == EventKind::Send {
                    event.outcome().map_err(|_| gone())?;
                    break;
                }
            }
        }
        Ok(overhead)
    }
}
