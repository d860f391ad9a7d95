//! Addresses, their names in system calls, and URIs.
//!
//! An [`Address`] of this link is 24 bytes: IP 16 (IPv4 as IPv4-mapped IPv6), port 2, flags 1, TTL
//! 1, scope 4, numbers in network order. The scope is the index of an interface: for a group
//! always, for an IPv6 link-local address too, else 0. A flag marks peers of the outward socket.

use cci_proto::{Address, decimal};
use cci_transport::HostAndPort;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Begins every URI of this transport.
pub(crate) const SCHEME: &str = "sock://";

/// Flag of an address: it is a group.
const GROUP: u8 = 1;
/// Flag of an address: frames to it leave by the outward socket, and frames from it came there.
const OUTWARD: u8 = 2;
/// Bytes of the kernel's `sockaddr_in` and `sockaddr_in6`.
const NAME_V4: u8 = 16;
const NAME_V6: u8 = 28;

/// How a frame to a group leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Index of the interface; 0: as the routes say.
    pub(crate) interface: u32,
    /// Routers that it may pass, and one.
    pub(crate) ttl: u8,
}

/// An address as system calls take it: a `sockaddr_in` or `sockaddr_in6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) bytes: [u8; NAME_V6 as usize],
    pub(crate) len: u8,
}

impl Name {
    /// Names nothing; room for any.
    pub(crate) const EMPTY: Self = Self { bytes: [0; NAME_V6 as usize], len: NAME_V6 };

    pub(crate) fn of(address: &Address) -> Self {
        let from = &address.0;
        let mut name = Self::EMPTY;
        if is_v4(address) {
            name.bytes[..2].copy_from_slice(&family(libc::AF_INET));
            name.bytes[2..4].copy_from_slice(&from[16..18]);
            name.bytes[4..8].copy_from_slice(&from[12..16]);
            name.len = NAME_V4;
        } else {
            name.bytes[..2].copy_from_slice(&family(libc::AF_INET6));
            name.bytes[2..4].copy_from_slice(&from[16..18]);
            name.bytes[8..24].copy_from_slice(&from[..16]);
            name.bytes[24..28].copy_from_slice(&scope(address).to_ne_bytes());
        }
        name
    }

    /// The address that the kernel wrote, `len` bytes of it.
    pub(crate) fn address(&self, len: usize) -> Address {
        let bytes = &self.bytes;
        let mut address = Address::default();
        if len >= usize::from(NAME_V4) && bytes[..2] == family(libc::AF_INET) {
            address.0[10..12].fill(0xff);
            address.0[12..16].copy_from_slice(&bytes[4..8]);
            address.0[16..18].copy_from_slice(&bytes[2..4]);
        } else if len >= usize::from(NAME_V6) && bytes[..2] == family(libc::AF_INET6) {
            address.0[..16].copy_from_slice(&bytes[8..24]);
            address.0[16..18].copy_from_slice(&bytes[2..4]);
            let [a, b, c, d] = [bytes[24], bytes[25], bytes[26], bytes[27]];
            address.0[20..].copy_from_slice(&u32::from_ne_bytes([a, b, c, d]).to_be_bytes());
        }
        address
    }
}

#[expect(clippy::cast_possible_truncation, reason = "address families are small numbers")]
const fn family(family: i32) -> [u8; 2] {
    (family as u16).to_ne_bytes()
}

/// The address of a socket.
pub(crate) fn of_socket(socket: &SocketAddr) -> Address {
    let (ip, scope) = match socket {
        SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
    };
    let mut address = Address::default();
    address.0[..16].copy_from_slice(&ip.octets());
    address.0[16..18].copy_from_slice(&socket.port().to_be_bytes());
    address.0[20..].copy_from_slice(&scope.to_be_bytes());
    address
}

/// The socket at an address.
pub(crate) fn socket(address: &Address) -> SocketAddr {
    match ip(address) {
        IpAddr::V6(ip) => SocketAddrV6::new(ip, port(address), 0, scope(address)).into(),
        ip => SocketAddr::new(ip, port(address)),
    }
}

/// The address of a group, and how frames to it leave.
pub(crate) fn of_group(group: IpAddr, port: u16, way: Way) -> Address {
    let mut address = of_socket(&SocketAddr::new(group, port));
    address.0[18] = GROUP;
    address.0[19] = way.ttl;
    address.0[20..].copy_from_slice(&way.interface.to_be_bytes());
    address
}

/// How frames to this address leave, if it is a group.
pub(crate) fn way(address: &Address) -> Option<Way> {
    (address.0[18] & GROUP != 0).then(|| Way { interface: scope(address), ttl: address.0[19] })
}

/// The same address, behind the outward socket.
pub(crate) fn outward(mut address: Address) -> Address {
    address.0[18] |= OUTWARD;
    address
}

/// Whether frames to this address leave by the outward socket.
#[inline]
pub(crate) fn is_outward(address: &Address) -> bool {
    address.0[18] & OUTWARD != 0
}

/// Whether frames to this address leave by the own socket.
pub(crate) fn is_by_own(address: &Address) -> bool {
    !is_outward(address)
}

pub(crate) fn scope(address: &Address) -> u32 {
    let [a, b, c, d] = [address.0[20], address.0[21], address.0[22], address.0[23]];
    u32::from_be_bytes([a, b, c, d])
}

pub(crate) fn is_v4(address: &Address) -> bool {
    address.0[..10] == [0; 10] && address.0[10..12] == [0xff; 2]
}

/// The IP of an address.
pub(crate) fn ip(address: &Address) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&address.0[..16]);
    let ip = Ipv6Addr::from(octets);
    ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
}

/// The port of an address.
pub(crate) fn port(address: &Address) -> u16 {
    u16::from_be_bytes([address.0[16], address.0[17]])
}

/// For sentences.
pub(crate) fn shown(address: &Address) -> String {
    let mut text = String::new();
    // A string takes everything.
    let _ = write_shown(address, &mut text);
    text
}

/// As [`shown`], without memory of its own.
pub(crate) fn write_shown(address: &Address, text: &mut dyn fmt::Write) -> fmt::Result {
    match ip(address) {
        IpAddr::V4(ip) => write!(text, "{ip}:{}", port(address)),
        IpAddr::V6(ip) => write!(text, "{}", SocketAddrV6::new(ip, port(address), 0, scope(address))),
    }
}

/// A URI, taken apart: `sock://HOST:PORT[?interface=NAME|IP][&ttl=N]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uri<'a> {
    pub(crate) at: HostAndPort<'a>,
    pub(crate) interface: Option<&'a str>,
    pub(crate) ttl: Option<u8>,
}

impl<'a> Uri<'a> {
    /// Takes a URI apart; `None`: not one of this transport.
    pub(crate) fn parse(uri: &'a str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME)?;
        let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut parsed = Self { at: HostAndPort::parse(authority)?, interface: None, ttl: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=')? {
                ("interface", name) if !name.is_empty() => parsed.interface = Some(name),
                ("ttl", ttl) => parsed.ttl = Some(decimal(ttl).filter(|ttl| *ttl != 0)?),
                _ => return None,
            }
        }
        Some(parsed)
    }
}

#[cfg(test)]
mod tests;
