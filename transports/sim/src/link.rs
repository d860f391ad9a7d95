//! An endpoint's end of a shared virtual network.

use crate::address::{self, SimAddress};
use crate::network::Time;
use crate::settings::Settings;
use crate::shared::{Arrival, RECV_BUFFER, Shared};
use cci_mem::descriptors;
use cci_proto::{Address, ConnectError};
use cci_reliable::{Groups, Incoming, Link, Outgoing, Wait};
use cci_transport::OpenError;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// An endpoint's end of a virtual network. `docs/design/sim.md` describes how time moves, and what
/// waiting means.
#[derive(Debug)]
pub struct SimLink {
    shared: Arc<Shared>,
    seat: u32,
    uri: String,
    mtu: u16,
    handle: Arc<OwnedFd>,
    /// A frame being put together.
    scratch: Vec<u8>,
}

impl SimLink {
    /// Opens an endpoint's end. `arguments`: the keys of its device; `service`: "NODE" or
    /// "NODE:PORT".
    ///
    /// # Errors
    ///
    /// A key's value is wrong, the port is taken, the network has another seed, or descriptors are
    /// short.
    pub fn open(arguments: &[(String, String)], service: Option<&str>) -> Result<Self, OpenError> {
        let settings = Settings::parse(arguments, service)?;
        let handle = descriptors::eventfd(0)
            .map_err(|error| OpenError::system("cannot open a sim endpoint: no eventfd", error))?;
        let handle = Arc::new(handle);
        let (shared, seat, node, port) = Shared::join(&settings, handle.clone())?;
        let uri = format!("sim://{}/{node}:{port}", shared.name);
        Ok(Self {
            shared,
            seat,
            uri,
            mtu: settings.mtu,
            handle,
            scratch: Vec::with_capacity(usize::from(settings.mtu)),
        })
    }
}

impl Drop for SimLink {
    fn drop(&mut self) {
        self.shared.lock().leave(self.seat);
    }
}

impl Link for SimLink {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn uri(&self) -> &str {
        &self.uri
    }

    fn now(&self) -> Time {
        self.shared.lock().now()
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn base_mtu(&self) -> u16 {
        // Links carry what their sender's key says; what a peer can take it says in the handshake.
        self.mtu
    }

    fn recv_buffer(&self) -> u32 {
        RECV_BUFFER
    }

    fn resolve(&mut self, uri: &str) -> Result<Address, ConnectError> {
        let (node, port) = address::endpoint(uri, &self.shared.name).ok_or(ConnectError::BadUri)?;
        self.shared.lock().resolve(node, port).ok_or(ConnectError::BadUri)
    }

    fn send_burst(&mut self, frames: &[Outgoing<'_>]) -> usize {
        let mut state = self.shared.lock();
        for frame in frames {
            if let Some(piece) = frame.piece {
                self.scratch.clear();
                self.scratch.extend_from_slice(frame.head);
                let head = self.scratch.len();
                self.scratch.resize(head + piece.len(), 0);
                piece.copy_to(0, &mut self.scratch[head..]);
                state.send(self.seat, &frame.to, &self.scratch);
            } else {
                state.send(self.seat, &frame.to, frame.head);
            }
        }
        frames.len()
    }

    fn recv_burst(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut count = 0;
        while count < budget {
            let Some(received) = self.shared.lock().take(self.seat, count == 0) else { break };
            let (from, bytes) = (received.from, received.frame.bytes.as_slice());
            sink(match received.what {
                Arrival::Frame => Incoming::Frame { from, bytes, congested: received.frame.congested },
                Arrival::Multicast(group) => Incoming::Multicast { group, from, bytes },
                Arrival::Refusal => Incoming::Refused { to: from, quoted: bytes, is_own: true },
            });
            self.shared.lock().recycle(received.frame);
            count += 1;
        }
        count
    }

    fn is_writable(&mut self) -> bool {
        true
    }

    fn write_name(&self, to: &Address, text: &mut dyn fmt::Write) -> fmt::Result {
        match SimAddress::of_address(to) {
            Some(SimAddress::Endpoint(node, port)) => {
                let number = self.shared.lock().number(node).unwrap_or_default();
                write!(text, "sim://{}/{number}:{port}", self.shared.name)
            }
            _ => write!(text, "sim://{}", self.shared.name),
        }
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn path(&self, _: &Address) -> (String, String) {
        let why = "frames travel in memory and in virtual time; there is nothing to offload";
        (format!("virtual network '{}'", self.shared.name), why.into())
    }

    fn groups(&mut self) -> Option<&mut dyn Groups> {
        Some(self)
    }
}

impl Wait for SimLink {
    fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    fn arm(&mut self, deadline: Option<Time>, _: bool) -> bool {
        self.shared.lock().arm(self.seat, deadline)
    }

    fn disarm(&mut self) {
        self.shared.lock().disarm(self.seat);
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.handle.clone()
    }
}

impl Groups for SimLink {
    fn join(&mut self, uri: &str, number: u32) -> Result<(), ConnectError> {
        let name = address::group(uri, &self.shared.name).ok_or(ConnectError::BadUri)?;
        self.shared.lock().join_group(self.seat, name, number);
        Ok(())
    }

    fn leave(&mut self, number: u32) {
        self.shared.lock().leave_group(self.seat, number);
    }

    fn address(&mut self, uri: &str) -> Result<Address, ConnectError> {
        let name = address::group(uri, &self.shared.name).ok_or(ConnectError::BadUri)?;
        let group = self.shared.lock().group(name);
        Ok(address::SimAddress::Group(group).to_address())
    }
}
