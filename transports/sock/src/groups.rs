//! Multicast groups: one socket for each that was joined, bound to it and so deaf to others.

use crate::address::{self, Uri, Way};
use crate::socket::{self, How};
use crate::sockets::{Receiver, Stream};
use crate::sys::{self, Choice};
use cci_proto::{Address, ConnectError};
use cci_transport::{LocalAddress, interface_index};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{bind, sockopt};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};

/// TTL of frames to a group unless its URI has one: they stay on their link.
const TTL: u8 = 1;
/// Groups that one call looks at.
const AT_ONCE: usize = 4;

/// A group that a URI names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupUri {
    ip: IpAddr,
    port: u16,
    way: Way,
}

impl GroupUri {
    /// Understands the URI of a group, for an endpoint at `local`.
    pub(crate) fn parse(uri: &str, local: &LocalAddress, socket: &OwnedFd) -> Result<Self, ConnectError> {
        let uri = Uri::parse(uri).ok_or(ConnectError::BadUri)?;
        let (ip, zone) = uri.at.literal().ok_or(ConnectError::BadUri)?;
        if !ip.is_multicast() || ip.is_ipv4() != local.ip.is_ipv4() {
            return Err(ConnectError::BadUri);
        }
        let interface = match uri.interface.or(zone) {
            None => local.index,
            Some(name) => match name.parse() {
                Ok(own) => LocalAddress::choose(Some(own), None)
                    .ok()
                    .and_then(|local| interface_index(socket, &local.interface))
                    .ok_or(ConnectError::BadUri)?,
                Err(_) => interface_index(socket, name).ok_or(ConnectError::BadUri)?,
            },
        };
        Ok(Self { ip, port: uri.at.port, way: Way { interface, ttl: uri.ttl.unwrap_or(TTL) } })
    }

    pub(crate) fn address(&self) -> Address {
        address::of_group(self.ip, self.port, self.way)
    }

    /// Opens a socket that has joined the group and receives nothing else.
    fn join(&self, how: How) -> Result<OwnedFd, Errno> {
        let is_v4 = self.ip.is_ipv4();
        let socket = socket::datagram_socket(is_v4)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Otherwise it would receive this group on every interface on which another program joined
        // it.
        match sys::choose(socket.as_fd(), is_v4, Choice::AllGroups, 0) {
            Ok(()) | Err(Errno::NOPROTOOPT) => {}
            Err(error) => return Err(error),
        }
        let index = self.way.interface;
        match self.ip {
            IpAddr::V4(group) => {
                bind(&socket, &SocketAddr::new(self.ip, self.port))?;
                sockopt::set_ip_add_membership_with_ifindex(&socket, &group, &Ipv4Addr::UNSPECIFIED, index)?;
            }
            IpAddr::V6(group) => {
                bind(&socket, &SocketAddrV6::new(group, self.port, 0, index))?;
                sockopt::set_ipv6_add_membership(&socket, &group, index)?;
            }
        }
        socket::prepare_to_receive(&socket, how)?;
        Ok(socket)
    }
}

struct Group {
    number: u32,
    socket: OwnedFd,
    stream: Stream,
}

/// The groups that were joined.
#[derive(Default)]
pub(crate) struct Groups {
    joined: Vec<Group>,
    /// Where the next look begins.
    turn: usize,
}

impl Groups {
    pub(crate) fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    /// Joins a group; `watch` sees its socket.
    pub(crate) fn join(
        &mut self,
        named: &GroupUri,
        number: u32,
        how: How,
        watch: impl FnOnce(&OwnedFd) -> Result<(), Errno>,
    ) -> Result<(), ConnectError> {
        let joined = named.join(how).and_then(|socket| {
            watch(&socket)?;
            Ok(socket)
        });
        let socket = joined.map_err(|error| match error {
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::NOSPC => ConnectError::NoMemory,
            _ => ConnectError::BadUri,
        })?;
        self.joined.push(Group { number, socket, stream: Stream::of(how) });
        Ok(())
    }

    /// Leaves a group; its socket, to be closed.
    pub(crate) fn leave(&mut self, number: u32) -> Option<OwnedFd> {
        let at = self.joined.iter().position(|group| group.number == number)?;
        Some(self.joined.swap_remove(at).socket)
    }

    /// Takes datagrams of one group, a few groups looked at. False: there were none.
    pub(crate) fn fill(&mut self, receiver: &mut Receiver) -> bool {
        for _ in 0..self.joined.len().min(AT_ONCE) {
            self.turn = (self.turn + 1) % self.joined.len();
            let Group { number, socket, stream } = &mut self.joined[self.turn];
            if receiver.fill(socket.as_fd(), stream, Some(*number)).is_ok() {
                return true;
            }
        }
        false
    }
}
