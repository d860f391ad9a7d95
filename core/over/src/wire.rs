//! The word that comes with each message, requests and answers (`docs/design/over.md`).

use cci_proto::Attribute;

/// The greatest number of an endpoint.
pub const MOST_ENDPOINTS: u32 = (1 << 24) - 2;

const VERSION: u8 = 1;
const TAG: u64 = (1 << 28) - 1;

/// What a message says about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A message of the program.
    Message = 0,
    /// The peer's program has taken half a window of messages.
    Credit = 1,
    /// A message waits for a receive slot.
    NotReady = 2,
    /// The connection has ended.
    Close = 3,
    /// Asks whether the peer is there.
    Ping = 4,
    /// Answers [`Verb::Ping`].
    Pong = 5,
    /// The server has accepted.
    Accept = 6,
    /// It has not.
    Reject = 7,
    /// It names another endpoint.
    Redirect = 8,
    /// A client asks for a connection.
    Request = 9,
    /// It has given up.
    Withdraw = 10,
    /// Asks for an atomic operation.
    Atomic = 11,
    /// Answers [`Verb::Atomic`].
    AtomicDone = 12,
    /// What networks send each other ([`Network::on_own`](crate::Network::on_own)).
    Own = 13,
    /// Data of a transfer, which only networks see.
    Data = 14,
}

/// The word that comes with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The receiver's number of the connection.
    pub to: u32,
    /// What the message is.
    pub verb: Verb,
    /// The place among the reliable messages of the connection.
    pub sequence: u8,
    /// The last 28 bits of the connection's tag.
    pub tag: u32,
}

/// What both ends of a connection have of its tag in each header.
#[must_use]
pub fn short_tag(tag: u64) -> u32 {
    (tag & TAG) as u32
}

impl Header {
    /// The header as a word.
    #[inline]
    #[must_use]
    pub fn word(self) -> u64 {
        u64::from(self.to) << 40 | (self.verb as u64) << 36 | u64::from(self.sequence) << 28 | u64::from(self.tag) & TAG
    }

    /// The header of a word; `None`: there is no such verb.
    #[inline]
    #[must_use]
    pub fn of(word: u64) -> Option<Self> {
        use Verb::{
            Accept, Atomic, AtomicDone, Close, Credit, Data, Message, NotReady, Own, Ping, Pong, Redirect, Reject,
            Request, Withdraw,
        };
        const VERBS: [Verb; 15] = [
            Message, Credit, NotReady, Close, Ping, Pong, Accept, Reject, Redirect, Request, Withdraw, Atomic,
            AtomicDone, Own, Data,
        ];
        let verb = *VERBS.get((word >> 36 & 0xf) as usize)?;
        Some(Self { to: (word >> 40) as u32, verb, sequence: (word >> 28) as u8, tag: (word & TAG) as u32 })
    }
}

/// The header of a control message.
pub(crate) fn header(to: u32, verb: Verb, sequence: u8, tag: u64) -> u64 {
    Header { to, verb, sequence, tag: short_tag(tag) }.word()
}

/// The beginning of a request, and of an answer that accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The number of the sender's endpoint.
    pub endpoint: u32,
    /// The sender's number of the connection.
    pub number: u32,
    /// What the connection keeps to.
    pub attribute: Attribute,
    /// Bytes of the longest message that the sender takes.
    pub max_send_size: u32,
    /// Messages that the receiver of this may send before one comes back as a credit.
    pub window: u32,
    /// The tag of the connection: random.
    pub tag: u64,
    /// 0, or what a redirected client presents.
    pub token: u64,
}

impl Opening {
    /// Bytes of it.
    pub const LEN: usize = 40;

    /// Appends it to bytes.
    pub fn emit(&self, to: &mut Vec<u8>) {
        to.extend([VERSION, 0, 0, self.attribute as u32 as u8]);
        for word in [self.endpoint, self.number, self.max_send_size, self.window] {
            to.extend(word.to_le_bytes());
        }
        to.extend([0; 4]);
        to.extend(self.tag.to_le_bytes());
        to.extend(self.token.to_le_bytes());
    }

    /// Reads it, and returns what is behind it; `None`: it is malformed, or of another version.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
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
#[must_use]
pub fn words<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
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
    fn headers_and_openings_come_back() {
        let header = Header { to: 0xab_cdef, verb: Verb::AtomicDone, sequence: 0x9f, tag: 0xfed_cba9 };
        assert_eq!(Header::of(header.word()), Some(header));
        assert_eq!(Header::of(15 << 36), None, "no such verb");
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
