//! DATA, either way: an acknowledgement, then records.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                              seq                              | 32
//! +---------------+---------------+-------------------------------+
//! |     flags     | sack words n  |            credit             | 36
//! +---------------+---------------+-------------------------------+
//! |                              ack                              | 40
//! +---------------------------------------------------------------+
//! |                          echo number                          | 44
//! +---------------------------------------------------------------+
//! |                           echo time                           | 48
//! +-------------------------------+-------------------------------+
//! |             delay             |           congested           | 52
//! +-------------------------------+-------------------------------+
//! |  n words of sack, 64 bits each                                | 56
//! +---------------------------------------------------------------+
//! |  records to the end of the frame                              | 56 + 8 n
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{put, u8_at, u16_at, u32_at};
use super::record::{self, Records};
use super::{Header, Kind};

/// Bytes before the sack.
pub const DATA: usize = 56;

/// Most words of a sack.
pub const MAX_SACK: usize = 64;

/// Flags of a DATA frame.
pub mod flags {
    /// `seq` counts: the frame has its place in the sender's sequence and is to be acknowledged.
    pub const SEQUENCED: u8 = 1;
    /// Nothing else waits to be sent. The engine says so, and does nothing when it hears so.
    pub const ASK: u8 = 2;
    /// The frame that `ack` names was refused for lack of a slot.
    pub const RNR: u8 = 4;
    /// The check leaves out the RMA bytes at the end of the frame.
    pub const UNCHECKED: u8 = 8;
    /// To be acknowledged at once.
    pub const PROMPT: u8 = 16;
    /// Those that there are; a frame with another is malformed.
    pub const ALL: u8 = SEQUENCED | ASK | RNR | UNCHECKED | PROMPT;
}

/// What a DATA frame says of the frames that came the other way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Messages beyond those accepted that there is room for.
    pub credit: u16,
    /// All sequence numbers before this are accepted.
    pub ack: u32,
    /// `number` of the newest frame received.
    pub echo_number: u32,
    /// Its `time`.
    pub echo_time: u32,
    /// Microseconds from its arrival to this frame, at most 65,535.
    pub delay: u16,
    /// Frames that a congested router had marked so far, wraps.
    pub congested: u16,
}

/// A DATA frame but for its sack and its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Both identifiers are the connection's.
    pub header: Header,
    /// The frame's place in the sender's sequence, with [`flags::SEQUENCED`].
    pub seq: u32,
    /// See [`flags`].
    pub flags: u8,
    /// Of the other direction.
    pub ack: Ack,
    /// Words of the sack as it was read; `emit` counts the words that it is given instead.
    pub sack_words: u8,
}

impl Data {
    /// Writes everything before the records and says where they begin. At most [`MAX_SACK`] words
    /// of `sack` are taken.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "at most 64 words")]
    pub fn emit(&self, sack: &[u64], frame: &mut [u8]) -> usize {
        let sack = &sack[..sack.len().min(MAX_SACK)];
        // Looked at once for all fields.
        let head = &mut frame[..DATA];
        self.header.emit_as(Kind::Data, head);
        put(head, 32, self.seq.to_be_bytes());
        put(head, 36, [self.flags, sack.len() as u8]);
        put(head, 38, self.ack.credit.to_be_bytes());
        put(head, 40, self.ack.ack.to_be_bytes());
        put(head, 44, self.ack.echo_number.to_be_bytes());
        put(head, 48, self.ack.echo_time.to_be_bytes());
        put(head, 52, self.ack.delay.to_be_bytes());
        put(head, 54, self.ack.congested.to_be_bytes());
        let mut end = DATA;
        for word in sack {
            put(frame, end, word.to_be_bytes());
            end += 8;
        }
        end
    }

    /// Parses a frame that [`verify`](super::verify) accepted, and checks the framing of all its
    /// records.
    #[inline]
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<(Self, Sack<'_>, Records<'_>)> {
        Self::parse_after(Header::of(frame, Kind::Data)?, frame)
    }

    /// As [`Data::parse`], for a frame whose header, of the kind DATA, was parsed already.
    #[inline]
    #[must_use]
    pub fn parse_after(header: Header, frame: &[u8]) -> Option<(Self, Sack<'_>, Records<'_>)> {
        // Looked at once for all fields.
        let head: &[u8; DATA] = frame.first_chunk()?;
        let flags = u8_at(head, 36)?;
        let sack_words = u8_at(head, 37)?;
        (flags & !flags::ALL == 0).then_some(())?;
        let (sack, rest) = split(frame, sack_words)?;
        let records = Records::parse(rest, frame.len())?;
        let ack = Ack {
            credit: u16_at(head, 38)?,
            ack: u32_at(head, 40)?,
            echo_number: u32_at(head, 44)?,
            echo_time: u32_at(head, 48)?,
            delay: u16_at(head, 52)?,
            congested: u16_at(head, 54)?,
        };
        Some((Self { header, seq: u32_at(head, 32)?, flags, ack, sack_words }, Sack { bytes: sack }, records))
    }
}

/// Sack and records of a DATA frame.
#[inline]
fn split(frame: &[u8], sack_words: u8) -> Option<(&[u8], &[u8])> {
    let words = Some(usize::from(sack_words)).filter(|words| *words <= MAX_SACK)?;
    frame.get(DATA..)?.split_at_checked(words * 8)
}

/// Bytes of a DATA frame that its check covers. A frame that is not sound is covered whole.
#[inline]
pub(super) fn covered(frame: &[u8]) -> usize {
    if u8_at(frame, 36).is_none_or(|flags| flags & flags::UNCHECKED == 0) {
        return frame.len();
    }
    let uncovered = u8_at(frame, 37)
        .and_then(|words| split(frame, words))
        .and_then(|(_, rest)| record::memory_at_end(rest, frame.len()))
        .unwrap_or(0);
    frame.len() - uncovered
}

/// The sequence numbers that were accepted out of order: bit `i`, counted from the least
/// significant, of word `w` stands for `ack + 1 + 64 w + i`.
#[derive(Clone, Copy, Debug)]
pub struct Sack<'a> {
    bytes: &'a [u8],
}

impl<'a> Sack<'a> {
    /// The words in these bytes.
    pub(super) const fn of(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The words, first to last.
    #[inline]
    pub fn words(&self) -> impl Iterator<Item = u64> + use<'a> {
        self.bytes.chunks_exact(8).filter_map(|word| word.first_chunk().copied().map(u64::from_be_bytes))
    }

    /// How many words there are.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
