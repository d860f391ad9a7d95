//! Where a store listens: at a port, or at a name that only processes of this user reach.

use cci_admission::Origin;
use cci_mem::descriptors;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::time::Duration;

/// How ranks reach a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// By TCP: ranks prove the secret, or the user allows anybody.
    Port(SocketAddr),
    /// By the abstract Unix socket that has this address in its name: the system names the user of
    /// each side, so that no other user of the host takes the number of a rank.
    User(SocketAddr),
}

/// The listening socket of a store.
pub(crate) enum Listener {
    Port(TcpListener),
    User(UnixListener),
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Port(listener) => listener.as_fd(),
            Self::User(listener) => listener.as_fd(),
        }
    }
}

fn text_of(address: SocketAddr) -> String {
    let user = rustix::process::geteuid().as_raw();
    format!("cci-job/{user}/{address}")
}

fn name_of(address: SocketAddr) -> io::Result<UnixAddress> {
    UnixAddress::from_abstract_name(text_of(address))
}

fn is_of_this_user(socket: &UnixStream) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

impl Listener {
    pub(crate) fn bind(place: Place) -> io::Result<Self> {
        match place {
            Place::Port(address) => descriptors::listener(address).map(Self::Port),
            Place::User(address) => {
                let name = name_of(address)?;
                Ok(Self::User(descriptors::above_standard(UnixListener::bind_addr(&name)?)?))
            }
        }
    }

    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Port(listener) => listener.set_nonblocking(true),
            Self::User(listener) => listener.set_nonblocking(true),
        }
    }

    /// The next connection, and where it comes from. `None`: it is of another user, or has ended.
    pub(crate) fn newcomer(&self) -> io::Result<Option<(OwnedFd, Origin)>> {
        match self {
            Self::Port(listener) => {
                let socket = descriptors::accept_stream(listener)?;
                // Small frames are to leave at once.
                let from = socket.set_nodelay(true).and_then(|()| socket.peer_addr());
                Ok(from.ok().map(|from| (socket.into(), Origin::of(from.ip()))))
            }
            Self::User(listener) => {
                let socket = UnixStream::from(descriptors::accept(listener)?);
                Ok(is_of_this_user(&socket).then(|| (socket.into(), Origin::Here)))
            }
        }
    }
}

/// Connects to the store at a place, at most for `limit`.
pub(crate) fn connect(place: Place, limit: Duration) -> io::Result<OwnedFd> {
    match place {
        Place::Port(address) => {
            let socket = descriptors::stream_within(&address, limit)?;
            socket.set_nodelay(true)?;
            Ok(socket.into())
        }
        Place::User(address) => {
            // It keeps its turn where the store has no room for it, at most for the limit.
            let socket = descriptors::socket(AddressFamily::UNIX, SocketType::STREAM)?;
            set_socket_timeout(&socket, Timeout::Send, Some(limit.max(Duration::from_millis(1))))?;
            rustix::io::ioctl_fionbio(&socket, false)?;
            rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(text_of(address).as_bytes())?)?;
            rustix::io::ioctl_fionbio(&socket, true)?;
            let socket = UnixStream::from(socket);
            match is_of_this_user(&socket) {
                true => Ok(socket.into()),
                false => Err(io::Error::other("its name is taken by another user")),
            }
        }
    }
}
