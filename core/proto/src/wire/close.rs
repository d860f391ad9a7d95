//! CLOSE, either way.
//!
//! ```text
//! +---------------+---------------+-------------------------------+
//! |    reason     |   is answer   |               0               | 32
//! +---------------+---------------+-------------------------------+
//! ```

use super::bytes::{put, u8_at, zero};
use super::{Header, Kind};

/// Bytes of the frame.
const CLOSE: usize = 36;

/// The connection ends; answered by the same with `is_answer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// Both identifiers are the connection's.
    pub header: Header,
    /// 0: the program asked for it; 1: the peer broke the protocol; others count as 1.
    pub reason: u8,
    /// This answers the peer's CLOSE, and is not answered.
    pub is_answer: bool,
}

impl Close {
    /// Writes the frame and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Close, frame);
        put(frame, 32, [self.reason, u8::from(self.is_answer), 0, 0]);
        CLOSE
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let header = Header::of(frame, Kind::Close).filter(|_| frame.len() == CLOSE)?;
        zero::<2>(frame, 34)?;
        let is_answer = match u8_at(frame, 33)? {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Self { header, reason: u8_at(frame, 32)?, is_answer })
    }
}
