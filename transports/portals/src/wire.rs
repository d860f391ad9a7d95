//! What goes into match bits, header data and payloads (`docs/design/over-portals.md`).

use crate::sys::Process;
use cci_proto::{Attribute, decimal};
use std::net::Ipv4Addr;

/// The portal index of messages.
pub(crate) const MESSAGES: u32 = 40;
/// The portal index of registrations.
pub(crate) const REGISTRATIONS: u32 = 41;
/// The bits that a target does not compare: the sender's token.
pub(crate) const TOKEN: u64 = u32::MAX as u64;
/// The greatest number of an endpoint.
pub(crate) const MOST_ENDPOINTS: u32 = NOBODY - 1;
/// The number of the process's own entry.
pub(crate) const NOBODY: u32 = (1 << 24) - 1;

const SCHEME: &str = "portals://";
const VERSION: u8 = 1;
const TAG: u64 = (1 << 28) - 1;

/// For which match entries of an endpoint a put is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Reliable = 0,
    Unreliable = 1,
    Setup = 2,
    Wake = 3,
    Sentinel = 4,
}

/// An endpoint of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) process: Process,
    pub(crate) number: u32,
}

impl Address {
    /// The match bits of a class, with this token.
    #[inline]
    pub(crate) fn bits(number: u32, class: Class, token: u32) -> u64 {
        u64::from(number) << 40 | (class as u64) << 36 | u64::from(token)
    }

    pub(crate) fn class(bits: u64) -> Option<Class> {
        match bits >> 36 & 0xf {
            0 => Some(Class::Reliable),
            1 => Some(Class::Unreliable),
            2 => Some(Class::Setup),
            _ => None,
        }
    }

    /// The endpoint that a URI names.
    pub(crate) fn of_uri(uri: &str) -> Option<Self> {
        let (process, number) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let (nid, pid) = process.split_once(':')?;
        let nid = nid.parse::<Ipv4Addr>().ok()?.to_bits();
        let number = decimal(number).filter(|number| *number <= MOST_ENDPOINTS)?;
        Some(Self { process: Process { nid, pid: decimal(pid)? }, number })
    }

    pub(crate) fn uri(&self) -> String {
        let Self { process: Process { nid, pid }, number } = self;
        format!("{SCHEME}{}:{pid}/{number}", Ipv4Addr::from_bits(*nid))
    }
}

/// What a put says about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Message = 0,
    /// The peer's program has taken half a window of messages.
    Credit = 1,
    /// A message waits for a receive slot.
    NotReady = 2,
    Close = 3,
    Ping = 4,
    Pong = 5,
    Accept = 6,
    Reject = 7,
    Redirect = 8,
    Request = 9,
    Withdraw = 10,
    Atomic = 11,
    AtomicDone = 12,
}

/// The header data of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The receiver's number of the connection.
    pub(crate) to: u32,
    pub(crate) verb: Verb,
    pub(crate) sequence: u8,
    pub(crate) tag: u32,
}

/// What both ends of a connection have of its tag in each header.
pub(crate) fn short_tag(tag: u64) -> u32 {
    (tag & TAG) as u32
}

impl Header {
    #[inline]
    pub(crate) fn word(self) -> u64 {
        u64::from(self.to) << 40 | (self.verb as u64) << 36 | u64::from(self.sequence) << 28 | u64::from(self.tag) & TAG
    }

    #[inline]
    pub(crate) fn of(word: u64) -> Option<Self> {
        use Verb::{
            Accept, Atomic, AtomicDone, Close, Credit, Message, NotReady, Ping, Pong, Redirect, Reject, Request,
            Withdraw,
        };
        const VERBS: [Verb; 13] = [
            Message, Credit, NotReady, Close, Ping, Pong, Accept, Reject, Redirect, Request, Withdraw, Atomic,
            AtomicDone,
        ];
        let verb = *VERBS.get((word >> 36 & 0xf) as usize)?;
        Some(Self { to: (word >> 40) as u32, verb, sequence: (word >> 28) as u8, tag: (word & TAG) as u32 })
    }
}

/// The beginning of a request, and of an answer that accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The sender's endpoint, and its number of the connection.
    pub(crate) endpoint: u32,
    pub(crate) number: u32,
    pub(crate) attribute: Attribute,
    pub(crate) max_send_size: u32,
    /// Messages that the receiver of this may send before one comes back as a credit.
    pub(crate) window: u32,
    pub(crate) tag: u64,
    /// 0, or what a redirected client presents.
    pub(crate) token: u64,
}

impl Opening {
    pub(crate) const LEN: usize = 40;

    pub(crate) fn emit(&self, to: &mut Vec<u8>) {
        to.extend([VERSION, 0, 0, self.attribute as u32 as u8]);
        for word in [self.endpoint, self.number, self.max_send_size, self.window] {
            to.extend(word.to_le_bytes());
        }
        to.extend([0; 4]);
        to.extend(self.tag.to_le_bytes());
        to.extend(self.token.to_le_bytes());
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (front, rest) = bytes.split_at_checked(Self::LEN)?;
        let word = |at: usize| front[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let long = |at: usize| front[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let attribute = Attribute::from_u32(front[3].into())?;
        let opening = Self {
            endpoint: word(4),
            number: word(8),
            attribute,
            max_send_size: word(12),
            window: word(16),
            tag: long(24),
            token: long(32),
        };
        let is_fine = front[0] == VERSION && opening.endpoint <= MOST_ENDPOINTS && opening.max_send_size >= 64;
        (is_fine && (2..=64).contains(&opening.window)).then_some((opening, rest))
    }
}

/// Words of a payload, little-endian; `None`: there are not so many.
pub(crate) fn words<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let mut words = [0; N];
    if bytes.len() != N * 8 {
        return None;
    }
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_uri() {
        let address = Address { process: Process { nid: 0x7f00_0001, pid: 12 }, number: 7 };
        assert_eq!(address.uri(), "portals://127.0.0.1:12/7");
        assert_eq!(Address::of_uri(&address.uri()), Some(address));
        for wrong in ["", "portals://", "portals://1", "portals://127.0.0.1:1", "portals://127.0.0.1:1/16777215"] {
            assert_eq!(Address::of_uri(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn headers_and_openings_come_back() {
        let header = Header { to: 0xab_cdef, verb: Verb::AtomicDone, sequence: 0x9f, tag: 0xfed_cba9 };
        assert_eq!(Header::of(header.word()), Some(header));
        assert_eq!(Header::of(13 << 36), None, "no such verb");
        let opening = Opening {
            endpoint: 1,
            number: 2,
            attribute: Attribute::ReliableUnordered,
            max_send_size: 8192,
            window: 32,
            tag: 5,
            token: 6,
        };
        let mut bytes = Vec::new();
        opening.emit(&mut bytes);
        bytes.push(9);
        assert_eq!(Opening::parse(&bytes), Some((opening, &[9][..])));
        assert_eq!(Opening::parse(&bytes[..Opening::LEN - 1]), None);
        bytes[0] = 2;
        assert_eq!(Opening::parse(&bytes), None, "another version");
    }
}
