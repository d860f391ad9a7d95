//! Messages between two interfaces; `docs/design/portals.md` has the format.

use cci::RmaHandle;

pub(crate) const IDENT: u8 = 1;
pub(crate) const PUT: u8 = 2;
pub(crate) const OFFER: u8 = 3;
pub(crate) const GET: u8 = 4;
pub(crate) const GETPUT: u8 = 5;
pub(crate) const ACK: u8 = 6;
pub(crate) const REPLY: u8 = 7;
pub(crate) const OFFERED: u8 = 8;
pub(crate) const FIN: u8 = 9;

const VERSION: u8 = 1;

const WANTS_ACK: u8 = 1;
const HAS_HEADER: u8 = 2;
const HAS_OFFSET: u8 = 4;
const HAS_LENGTH: u8 = 8;

/// Bytes of a request's header before what is there by flag.
const FIXED: usize = 24;
/// As long as the longest header, of a request with everything.
pub(crate) const LONGEST: usize = 48;
/// A part: its length and its handle.
const PART: usize = 40;
/// More than the parts of a message.
pub(crate) const LONGEST_PARTS: usize = 1 + PART * crate::types::MAX_PARTS;

/// Done.
pub(crate) const DONE: u8 = 0;
/// Dropped, or done without an ack.
pub(crate) const DROPPED: u8 = 1;
/// Failed while copying.
pub(crate) const FAILED: u8 = 2;

/// PUT, OFFER, GET, GETPUT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) kind: u8,
    pub(crate) wants_ack: bool,
    pub(crate) portal: u16,
    pub(crate) access: u16,
    pub(crate) operation: u64,
    pub(crate) bits: u64,
    pub(crate) header: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// ACK, REPLY, OFFERED, FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) kind: u8,
    pub(crate) status: u8,
    /// Of the side that it goes to.
    pub(crate) operation: u64,
    pub(crate) length: u64,
    pub(crate) offset: u64,
    /// Of the side that sends it: in OFFERED alone.
    pub(crate) own: u64,
}

/// A message without what is behind its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Ident { uid: u32, jid: u32 },
    Request(Request),
    Answer(Answer),
}

pub(crate) fn ident(uid: u32, jid: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    (bytes[0], bytes[1]) = (IDENT, VERSION);
    bytes[4..8].copy_from_slice(&uid.to_le_bytes());
    bytes[8..].copy_from_slice(&jid.to_le_bytes());
    bytes
}

impl Request {
    /// Appends the header.
    pub(crate) fn emit(&self, to: &mut Vec<u8>) {
        let mut bytes = [0; LONGEST];
        let len = self.write(&mut bytes);
        to.extend_from_slice(&bytes[..len]);
    }

    /// Writes the header, and returns its length.
    #[inline]
    pub(crate) fn write(&self, to: &mut [u8; LONGEST]) -> usize {
        let has_length = self.kind == OFFER || self.kind == GET;
        let mut flags = u8::from(self.wants_ack);
        let mut len = FIXED;
        for (bit, word, is_there) in [
            (HAS_HEADER, self.header, self.header != 0),
            (HAS_OFFSET, self.offset, self.offset != 0),
            (HAS_LENGTH, self.length, has_length),
        ] {
            if is_there {
                to[len..len + 8].copy_from_slice(&word.to_le_bytes());
                (flags, len) = (flags | bit, len + 8);
            }
        }
        (to[0], to[1], to[6], to[7]) = (self.kind, flags, 0, 0);
        to[2..4].copy_from_slice(&self.portal.to_le_bytes());
        to[4..6].copy_from_slice(&self.access.to_le_bytes());
        to[8..16].copy_from_slice(&self.operation.to_le_bytes());
        to[16..FIXED].copy_from_slice(&self.bits.to_le_bytes());
        len
    }
}

impl Answer {
    pub(crate) fn emit(&self, to: &mut Vec<u8>) {
        to.extend([self.kind, self.status, 0, 0, 0, 0, 0, 0]);
        for word in [self.operation, self.length, self.offset] {
            to.extend(word.to_le_bytes());
        }
        if self.kind == OFFERED {
            to.extend(self.own.to_le_bytes());
        }
    }
}

/// Reads numbers off the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn zeroes<const N: usize>(&mut self) -> Option<()> {
        (self.array::<N>()? == [0; N]).then_some(())
    }
}

/// The header at the front of a message, and its length; `None`: there is none.
pub(crate) fn parse(bytes: &[u8]) -> Option<(Head, usize)> {
    let mut reader = Reader(bytes);
    let [kind, second] = reader.array()?;
    let head = match kind {
        IDENT => {
            reader.zeroes::<2>()?;
            let head = Head::Ident { uid: reader.u32()?, jid: reader.u32()? };
            (second == VERSION).then_some(head)?
        }
        PUT | OFFER | GET | GETPUT => {
            let (request, len) = parse_request(bytes)?;
            return Some((Head::Request(request), len));
        }
        ACK | REPLY | OFFERED | FIN => {
            reader.zeroes::<6>()?;
            let (operation, length, offset) = (reader.u64()?, reader.u64()?, reader.u64()?);
            let own = if kind == OFFERED { reader.u64()? } else { 0 };
            (second <= FAILED).then_some(Head::Answer(Answer {
                kind,
                status: second,
                operation,
                length,
                offset,
                own,
            }))?
        }
        _ => return None,
    };
    Some((head, bytes.len() - reader.0.len()))
}

/// As [`parse`], of a request whose kind is right.
#[inline]
pub(crate) fn parse_request(bytes: &[u8]) -> Option<(Request, usize)> {
    let (fixed, rest) = bytes.split_first_chunk::<FIXED>()?;
    let [kind, flags, portal @ .., _, _, _, _] = *fixed.first_chunk::<8>()?;
    let [_, _, _, _, access @ .., third, fourth] = *fixed.first_chunk::<8>()?;
    if flags & !(WANTS_ACK | HAS_HEADER | HAS_OFFSET | HAS_LENGTH) != 0 || third | fourth != 0 {
        return None;
    }
    // A length is there exactly where no bytes tell it.
    if (flags & HAS_LENGTH != 0) != (kind == OFFER || kind == GET) {
        return None;
    }
    let [_, operation, bits] = fixed.as_chunks::<8>().0 else { return None };
    let mut reader = Reader(rest);
    let mut optional = |bit: u8| if flags & bit == 0 { Some(0) } else { reader.u64() };
    let (header, offset, length) = (optional(HAS_HEADER)?, optional(HAS_OFFSET)?, optional(HAS_LENGTH)?);
    let request = Request {
        kind,
        wants_ack: flags & WANTS_ACK != 0,
        portal: u16::from_le_bytes(portal),
        access: u16::from_le_bytes(access),
        operation: u64::from_le_bytes(*operation),
        bits: u64::from_le_bytes(*bits),
        header,
        offset,
        length,
    };
    Some((request, bytes.len() - reader.0.len()))
}

/// Appends parts of offered memory.
pub(crate) fn emit_parts<'a>(parts: impl ExactSizeIterator<Item = (u64, &'a RmaHandle)>, to: &mut Vec<u8>) {
    to.push(u8::try_from(parts.len()).unwrap_or(u8::MAX));
    for (len, handle) in parts {
        to.extend(len.to_le_bytes());
        to.extend(handle.to_bytes());
    }
}

/// Parts of offered memory, which stand for `wanted` bytes at least; `None`: they do not, or the
/// message is none.
pub(crate) fn parse_parts(bytes: &[u8], wanted: u64) -> Option<Vec<(u64, RmaHandle)>> {
    let (count, rest) = bytes.split_first()?;
    if rest.len() != usize::from(*count) * PART || usize::from(*count) > crate::types::MAX_PARTS {
        return None;
    }
    let mut reader = Reader(rest);
    let mut parts = Vec::with_capacity((*count).into());
    let mut sum = 0_u64;
    while let Some(len) = reader.u64() {
        sum = sum.checked_add(len)?;
        parts.push((len, RmaHandle::from_bytes(&reader.array::<32>()?)?));
    }
    (sum >= wanted).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Option<Head> {
        parse(bytes).map(|(head, len)| {
            assert_eq!(len, bytes.len());
            head
        })
    }

    #[test]
    fn what_is_emitted_is_parsed_and_a_shorter_one_is_none() {
        for kind in [PUT, OFFER, GET, GETPUT] {
            for word in [0, 0x0123_4567_89ab_cdef] {
                let length = if kind == OFFER || kind == GET { word } else { 0 };
                let request = Request {
                    kind,
                    wants_ack: word == 0,
                    portal: 7,
                    access: 9,
                    operation: 5,
                    bits: !word,
                    header: word,
                    offset: word,
                    length,
                };
                let mut bytes = Vec::new();
                request.emit(&mut bytes);
                assert!(bytes.len() <= LONGEST);
                assert_eq!(parsed(&bytes), Some(Head::Request(request)));
                (0..bytes.len()).for_each(|len| assert_eq!(parse(&bytes[..len]), None, "{kind} {len}"));
            }
        }
        for kind in [ACK, REPLY, OFFERED, FIN] {
            let own = if kind == OFFERED { 3 } else { 0 };
            let answer = Answer { kind, status: FAILED, operation: 1, length: 2, offset: 3, own };
            let mut bytes = Vec::new();
            answer.emit(&mut bytes);
            assert_eq!(parsed(&bytes), Some(Head::Answer(answer)));
            (0..bytes.len()).for_each(|len| assert_eq!(parse(&bytes[..len]), None, "{kind} {len}"));
        }
        assert_eq!(parsed(&ident(5, 6)), Some(Head::Ident { uid: 5, jid: 6 }));
    }

    /// A put of 8 bytes fits an entry of a ring of 56.
    #[test]
    fn a_small_put_is_short() {
        let mut bytes = Vec::new();
        Request { kind: PUT, header: 1, offset: 8, ..Request::default() }.emit(&mut bytes);
        assert_eq!(bytes.len() + 8, 48);
    }

    #[test]
    fn what_is_malformed_is_none() {
        let mut put = Vec::new();
        Request { kind: PUT, ..Request::default() }.emit(&mut put);
        for (at, byte) in [(0, 0), (0, 10), (1, 8), (1, 0x10), (6, 1), (7, 1)] {
            let mut bytes = put.clone();
            bytes[at] = byte;
            assert_eq!(parse(&bytes), None, "{at} {byte}");
        }
        let mut other = ident(0, 0);
        other[1] = 2;
        assert_eq!(parse(&other), None, "another version");
        assert_eq!(
            parse(&[ACK, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            None
        );
    }

    #[test]
    fn parts_stand_for_what_is_wanted() {
        let handle = RmaHandle::from_bytes(&[0; 32]).expect("32 bytes");
        let mut bytes = Vec::new();
        emit_parts([(3, &handle), (4, &handle)].into_iter(), &mut bytes);
        assert_eq!(parse_parts(&bytes, 7).map(|parts| parts.len()), Some(2));
        assert!(parse_parts(&bytes, 8).is_none() && parse_parts(&bytes[..bytes.len() - 1], 0).is_none());
        bytes[0] = 17;
        assert!(parse_parts(&bytes, 0).is_none());
    }
}
