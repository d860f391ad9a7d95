//! The outward socket: an endpoint reaches by it the hosts to which the routes do not lead from the
//! address of its own socket. Nobody connects to the endpoint there (`docs/design/sock.md`).

use super::bound::Bound;
use crate::address;
use crate::ready::Ready;
use crate::socket::{self, How};
use crate::sys;
use cci_mem::cancellation::Uncancelled;
use cci_proto::Address;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{bind, connect, getsockname};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The outward socket, and whether the handle has it.
pub(super) struct Outward {
    pub(super) bound: Bound,
    is_watched: bool,
}

impl Outward {
    /// Opens it beside the own socket. It is bound to no address, because which one leads to a peer
    /// is for the routes to say, and to any free port.
    #[cold]
    pub(super) fn open(own: &Bound, mtu: u16, ready: &Ready) -> Result<Self, Errno> {
        let _uncancelled = Uncancelled::new();
        let how = How { wants_marks: true, is_outward: true, ..own.how };
        let socket = socket_beside(own.socket.as_fd(), how.is_v4)?;
        socket::configure(&socket, how.is_v4, how.wants_marks)?;
        socket::prepare_to_receive(&socket, how)?;
        let any: IpAddr = if how.is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        bind(&socket, &SocketAddr::new(any, 0))?;
        let mut outward = Self { bound: Bound::new(socket, how, mtu), is_watched: false };
        if ready.watches_frames() && !outward.watch(ready, true) {
            return Err(Errno::NOMEM);
        }
        Ok(outward)
    }

    /// Chooses whether frames make the handle readable; returns whether they do.
    pub(super) fn watch(&mut self, ready: &Ready, on: bool) -> bool {
        if self.is_watched != on && ready.watch_outward(&self.bound.socket, on).is_ok() {
            self.is_watched = on;
        }
        self.is_watched
    }
}

/// The address of this host from which frames to `to` leave, as the routes say: `to` itself where
/// it is one of this host.
///
/// # Errors
///
/// No route leads there, or the system has no socket to ask by.
#[cold]
pub(super) fn source_of(own: BorrowedFd<'_>, to: &Address) -> Result<IpAddr, Errno> {
    let _uncancelled = Uncancelled::new();
    let probe = socket_beside(own, address::is_v4(to))?;
    connect(&probe, &address::socket(to))?;
    Ok(getsockname(&probe).and_then(SocketAddr::try_from)?.ip())
}

/// A socket in the network name space of the own one, where a thread that has moved makes none. On
/// a system that reports no name spaces (before Linux 5.14) it is in the thread's.
fn socket_beside(own: BorrowedFd<'_>, is_v4: bool) -> Result<OwnedFd, Errno> {
    let socket = socket::datagram_socket(is_v4)?;
    if sys::same_network(own, socket.as_fd()) == Some(false) { Err(Errno::XDEV) } else { Ok(socket) }
}
