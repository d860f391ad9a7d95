//! Frames of a channel: what a descriptor carries.
//!
//! ```text
//! 0      1       2          4           6        8
//! +------+-------+----------+-----------+--------+---------------------------
//! | kind | class | requests | replies   | order  | message of Active Messages
//! +------+-------+----------+-----------+--------+---------------------------
//!                  credits that come back
//! ```

use crate::flow::Class;

pub(crate) const HEADER: usize = 8;

/// A message of Active Messages.
pub(crate) const MESSAGE: u8 = 1;
/// Nothing but credits.
pub(crate) const UPDATE: u8 = 2;
/// What the client asks with: its shape, its ring, what the engine says.
pub(crate) const HELLO: u8 = 3;
/// The answer: the server's ring.
pub(crate) const ACCEPT: u8 = 4;
/// Of v1, bytes for memory of the receiver: handle, offset, bytes.
pub(crate) const DATA: u8 = 5;
/// Of v1, asks for bytes: number, handle, offset, length.
pub(crate) const READ: u8 = 6;
/// Of v1, these bytes: number, offset, bytes.
pub(crate) const READ_DATA: u8 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u8,
    pub(crate) class: Class,
    pub(crate) back: [u16; 2],
    /// Of v1, the place among all messages of the channel in this direction.
    pub(crate) order: u16,
}

impl Header {
    /// One word, stored whole, which a load of the word finds at once.
    #[inline]
    pub(crate) fn emit(self) -> [u8; HEADER] {
        let [requests, replies] = self.back.map(u64::from);
        let credits = replies << 16 | requests;
        let word =
            u64::from(self.order) << 48 | credits << 16 | u64::from(self.class as u8) << 8 | u64::from(self.kind);
        word.to_le_bytes()
    }

    #[inline]
    pub(crate) fn parse([kind, class, a, b, c, d, e, f]: [u8; HEADER]) -> Option<Self> {
        let back = [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])];
        Some(Self { kind, class: Class::of(class)?, back, order: u16::from_le_bytes([e, f]) })
    }
}

/// The immediate word of v2: where in the ring a frame of how many bytes is. A frame is at most
/// [`LONGEST_PLACED`] long, the ring at most [`LARGEST_RING`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) offset: u32,
    pub(crate) len: u32,
}

pub(crate) const LONGEST_PLACED: u32 = (1 << 15) - 1;
pub(crate) const LARGEST_RING: u32 = 1 << 20;

impl Placed {
    pub(crate) fn word(self) -> u32 {
        (self.offset / crate::space::GRAIN) << 15 | self.len
    }

    pub(crate) fn of(word: u32) -> Self {
        Self { offset: (word >> 15) * crate::space::GRAIN, len: word & LONGEST_PLACED }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emitted_is_parsed() {
        let header = Header { kind: MESSAGE, class: Class::Reply, back: [7, 513], order: 65_535 };
        assert_eq!(Header::parse(header.emit()), Some(header));
        assert_eq!(Header::parse([1, 2, 0, 0, 0, 0, 0, 0]), None);
        for (offset, len) in [(0, 8), (LARGEST_RING - 8, LONGEST_PLACED), (8, 1)] {
            assert_eq!(Placed::of(Placed { offset, len }.word()), Placed { offset, len });
        }
    }
}
