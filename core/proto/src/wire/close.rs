//! CLOSE, either way.
//!
//! ```text
//! +---------------+---------------+---------------+---------------+
//! |    reason     |   is answer   | sack words n  |       0       | 32
//! +---------------+---------------+---------------+---------------+
//! |                              ack                              | 36
//! +-------------------------------+-------------------------------+
//! |           messages            |               0               | 40
//! +-------------------------------+-------------------------------+
//! |  n words of sack, 64 bits each                                | 44
//! +---------------------------------------------------------------+
//! |  RESULT and VALUE records to the end of the frame             | 44 + 8 n
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{put, u8_at, u16_at, u32_at, zero};
use super::data::{MAX_SACK, Sack};
use super::record::{Record, Records};
use super::{Header, Kind};

/// Bytes before the sack.
pub const CLOSE: usize = 44;

/// The connection ends; answered by the same with `is_answer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// Both identifiers are the connection's.
    pub header: Header,
    /// 0: the program asked for it; 1: the peer broke the protocol; others count as 1.
    pub reason: u8,
    /// This answers the peer's CLOSE, and is not answered.
    pub is_answer: bool,
    /// The sender of this frame has delivered everything before this sequence number, and delivers
    /// nothing more.
    pub ack: u32,
    /// The messages that it has delivered of the frame with that number, counted from the first.
    pub messages: u16,
}

impl Close {
    /// An answer to the peer's CLOSE: it acknowledges nothing.
    #[must_use]
    pub const fn answer(header: Header) -> Self {
        Self { header, reason: 0, is_answer: true, ack: 0, messages: 0 }
    }

    /// Writes everything before the records and returns where they begin. At most [`MAX_SACK`]
    /// words of `sack` are taken; each bit stands for a frame after `ack` whose messages were
    /// delivered.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    #[expect(clippy::cast_possible_truncation, reason = "at most 64 words")]
    pub fn emit(&self, sack: &[u64], frame: &mut [u8]) -> usize {
        let sack = &sack[..sack.len().min(MAX_SACK)];
        self.header.emit_as(Kind::Close, frame);
        put(frame, 32, [self.reason, u8::from(self.is_answer), sack.len() as u8, 0]);
        put(frame, 36, self.ack.to_be_bytes());
        put(frame, 40, self.messages.to_be_bytes());
        put(frame, 42, [0; 2]);
        for (at, word) in sack.iter().enumerate() {
            put(frame, CLOSE + 8 * at, word.to_be_bytes());
        }
        CLOSE + 8 * sack.len()
    }

    /// Reads one that [`verify`](super::verify) let pass: all its records are RESULTs and VALUEs.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<(Self, Sack<'_>, Records<'_>)> {
        Self::parse_after(Header::of(frame, Kind::Close)?, frame)
    }

    /// As [`Close::parse`], for a frame whose header, of the kind CLOSE, was parsed already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &[u8]) -> Option<(Self, Sack<'_>, Records<'_>)> {
        zero::<1>(frame, 35)?;
        zero::<2>(frame, 42)?;
        let is_answer = match u8_at(frame, 33)? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let words = Some(usize::from(u8_at(frame, 34)?)).filter(|words| *words <= MAX_SACK)?;
        let (sack, rest) = frame.get(CLOSE..)?.split_at_checked(8 * words)?;
        let records = Records::parse(rest, frame.len())?;
        if !records.clone().all(|record| matches!(record, Record::Result { .. } | Record::Value { .. })) {
            return None;
        }
        let (ack, messages) = (u32_at(frame, 36)?, u16_at(frame, 40)?);
        Some((Self { header, reason: u8_at(frame, 32)?, is_answer, ack, messages }, Sack::of(sack), records))
    }
}
