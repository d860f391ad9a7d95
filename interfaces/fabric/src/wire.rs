//! Messages between two endpoints (`docs/design/fabric.md`, A message). All numbers are
//! little-endian.

use cci::RmaHandle;
use cci_rendezvous::{Header, Remote};

pub(crate) const IDENT: u8 = 1;
pub(crate) const EAGER: u8 = 2;
pub(crate) const OFFER: u8 = 3;
pub(crate) const DONE: u8 = 4;
pub(crate) const CREDIT: u8 = 5;
pub(crate) const ASK: u8 = 6;
pub(crate) const GIVEN: u8 = 7;
pub(crate) const WRITTEN: u8 = 8;

const VERSION: u8 = 1;
/// Of EAGER and OFFER: the message is tagged; remote data follow.
pub(crate) const IS_TAGGED: u8 = 1;
pub(crate) const HAS_DATA: u8 = 2;
/// Of EAGER: its number follows, which DONE names once the message is there.
pub(crate) const IS_WANTED: u8 = 4;
/// Of OFFER: it is one piece, of which the handle alone follows.
const IS_ONE: u8 = 4;
/// Of EAGER: nothing was charged for it, because it is so short.
pub(crate) const IS_INLINE: u8 = 8;
/// Of DONE: the message could not be read. Of GIVEN: there is no such key.
pub(crate) const IS_REFUSED: u8 = 1;

/// Bytes of every header.
pub(crate) const HEADER: usize = Header::LEN;
/// Bytes before those of a message at most: header, number, remote data.
pub(crate) const LONGEST: usize = HEADER + 4 + 8;
/// The longest message for which nothing is charged, bytes.
pub(crate) const MOST_INLINE: usize = 32;
/// Numbers of one DONE at most.
pub(crate) const MOST_DONE: usize = 6;
/// Pieces of an offer at most, and bytes of one: length and handle.
pub(crate) const MOST_PIECES: usize = 4;
const HANDLE: usize = 32;
const PIECE: usize = 8 + HANDLE;
/// Bytes of the longest message that is no eager one.
pub(crate) const LONGEST_OTHER: usize = HEADER + 8 + 8 + MOST_PIECES * PIECE;
/// The largest window: what one header can give back, granules.
pub(crate) const MOST_WINDOW: u32 = u16::MAX as u32;
const RIGHTS: u8 = 3;

/// The first message of a side on a link.
pub(crate) const fn ident(window: u32) -> Header {
    Header::new(IDENT, VERSION, 0, window as u64)
}

/// What stands before the bytes of an eager message, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Front {
    pub(crate) bytes: [u8; LONGEST],
    pub(crate) len: usize,
}

impl Front {
    /// `number`: DONE is wanted.
    #[inline]
    pub(crate) fn eager(mut header: Header, number: Option<u32>, data: Option<u64>) -> Self {
        let (mut bytes, mut len) = ([0; LONGEST], HEADER);
        if let Some(number) = number {
            header.flags |= IS_WANTED;
            bytes[len..len + 4].copy_from_slice(&number.to_le_bytes());
            len += 4;
        }
        if let Some(data) = data {
            header.flags |= HAS_DATA;
            bytes[len..len + 8].copy_from_slice(&data.to_le_bytes());
            len += 8;
        }
        bytes[..HEADER].copy_from_slice(&header.emit());
        Self { bytes, len }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A message without the bytes of an eager one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// The window that the peer grants.
    Ident(u32),
    /// The number if DONE is wanted, remote data, and where the bytes begin.
    Eager {
        number: Option<u32>,
        data: Option<u64>,
        from: usize,
    },
    Offer {
        length: u64,
        number: u32,
        data: Option<u64>,
        pieces: Vec<Remote>,
    },
    Done {
        numbers: [u32; MOST_DONE],
        count: usize,
        is_refused: bool,
    },
    Credit,
    Ask {
        key: u64,
    },
    /// The memory of a key: its life, length, rights and handle. `None`: there is none.
    Given {
        key: u64,
        memory: Option<Given>,
    },
    /// An access has written so many bytes.
    Written {
        len: u64,
        data: u64,
    },
}

/// What an owner tells of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) life: u32,
    pub(crate) len: u64,
    pub(crate) may_read: bool,
    pub(crate) may_write: bool,
    pub(crate) handle: RmaHandle,
}

/// Reads numbers from the front.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn word(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn long(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn handle(&mut self) -> Option<RmaHandle> {
        let (bytes, rest) = self.0.split_first_chunk::<HANDLE>()?;
        self.0 = rest;
        RmaHandle::from_bytes(bytes)
    }

    fn end(&self, head: Head) -> Option<Head> {
        self.0.is_empty().then_some(head)
    }
}

/// Reads a message of `len` bytes, of which `front` are the first; all of one that is not eager.
/// `None`: it is malformed.
pub(crate) fn parse(front: &[u8], len: usize) -> Option<(Header, Head)> {
    let (bytes, behind) = front.split_first_chunk::<HEADER>()?;
    let header = Header::read(bytes);
    let mut words = Words(behind);
    let head = match header.kind {
        EAGER => {
            if header.flags & !(IS_TAGGED | HAS_DATA | IS_WANTED | IS_INLINE) != 0 {
                return None;
            }
            let number = if header.has(IS_WANTED) { Some(words.word()?) } else { None };
            let data = if header.has(HAS_DATA) { Some(words.long()?) } else { None };
            let from = front.len() - words.0.len();
            let is_short = !header.has(IS_INLINE) || header.word as usize <= MOST_INLINE;
            let is_right = is_short && from.checked_add(header.word as usize) == Some(len);
            return is_right.then_some((header, Head::Eager { number, data, from }));
        }
        _ if front.len() != len => return None,
        OFFER => offer(&header, &mut words)?,
        IDENT => {
            let is_right = header.flags == VERSION && header.credit == 0 && header.word == 0;
            let window = u32::try_from(header.long).ok().filter(|window| *window <= MOST_WINDOW && is_right)?;
            words.end(Head::Ident(window))?
        }
        DONE => {
            let (count, mut numbers) = (header.word as usize, [0; MOST_DONE]);
            let is_right = header.flags <= IS_REFUSED && header.long == 0 && (1..=MOST_DONE).contains(&count);
            for number in numbers.get_mut(..count).filter(|_| is_right)? {
                *number = words.word()?;
            }
            words.end(Head::Done { numbers, count, is_refused: header.has(IS_REFUSED) })?
        }
        CREDIT if header.flags == 0 && header.word == 0 && header.long == 0 => words.end(Head::Credit)?,
        ASK if header.flags == 0 && header.word == 0 => words.end(Head::Ask { key: header.long })?,
        GIVEN if header.flags == IS_REFUSED && header.word == 0 => {
            words.end(Head::Given { key: header.long, memory: None })?
        }
        GIVEN if header.flags & !(RIGHTS << 1) == 0 => {
            let (may_read, may_write) = (header.has(2), header.has(4));
            let given = Given { life: header.word, len: words.long()?, may_read, may_write, handle: words.handle()? };
            words.end(Head::Given { key: header.long, memory: Some(given) })?
        }
        WRITTEN if header.flags == 0 && header.word == 0 => {
            let len = words.long()?;
            words.end(Head::Written { len, data: header.long })?
        }
        _ => return None,
    };
    Some((header, head))
}

fn offer(header: &Header, words: &mut Words<'_>) -> Option<Head> {
    if header.flags & !(IS_TAGGED | HAS_DATA | IS_ONE) != 0 {
        return None;
    }
    let (number, upper) = (words.word()?, words.word()?);
    let length = u64::from(upper) << 32 | u64::from(header.word);
    let data = if header.has(HAS_DATA) { Some(words.long()?) } else { None };
    let mut pieces = Vec::new();
    if header.has(IS_ONE) {
        pieces.push(Remote { len: length, handle: words.handle()? });
    } else {
        while !words.0.is_empty() && pieces.len() < MOST_PIECES {
            pieces.push(Remote { len: words.long()?, handle: words.handle()? });
        }
    }
    let sum = pieces.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.len))?;
    // One piece has one form.
    let is_shortest = header.has(IS_ONE) || pieces.len() > 1;
    let is_whole = words.0.is_empty() && length > 0 && sum == length && pieces.iter().all(|piece| piece.len > 0);
    (is_shortest && is_whole).then_some(Head::Offer { length, number, data, pieces })
}

/// Appends an offer to its empty message.
pub(crate) fn emit_offer<'a>(
    mut header: Header,
    (length, number, data): (u64, u32, Option<u64>),
    pieces: impl ExactSizeIterator<Item = (u64, &'a RmaHandle)>,
    to: &mut Vec<u8>,
) {
    header.word = length as u32;
    if data.is_some() {
        header.flags |= HAS_DATA;
    }
    let is_one = pieces.len() == 1;
    if is_one {
        header.flags |= IS_ONE;
    }
    to.extend(header.emit());
    to.extend(number.to_le_bytes());
    to.extend(((length >> 32) as u32).to_le_bytes());
    to.extend(data.iter().flat_map(|data| data.to_le_bytes()));
    for (len, handle) in pieces {
        if !is_one {
            to.extend(len.to_le_bytes());
        }
        to.extend(handle.to_bytes());
    }
}

/// Appends a DONE to its empty message.
pub(crate) fn emit_done(mut header: Header, numbers: &[u32], to: &mut Vec<u8>) {
    header.word = numbers.len() as u32;
    to.extend(header.emit());
    to.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// Appends what is told of a key to its empty message.
pub(crate) fn emit_given(mut header: Header, memory: Option<&Given>, to: &mut Vec<u8>) {
    let Some(given) = memory else {
        header.flags = IS_REFUSED;
        return to.extend(header.emit());
    };
    header.flags = if given.may_read { 2 } else { 0 } | if given.may_write { 4 } else { 0 };
    header.word = given.life;
    to.extend(header.emit());
    to.extend(given.len.to_le_bytes());
    to.extend(given.handle.to_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(byte: u8) -> RmaHandle {
        RmaHandle::from_bytes(&[byte; HANDLE]).expect("a handle")
    }

    /// Parsed as a whole; and no shorter or longer message is.
    fn only(bytes: &[u8]) -> Option<(Header, Head)> {
        for len in 0..bytes.len() {
            assert_eq!(parse(&bytes[..len], len), None, "{len} of {bytes:?}");
        }
        let more = [bytes, &[0]].concat();
        assert_eq!(parse(&more, more.len()), None, "{more:?}");
        parse(bytes, bytes.len())
    }

    #[test]
    fn an_eager_message_is_read_as_it_was_made() {
        for (number, data) in [(None, None), (Some(7), None), (None, Some(8)), (Some(7), Some(u64::MAX))] {
            let front = Front::eager(Header { credit: 9, ..Header::new(EAGER, IS_TAGGED, 5, 77) }, number, data);
            let bytes = [front.as_bytes(), b"hello"].concat();
            let (header, head) = only(&bytes).expect("a message");
            assert_eq!(head, Head::Eager { number, data, from: front.len });
            assert!(header.long == 77 && header.credit == 9 && header.has(IS_TAGGED));
            assert_eq!(parse(&bytes[..front.len], bytes.len()).map(|(_, head)| head), Some(head));
        }
        let long = |flags| Front::eager(Header::new(EAGER, flags, MOST_INLINE as u32 + 1, 0), None, None);
        for (flags, is) in [(0, true), (IS_INLINE, false), (16, false)] {
            let bytes = [long(flags).as_bytes(), &[0; MOST_INLINE + 1]].concat();
            assert_eq!(parse(&bytes, bytes.len()).is_some(), is, "flags {flags}");
        }
    }

    #[test]
    fn an_offer_is_read_as_it_was_made() {
        let emit = |parts: &[(u64, RmaHandle)], length, data| {
            let mut bytes = Vec::new();
            let parts = parts.iter().map(|(len, handle)| (*len, handle));
            emit_offer(Header::new(OFFER, 0, 0, 3), (length, 11, data), parts, &mut bytes);
            bytes
        };
        for data in [None, Some(5)] {
            for pieces in [vec![(5 << 32, handle(1))], vec![(1, handle(1)), (2, handle(2)), (3 << 40, handle(3))]] {
                let length = pieces.iter().map(|(len, _)| len).sum();
                let bytes = emit(&pieces, length, data);
                assert!(bytes.len() <= LONGEST_OTHER && (pieces.len() > 1 || bytes.len() <= 64));
                let (_, head) = only(&bytes).expect("an offer");
                let pieces = pieces.into_iter().map(|(len, handle)| Remote { len, handle }).collect();
                assert_eq!(head, Head::Offer { length, number: 11, data, pieces });
            }
        }
        let five = [(1, handle(1)); MOST_PIECES + 1];
        for (pieces, length) in [(&five[..], 5), (&five[..2], 3), (&[], 0), (&[(0, handle(1)), (2, handle(2))][..], 2)]
        {
            let bytes = emit(pieces, length, None);
            assert_eq!(parse(&bytes, bytes.len()), None, "{length}");
        }
        let over = emit(&[(u64::MAX, handle(1)), (2, handle(2))], 1, None);
        assert_eq!(parse(&over, over.len()), None);
    }

    #[test]
    fn the_others_are_read_as_they_were_made() {
        for count in 1..=MOST_DONE {
            let (numbers, mut bytes) = ([1, 2, 3, 4, 5, 6], Vec::new());
            emit_done(Header::new(DONE, 0, 0, 0), &numbers[..count], &mut bytes);
            let Some((_, Head::Done { numbers: read, count: also, is_refused: false })) = only(&bytes) else {
                panic!("no DONE of {count}")
            };
            assert_eq!((&read[..count], also), (&numbers[..count], count));
        }
        let given = Given { life: 4, len: 1 << 40, may_read: false, may_write: true, handle: handle(9) };
        for memory in [None, Some(given)] {
            let mut bytes = Vec::new();
            emit_given(Header::new(GIVEN, 0, 0, 17), memory.as_ref(), &mut bytes);
            assert_eq!(only(&bytes).map(|(_, head)| head), Some(Head::Given { key: 17, memory }));
        }
        for (header, head) in [
            (ident(MOST_WINDOW), Head::Ident(MOST_WINDOW)),
            (Header { credit: 9, ..Header::new(CREDIT, 0, 0, 0) }, Head::Credit),
            (Header::new(ASK, 0, 0, 3), Head::Ask { key: 3 }),
        ] {
            assert_eq!(only(&header.emit()), Some((header, head)));
        }
        let bytes = [&Header::new(WRITTEN, 0, 0, 5).emit()[..], &6_u64.to_le_bytes()].concat();
        assert_eq!(only(&bytes).map(|(_, head)| head), Some(Head::Written { len: 6, data: 5 }));
    }

    #[test]
    fn malformed_headers_are_refused() {
        for header in [
            Header { flags: 2, ..ident(7) },
            Header { credit: 1, ..ident(7) },
            Header { word: 1, ..ident(7) },
            ident(MOST_WINDOW + 1),
            Header { long: 1 << 32, ..ident(0) },
            Header::new(DONE, 0, 0, 0),
            Header::new(DONE, 0, 7, 0),
            Header::new(CREDIT, 0, 1, 0),
            Header::new(CREDIT, 0, 0, 1),
            Header::new(ASK, 1, 0, 1),
            Header::new(GIVEN, 8, 0, 1),
            Header::new(OFFER, 8, 5, 0),
            Header::new(WRITTEN, 1, 0, 0),
            Header::new(0, 0, 0, 0),
            Header::new(9, 0, 0, 0),
        ] {
            let mut bytes = header.emit().to_vec();
            assert_eq!(parse(&bytes, bytes.len()), None, "{header:?}");
            bytes.extend([0; 48]);
            assert_eq!(parse(&bytes, bytes.len()), None, "{header:?} and 48 bytes");
        }
    }
}
