//! Messages between two endpoints; `docs/design/mx.md` has the format.

use cci::RmaHandle;
use cci_rendezvous::{Header, Remote};

pub(crate) const IDENT: u8 = 1;
pub(crate) const EAGER: u8 = 2;
pub(crate) const LARGE: u8 = 3;
pub(crate) const DONE: u8 = 4;
pub(crate) const CREDIT: u8 = 5;
pub(crate) const CONNECT: u8 = 6;
pub(crate) const CONNECTED: u8 = 7;

const VERSION: u8 = 1;
/// Of EAGER: DONE is wanted.
pub(crate) const SYNC: u8 = 1;
/// Of LARGE: there is one part, and its handle alone is behind the number, so that `sm` has the
/// message in one cache line.
pub(crate) const ONE: u8 = 1;
/// Of DONE and CONNECTED.
pub(crate) const REFUSED: u8 = 1;

/// Bytes of every header.
pub(crate) const HEADER: usize = Header::LEN;
/// Bytes before the data of an eager message at most.
pub(crate) const LONGEST: usize = HEADER + 8;
/// A part: its length and its handle.
const PART: usize = 36;
/// Parts of a message at most.
pub(crate) const MOST_PARTS: usize = 16;
pub(crate) const LONGEST_OFFER: usize = LONGEST + 1 + MOST_PARTS * PART;

/// The largest window: what one header can give back.
pub(crate) const MOST_WINDOW: u32 = u16::MAX as u32;

/// The first message of a side on a link.
pub(crate) const fn ident(session: u32, window: u32) -> Header {
    Header::new(IDENT, VERSION, session, window as u64)
}

/// A message without the bytes behind its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) header: Header,
    /// The sender's request: of a synchronous or large send.
    pub(crate) number: Option<u64>,
    /// Where data or parts begin.
    pub(crate) from: usize,
}

/// The header at the front of a message of `len` bytes, of which `front` are the first; `None`: it
/// is malformed.
#[inline]
pub(crate) fn parse(front: &[u8], len: usize) -> Option<Head> {
    let (bytes, behind) = front.split_first_chunk::<HEADER>()?;
    let header = Header::read(bytes);
    if header.kind == EAGER && header.flags == 0 {
        return (header.word as usize + HEADER == len).then_some(Head { header, number: None, from: HEADER });
    }
    let numbered = || behind.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    match header.kind {
        EAGER if header.flags == SYNC => {
            let number = numbered()?;
            (header.word as usize + LONGEST == len).then_some(Head { header, number: Some(number), from: LONGEST })
        }
        LARGE if header.flags <= ONE => Some(Head { header, number: Some(numbered()?), from: LONGEST }),
        IDENT => {
            let is_right = header.flags == VERSION && header.credit == 0 && header.long <= MOST_WINDOW.into();
            (is_right && len == HEADER).then_some(Head { header, number: None, from: HEADER })
        }
        DONE | CONNECTED => {
            let is_right = header.flags <= REFUSED && header.word == 0 && len == HEADER;
            is_right.then_some(Head { header, number: None, from: HEADER })
        }
        CONNECT => (header.flags == 0 && len == HEADER).then_some(Head { header, number: None, from: HEADER }),
        CREDIT => {
            let is_right = header.flags == 0 && header.word == 0 && header.long == 0 && len == HEADER;
            is_right.then_some(Head { header, number: None, from: HEADER })
        }
        _ => None,
    }
}

/// The header of a whole eager message that nobody waits for, and its data; `None`: it is another
/// one.
#[inline]
pub(crate) fn parse_eager(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let (front, data) = bytes.split_first_chunk::<HEADER>()?;
    let header = Header::read(front);
    let is_right = header.kind == EAGER && header.flags == 0 && header.word as usize == data.len();
    is_right.then_some((header, data))
}

/// What the offer of so many parts costs, granules.
#[inline]
pub(crate) const fn cost_of_parts(parts: usize) -> u32 {
    2 + parts as u32
}

/// Appends parts of offered memory: of one its handle ([`ONE`]).
pub(crate) fn emit_parts<'a>(mut parts: impl ExactSizeIterator<Item = (u32, &'a RmaHandle)>, to: &mut Vec<u8>) {
    if parts.len() == 1 {
        return to.extend(parts.next().into_iter().flat_map(|(_, handle)| handle.to_bytes()));
    }
    to.push(u8::try_from(parts.len()).unwrap_or(u8::MAX));
    for (len, handle) in parts {
        to.extend(len.to_le_bytes());
        to.extend(handle.to_bytes());
    }
}

/// Reads the parts behind a header, which make up its length; false: they do not.
pub(crate) fn parse_parts(bytes: &[u8], header: &Header, parts: &mut Vec<Remote>) -> bool {
    parts.clear();
    let wanted = header.word;
    if header.flags == ONE {
        let handle = <&[u8; 32]>::try_from(bytes).ok().and_then(|bytes| RmaHandle::from_bytes(bytes));
        parts.extend(handle.map(|handle| Remote { len: wanted.into(), handle }));
        return !parts.is_empty() && wanted > 0;
    }
    let Some((count, rest)) = bytes.split_first() else { return false };
    let (found, []) = rest.as_chunks::<PART>() else { return false };
    if found.len() != usize::from(*count) || found.len() > MOST_PARTS {
        return false;
    }
    let mut sum = 0_u64;
    for part in found {
        let Some((len, handle)) = part.split_first_chunk::<4>() else { return false };
        let len = u64::from(u32::from_le_bytes(*len));
        let handle = RmaHandle::from_bytes(handle);
        let Some(handle) = handle.filter(|_| len > 0) else { return false };
        sum += len;
        parts.push(Remote { len, handle });
    }
    sum == u64::from(wanted) && wanted > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Option<Head> {
        parse(&bytes[..bytes.len().min(LONGEST)], bytes.len())
    }

    #[test]
    fn what_is_emitted_is_parsed_and_a_shorter_one_is_not() {
        let eager = |flags, len: u32, behind: usize| {
            let header = Header { flags, credit: 7, ..Header::new(EAGER, 0, len, 0x1122_3344_5566_7788) };
            let mut bytes = header.emit().to_vec();
            bytes.resize(HEADER + behind, 9);
            (header, bytes)
        };
        let (header, bytes) = eager(0, 5, 5);
        assert_eq!(parsed(&bytes), Some(Head { header, number: None, from: HEADER }));
        let (header, bytes) = eager(SYNC, 5, 13);
        assert_eq!(parsed(&bytes), Some(Head { header, number: Some(u64::from_le_bytes([9; 8])), from: LONGEST }));
        for (flags, len, behind) in [(0, 5, 4), (0, 5, 6), (SYNC, 5, 12), (SYNC, 5, 7), (2, 5, 5), (0, u32::MAX, 0)] {
            assert_eq!(parsed(&eager(flags, len, behind).1), None, "{flags} {len} {behind}");
        }
        for header in [
            ident(7, 64),
            Header::new(DONE, 0, 0, 3),
            Header::new(CONNECTED, REFUSED, 0, 3),
            Header { credit: 9, ..Header::new(CREDIT, 0, 0, 0) },
            Header::new(CONNECT, 0, 0x1234, 3),
        ] {
            let bytes = header.emit();
            assert_eq!(parsed(&bytes), Some(Head { header, number: None, from: HEADER }));
            (0..HEADER).for_each(|len| assert_eq!(parsed(&bytes[..len]), None));
            assert_eq!(parsed(&[&bytes[..], &[0]].concat()), None, "{header:?}");
        }
    }

    #[test]
    fn malformed_headers_are_refused() {
        for header in [
            Header { flags: 2, ..ident(7, 64) },
            Header { credit: 1, ..ident(7, 64) },
            ident(7, MOST_WINDOW + 1),
            Header::new(DONE, 2, 0, 3),
            Header::new(DONE, 0, 1, 3),
            Header::new(CREDIT, 0, 1, 0),
            Header::new(CREDIT, 0, 0, 1),
            Header::new(CONNECT, 1, 0, 0),
            Header::new(0, 0, 0, 0),
            Header::new(8, 0, 0, 0),
            Header::new(LARGE, 2, 5, 0),
            Header::new(LARGE, 0, 5, 0),
        ] {
            assert_eq!(parsed(&header.emit()), None, "{header:?}");
        }
    }

    #[test]
    fn parts_make_up_the_length() {
        let handle = RmaHandle::from_bytes(&[1; 32]).expect("a handle");
        let mut bytes = Vec::new();
        emit_parts([(3, &handle), (4, &handle)].into_iter(), &mut bytes);
        let mut parts = Vec::new();
        let header = |flags, wanted| Header::new(LARGE, flags, wanted, 0);
        assert!(parse_parts(&bytes, &header(0, 7), &mut parts) && parts == [3, 4].map(|len| Remote { len, handle }));
        for wanted in [0, 6, 8] {
            assert!(!parse_parts(&bytes, &header(0, wanted), &mut parts));
        }
        assert!(!parse_parts(&bytes, &header(ONE, 7), &mut parts));
        (0..bytes.len()).for_each(|len| assert!(!parse_parts(&bytes[..len], &header(0, 7), &mut parts)));
        assert!(!parse_parts(&[&bytes[..], &[0]].concat(), &header(0, 7), &mut parts));
        let mut one = Vec::new();
        emit_parts([(7, &handle)].into_iter(), &mut one);
        assert!(parse_parts(&one, &header(ONE, 7), &mut parts) && parts == [Remote { len: 7, handle }]);
        assert!(!parse_parts(&one, &header(ONE, 0), &mut parts) && !parse_parts(&one, &header(0, 7), &mut parts));
        (0..one.len()).for_each(|len| assert!(!parse_parts(&one[..len], &header(ONE, 7), &mut parts)));
        assert!(!parse_parts(&[&one[..], &[0]].concat(), &header(ONE, 7), &mut parts));
        let mut many = Vec::new();
        emit_parts(std::iter::repeat_n((1, &handle), MOST_PARTS + 1), &mut many);
        assert!(!parse_parts(&many, &header(0, 17), &mut parts));
        let mut empty = Vec::new();
        emit_parts([(0, &handle), (7, &handle)].into_iter(), &mut empty);
        assert!(!parse_parts(&empty, &header(0, 7), &mut parts), "an empty part is none");
    }
}
