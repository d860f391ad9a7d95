//! What a message looks like: a header of 8 bytes, the arguments, and what the kind adds. All
//! numbers are little-endian. `docs/design/am.md` has the table.

use crate::sort::Sort;
use cci::RmaHandle;

/// Bytes of a header.
pub(crate) const HEADER: usize = 8;
/// The most arguments of a message.
pub(crate) const MAX_ARGUMENTS: usize = 16;
/// The most bytes of a header with its arguments.
pub(crate) const HEAD: usize = HEADER + 4 * MAX_ARGUMENTS;
/// Bytes that a bulk message has after its arguments: offset, length, epoch.
pub(crate) const SPAN: usize = 20;
/// Bytes of a notice of a segment, header included: handle, length.
pub(crate) const SEGMENT: usize = HEADER + 40;
/// Requests without a reply that one message reports: 56 bytes with its header.
pub(crate) const BATCH: usize = 12;
/// The flag of a reply that brings the credit of its request back.
pub(crate) const KEEP: u8 = 1;
/// The version of this format, the first byte of a hello.
const VERSION: u8 = 1;
/// Bytes of a hello before the name.
const HELLO: usize = 8 + 8 + SEGMENT;

/// Declares the kinds of messages.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $name:ident = $number:literal)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($(#[$doc])+ $name = $number,)+
        }

        impl Kind {
            fn of(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// A request without payload.
    Request = 1
    /// The first part of a request whose payload is cut: total length, bytes.
    RequestLong = 2
    /// A request whose payload is in the target's segment: offset, length, epoch.
    RequestBulk = 3
    /// A bulk request for which the target has no such segment; the flags are the status.
    RequestUnplaced = 4
    /// A reply without payload.
    Reply = 5
    /// The first part of a reply whose payload is cut.
    ReplyLong = 6
    /// A reply whose payload is in the requester's segment.
    ReplyBulk = 7
    /// A further part of what was cut last on this connection.
    Part = 8
    /// A request that was refused; the handler's byte is the status.
    Returned = 9
    /// Requests that ended without a reply: their numbers. The handler's byte counts the credits
    /// that come back with them.
    Ended = 10
    /// The requester has no credit and wants one.
    Want = 11
    /// Credits for the requester: their number stands in `id`.
    Grant = 12
    /// The target wants the credits that the requester does not use.
    Revoke = 13
    /// Credits that the requester gives back: their number stands in `id`.
    Release = 14
    /// The sender's segment: its epoch in `id`, handle, length; a length of 0 is none.
    Segment = 15
    /// A request with its payload, which may be empty, after the arguments.
    RequestMedium = 16
    /// A reply with its payload, which may be empty, after the arguments.
    ReplyMedium = 17
}

/// The first 8 bytes of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) handler: u8,
    pub(crate) count: u8,
    pub(crate) flags: u8,
    pub(crate) id: u32,
}

impl Header {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, handler: 0, count: 0, flags: 0, id: 0 }
    }

    #[inline]
    pub(crate) fn emit(self) -> [u8; HEADER] {
        // One store, which a load of the whole word finds at once.
        let head = u32::from_le_bytes([self.kind as u8, self.handler, self.count, self.flags]);
        (u64::from(self.id) << 32 | u64::from(head)).to_le_bytes()
    }

    /// The header, unless its kind is unknown.
    #[inline]
    pub(crate) fn parse(bytes: [u8; HEADER]) -> Option<Self> {
        let [kind, handler, count, flags, a, b, c, d] = bytes;
        Some(Self { kind: Kind::of(kind)?, handler, count, flags, id: u32::from_le_bytes([a, b, c, d]) })
    }

    /// The header of a message that ends with its arguments, and these.
    #[inline]
    pub(crate) fn of_short(message: &[u8]) -> Option<(Self, &[u8])> {
        let (header, arguments) = message.split_first_chunk()?;
        let header = Self::parse(*header)?;
        let is_short = arguments.len() <= 4 * MAX_ARGUMENTS && arguments.len() == 4 * usize::from(header.count);
        is_short.then_some((header, arguments))
    }

    /// How many credits come back with it.
    #[inline]
    pub(crate) fn kept(self) -> u32 {
        u32::from(self.flags & KEEP)
    }

    /// Where the arguments end, or `None` for more than there can be.
    #[inline]
    pub(crate) fn arguments_end(self) -> Option<usize> {
        let count = usize::from(self.count);
        (count <= MAX_ARGUMENTS).then_some(HEADER + 4 * count)
    }
}

/// A header with its arguments, as it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    bytes: [u8; HEAD],
    len: u8,
}

impl Head {
    /// No message.
    pub(crate) const fn empty() -> Self {
        Self { bytes: [0; HEAD], len: 0 }
    }

    /// At most 16 arguments.
    pub(crate) fn new(kind: Kind, handler: u8, id: u32, arguments: &[u32]) -> Self {
        let mut head = Self::empty();
        head.fill(kind, handler, id, arguments);
        head
    }

    /// Becomes this message, of at most 16 arguments, in place: it is longer than most that it
    /// holds.
    #[inline]
    pub(crate) fn fill(&mut self, kind: Kind, handler: u8, id: u32, arguments: &[u32]) {
        let arguments = &arguments[..arguments.len().min(MAX_ARGUMENTS)];
        let count = u8::try_from(arguments.len()).unwrap_or_default();
        let ([header, places @ ..], _) = self.bytes.as_chunks_mut::<HEADER>() else { return };
        *header = Header { kind, handler, count, flags: 0, id }.emit();
        // Two at a time, and the last one alone.
        let (pairs, odd) = arguments.as_chunks::<2>();
        for (place, [low, high]) in places.iter_mut().zip(pairs) {
            *place = (u64::from(*high) << 32 | u64::from(*low)).to_le_bytes();
        }
        if let (Some(place), [last]) = (places.get_mut(pairs.len()), odd) {
            *place = u64::from(*last).to_le_bytes();
        }
        self.len = count * 4 + 8;
    }

    /// Becomes no message.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len).min(HEAD)]
    }

    #[inline]
    pub(crate) fn set_flags(&mut self, flags: u8) {
        self.bytes[3] = flags;
    }

    pub(crate) fn handler(&self) -> u8 {
        self.bytes[1]
    }

    /// What the program has sent.
    pub(crate) fn sort(&self) -> Sort {
        match Kind::of(self.bytes[0]) {
            Some(Kind::RequestMedium | Kind::RequestLong | Kind::ReplyMedium | Kind::ReplyLong) => Sort::Medium,
            Some(Kind::RequestBulk | Kind::RequestUnplaced | Kind::ReplyBulk) => Sort::Bulk,
            _ => Sort::Short,
        }
    }

    /// Whether it is of a reply.
    pub(crate) fn is_reply(&self) -> bool {
        matches!(Kind::of(self.bytes[0]), Some(Kind::Reply | Kind::ReplyMedium | Kind::ReplyLong | Kind::ReplyBulk))
    }

    pub(crate) fn set_kind(&mut self, kind: Kind, flags: u8) {
        self.bytes[0] = kind as u8;
        self.bytes[3] = flags;
    }

    pub(crate) fn set_id(&mut self, id: u32) {
        self.bytes[4..HEADER].copy_from_slice(&id.to_le_bytes());
    }

    pub(crate) fn arguments(&self, into: &mut [u32; MAX_ARGUMENTS]) -> usize {
        arguments(&self.bytes[HEADER..usize::from(self.len)], into)
    }
}

/// Reads arguments from their bytes, at most 16, and returns how many there were.
#[inline]
pub(crate) fn arguments(bytes: &[u8], into: &mut [u32; MAX_ARGUMENTS]) -> usize {
    let (quads, rest) = bytes.as_chunks::<16>();
    let (places, _) = into.as_chunks_mut::<4>();
    // Most have few: four at a time, without a loop.
    let mut at = 0;
    while let (Some(place), Some(quad)) = (places.get_mut(at), quads.get(at)) {
        *place = [word_of(quad, 0), word_of(quad, 4), word_of(quad, 8), word_of(quad, 12)];
        at += 1;
    }
    if let Some(place) = places.get_mut(at) {
        let (words, _) = rest.as_chunks::<4>();
        for (place, word) in place.iter_mut().zip(words) {
            *place = u32::from_le_bytes(*word);
        }
    }
    (bytes.len() / 4).min(MAX_ARGUMENTS)
}

#[inline]
fn word_of(quad: &[u8; 16], at: usize) -> u32 {
    u32::from_le_bytes([quad[at], quad[at + 1], quad[at + 2], quad[at + 3]])
}

/// Where the payload of a bulk message lies in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Which of the segments of its owner this was, counted.
    pub(crate) epoch: u32,
}

impl Span {
    pub(crate) fn emit(self) -> [u8; SPAN] {
        let mut bytes = [0; SPAN];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_le_bytes());
        bytes[16..].copy_from_slice(&self.epoch.to_le_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let exact: &[u8; SPAN] = bytes.try_into().ok()?;
        Some(Self { offset: long(&exact[..8])?, len: long(&exact[8..16])?, epoch: word(&exact[16..])? })
    }
}

/// A peer's segment, as its owner has described it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteSegment {
    pub(crate) handle: RmaHandle,
    /// Bytes; 0: there is none.
    pub(crate) len: u64,
    pub(crate) epoch: u32,
}

impl RemoteSegment {
    pub(crate) fn emit(segment: Option<(&RmaHandle, u64)>, epoch: u32) -> [u8; SEGMENT] {
        let mut bytes = [0; SEGMENT];
        bytes[..HEADER].copy_from_slice(&Header { id: epoch, ..Header::new(Kind::Segment) }.emit());
        if let Some((handle, len)) = segment {
            bytes[HEADER..HEADER + 32].copy_from_slice(&handle.to_bytes());
            bytes[HEADER + 32..].copy_from_slice(&len.to_le_bytes());
        }
        bytes
    }

    /// The segment of a notice: `Some(None)` where the peer has none, `None` for other bytes.
    #[expect(clippy::option_option, reason = "a malformed notice is not a peer without a segment")]
    pub(crate) fn parse(bytes: &[u8]) -> Option<Option<Self>> {
        let exact: &[u8; SEGMENT] = bytes.try_into().ok()?;
        let epoch = word(&exact[4..8])?;
        let len = long(&exact[HEADER + 32..])?;
        if len == 0 {
            return Some(None);
        }
        let handle = RmaHandle::from_bytes(&exact[HEADER..HEADER + 32])?;
        Some(Some(Self { handle, len, epoch }))
    }
}

/// What a requester sends with its connection request.
#[derive(Debug)]
pub(crate) struct Hello<'a> {
    pub(crate) tag: u64,
    pub(crate) segment: [u8; SEGMENT],
    /// The requester's URI, by its own word.
    pub(crate) name: &'a str,
}

impl<'a> Hello<'a> {
    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, b'A', b'M', 0, 0, 0, 0, 0];
        bytes.extend_from_slice(&self.tag.to_le_bytes());
        bytes.extend_from_slice(&self.segment);
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (fixed, name) = bytes.split_at_checked(HELLO)?;
        let segment = fixed[16..].try_into().ok()?;
        let is_ours = fixed.starts_with(&[VERSION, b'A', b'M']);
        is_ours.then_some(Self { tag: long(&fixed[8..16])?, segment, name: std::str::from_utf8(name).ok()? })
    }
}

fn long(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// A number of 32 bits at an offset.
pub(crate) fn word_at(bytes: &[u8], offset: usize) -> Option<u32> {
    word(bytes.get(offset..offset + 4)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emitted_is_parsed() {
        let head = Head::new(Kind::Request, 7, 0x0102_0304, &[1, u32::MAX, 3]);
        assert_eq!(head.bytes()[..HEADER], [1, 7, 3, 0, 4, 3, 2, 1]);
        let header = Header::parse(head.bytes()[..HEADER].try_into().expect("8 bytes")).expect("a kind");
        assert_eq!((header.kind, header.count, header.arguments_end()), (Kind::Request, 3, Some(20)));
        let mut read = [0; MAX_ARGUMENTS];
        assert_eq!((head.arguments(&mut read), &read[..3]), (3, &[1, u32::MAX, 3][..]));
        let span = Span { offset: 1 << 40, len: 5, epoch: 9 };
        assert_eq!(Span::parse(&span.emit()), Some(span));
        let hello = Hello { tag: 5, segment: RemoteSegment::emit(None, 3), name: "sm://1/2" }.emit();
        let back = Hello::parse(&hello).expect("a hello");
        assert_eq!((back.tag, back.name), (5, "sm://1/2"));
        assert!(RemoteSegment::parse(&back.segment).expect("a notice").is_none());
    }

    #[test]
    fn foreign_bytes_are_refused() {
        assert_eq!(Header::parse([0; 8]), None);
        assert_eq!(Header::parse([18, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Header { count: 17, ..Header::new(Kind::Reply) }.arguments_end(), None);
        assert!(Span::parse(&[0; SPAN - 1]).is_none() && RemoteSegment::parse(&[0; SEGMENT + 1]).is_none());
        let hello = Hello { tag: 5, segment: RemoteSegment::emit(None, 0), name: "" }.emit();
        assert!(Hello::parse(&hello[..hello.len() - 1]).is_none());
        assert!(Hello::parse(&[0; HELLO]).is_none());
    }
}
