//! A link to copy: UDP datagrams on the loop-back interface.
//!
//! A network that loses, doubles or reorders frames needs only what is here. The engine of
//! `core/reliable` does the rest: connections, order, retransmission, RMA, congestion control.
//! `docs/design/transports.md` says what to replace; `docs/design/sock.md` describes the link that
//! is made for speed. The lock of the endpoint is held in every call, so nothing here is shared.

#![forbid(unsafe_code)]

mod driver;
mod ready;

pub use driver::DRIVER;

use cci_mem::descriptors;
use cci_proto::{Address, ConnectError, Status, Time};
use cci_reliable::{Incoming, Link, Outgoing, Wait};
use cci_transport::{OpenError, monotonic};
use ready::Ready;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Scheme of the URIs.
const SCHEME: &str = "template-link://";

/// Largest frame, bytes. The loop-back interface carries 65,507; frames of this length fill a
/// receive buffer less quickly.
const MTU: u16 = 16_000;

/// Bytes that the system counts for a datagram beside its own, at most: one page.
const OVERHEAD: usize = 4096;

/// An endpoint's socket.
pub(crate) struct UdpLink {
    socket: UdpSocket,
    /// `template-link://127.0.0.1:PORT`.
    uri: String,
    ready: Ready,
    /// One frame: the one that is put together, or the one that has arrived.
    scratch: Box<[u8]>,
    recv_buffer: u32,
}

impl UdpLink {
    /// Opens a socket. `service`: its port; the system chooses one otherwise.
    pub(crate) fn open(service: Option<&str>) -> Result<Self, OpenError> {
        let port = match service.map(str::parse::<u16>) {
            None => 0,
            Some(Ok(port)) if port > 0 => port,
            _ => return Err(OpenError::new(Status::Inval, "the service is no port; give a number from 1 to 65535")),
        };
        let refused = |error| OpenError::system(format!("cannot open UDP port {port} on 127.0.0.1"), error);
        let socket = descriptors::udp((Ipv4Addr::LOCALHOST, port)).map_err(refused)?;
        // No call of a link blocks.
        socket.set_nonblocking(true).map_err(refused)?;
        let uri = format!("{SCHEME}{}", socket.local_addr().map_err(refused)?);
        let ready = Ready::new(&socket).map_err(|error| refused(error.into()))?;
        let buffer = rustix::net::sockopt::socket_recv_buffer_size(&socket).map_err(|error| refused(error.into()))?;
        // The engine sends no more at once than this. Whatever exceeds it is lost and sent again.
        let usable = buffer / (OVERHEAD + usize::from(MTU)) * usize::from(MTU);
        let recv_buffer = u32::try_from(usable).unwrap_or(u32::MAX);
        Ok(Self { socket, uri, ready, scratch: vec![0; MTU.into()].into(), recv_buffer })
    }
}

/// An address as the engine keeps it: the host's in 16 bytes, then the port.
fn to_address(from: SocketAddrV4) -> Address {
    let mut address = Address::default();
    address.0[..16].copy_from_slice(&from.ip().to_ipv6_mapped().octets());
    address.0[16..18].copy_from_slice(&from.port().to_be_bytes());
    address
}

/// The inverse of [`to_address`].
fn to_socket(address: &Address) -> SocketAddrV4 {
    let bytes = &address.0;
    SocketAddrV4::new(
        Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]),
        u16::from_be_bytes([bytes[16], bytes[17]]),
    )
}

impl Link for UdpLink {
    fn name(&self) -> &'static str {
        DRIVER.name
    }

    fn uri(&self) -> &str {
        &self.uri
    }

    fn now(&self) -> Time {
        monotonic()
    }

    fn mtu(&self) -> u16 {
        MTU
    }

    fn base_mtu(&self) -> u16 {
        // Loop-back fragments nothing. A real network gives what every path carries, and reports
        // `Incoming::TooBig` for more.
        MTU
    }

    fn recv_buffer(&self) -> u32 {
        self.recv_buffer
    }

    fn resolve(&mut self, uri: &str) -> Result<Address, ConnectError> {
        let address: SocketAddrV4 =
            uri.strip_prefix(SCHEME).and_then(|rest| rest.parse().ok()).ok_or(ConnectError::BadUri)?;
        // Anything else cannot be reached from a socket of the loop-back interface.
        if address.ip().is_loopback() && address.port() > 0 {
            Ok(to_address(address))
        } else {
            Err(ConnectError::BadUri)
        }
    }

    fn send_burst(&mut self, frames: &[Outgoing<'_>]) -> usize {
        for (at, frame) in frames.iter().enumerate() {
            let (head, tail) = self.scratch.split_at_mut(frame.head.len());
            head.copy_from_slice(frame.head);
            let len = head.len() + frame.piece.map_or(0, |piece| piece.copy_to(0, tail));
            match self.socket.send_to(&self.scratch[..len], to_socket(&frame.to)) {
                // The socket is full: the engine offers these again once `is_writable`.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return at,
                // Another error is one of this destination. The frame counts as lost, because a
                // frame that is offered for ever would hold up those to other destinations.
                Ok(_) | Err(_) => {}
            }
        }
        frames.len()
    }

    fn recv_burst(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        for count in 0..budget {
            match self.socket.recv_from(&mut self.scratch) {
                // Longer ones are cut, and the engine drops what is cut by its check.
                Ok((len, SocketAddr::V4(from))) => {
                    sink(Incoming::Frame { from: to_address(from), bytes: &self.scratch[..len], congested: false });
                }
                Ok((_, SocketAddr::V6(_))) => {}
                Err(_) => return count,
            }
        }
        budget
    }

    fn is_writable(&mut self) -> bool {
        self.ready.is_writable(&self.socket)
    }

    fn write_name(&self, to: &Address, text: &mut dyn fmt::Write) -> fmt::Result {
        write!(text, "{SCHEME}{}", to_socket(to))
    }

    fn path(&self, _: &Address) -> (String, String) {
        ("one UDP datagram a system call".into(), "it is a template: nothing is offloaded".into())
    }
}

impl Wait for UdpLink {
    fn handle(&self) -> BorrowedFd<'_> {
        self.ready.handle()
    }

    fn arm(&mut self, deadline: Option<Time>, wants_write: bool) -> bool {
        self.ready.arm(&self.socket, deadline, wants_write)
    }

    fn disarm(&mut self) {
        self.ready.disarm();
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.ready.waker()
    }
}
