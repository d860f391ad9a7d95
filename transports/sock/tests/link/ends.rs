//! What the tests of this crate share: links on the loop-back interface, and a copy of what they
//! bring.

use cci_mem::memory::Span;
use cci_proto::Address;
use cci_reliable::{Incoming, Link, Outgoing, Wait};
use cci_sock::Sock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a link brought, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Frame { from: Address, bytes: Vec<u8>, congested: bool },
    Unasked { from: Address, bytes: Vec<u8> },
    Multicast { group: u32, from: Address, bytes: Vec<u8> },
    Refused { to: Address, quoted: Vec<u8>, is_own: bool },
    TooBig { to: Address, quoted: Vec<u8>, mtu: u16 },
    Faulted(Span),
    Down,
}

impl From<Incoming<'_>> for Got {
    fn from(incoming: Incoming<'_>) -> Self {
        match incoming {
            Incoming::Unasked { from, bytes, .. } => Self::Unasked { from, bytes: bytes.to_vec() },
            Incoming::Frame { from, bytes, congested } => Self::Frame { from, bytes: bytes.to_vec(), congested },
            Incoming::Multicast { group, from, bytes } => Self::Multicast { group, from, bytes: bytes.to_vec() },
            Incoming::Refused { to, quoted, is_own } => Self::Refused { to, quoted: quoted.to_vec(), is_own },
            Incoming::TooBig { to, quoted, mtu } => Self::TooBig { to, quoted: quoted.to_vec(), mtu },
            Incoming::Down { .. } => Self::Down,
            Incoming::Faulted { span } => Self::Faulted(span),
        }
    }
}

/// Loop-back addresses that this host has.
pub(crate) fn homes() -> Vec<&'static str> {
    ["127.0.0.1", "::1"].into_iter().filter(|ip| std::net::UdpSocket::bind((*ip, 0)).is_ok()).collect()
}

/// A link at an address, with more keys.
pub(crate) fn open(ip: &str, more: &[(&str, &str)]) -> Sock {
    try_open(&[&[("ip", ip)], more].concat(), None).expect("a link on the loop-back interface")
}

/// A link with these keys.
pub(crate) fn try_open(keys: &[(&str, &str)], service: Option<&str>) -> Result<Sock, cci_transport::OpenError> {
    let keys: Vec<_> = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Sock::open(&keys, service)
}

/// Waits until a handle is readable; false: it is not within `seconds`.
pub(crate) fn wait(link: &Sock, seconds: i64) -> bool {
    let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
    poll(&mut [PollFd::new(&link.handle(), PollFlags::IN)], Some(&limit)).expect("poll") > 0
}

/// Takes what arrives until there are `count`.
pub(crate) fn take(link: &mut Sock, count: usize) -> Vec<Got> {
    let mut got = Vec::new();
    while got.len() < count {
        if link.recv_burst(64, &mut |incoming| got.push(incoming.into())) == 0 {
            assert!(wait(link, 10), "only {} of {count} came", got.len());
        }
    }
    got
}

impl Got {
    /// The bytes of a frame.
    pub(crate) fn bytes(self) -> Vec<u8> {
        match self {
            Self::Frame { bytes, .. } | Self::Multicast { bytes, .. } => bytes,
            other => panic!("no frame: {other:?}"),
        }
    }
}

/// These bytes with the beginning of a frame's header, which says how long the frame is: `more`
/// bytes of a piece follow. Frames that the system has put together are told apart by it.
pub(crate) fn with_length(mut bytes: Vec<u8>, more: usize) -> Vec<u8> {
    let len = u16::try_from(bytes.len() + more).unwrap_or(0);
    if bytes.len() >= cci_proto::wire::HEADER {
        bytes[0] = 0xC0 | cci_proto::wire::VERSION;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
    }
    bytes
}

/// A frame without a piece.
pub(crate) fn frame(to: Address, head: &[u8]) -> Outgoing<'_> {
    Outgoing { to, head, piece: None, probe: false }
}

/// A link at an IPv6 address of an interface that knows groups, if this host has one.
pub(crate) fn on_link_local() -> Option<Sock> {
    let file = std::fs::read_to_string("/proc/net/if_inet6").ok()?;
    // address, index, prefix length, scope (20: link-local), flags (40: tentative), name
    let line = file.lines().find(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.len() == 6 && words[3] == "20" && words[4] == "80"
    })?;
    let (digits, name) = (line.split_whitespace().next()?, line.split_whitespace().last()?);
    let groups: Vec<_> = (0..8).map(|at| digits.get(at * 4..at * 4 + 4)).collect::<Option<_>>()?;
    try_open(&[("ip", &groups.join(":")), ("interface", name)], None).ok()
}
