//! RESET: the answer to a frame for a connection that is not known, never larger than that frame.
//!
//! ```text
//! +---------------------------------------------------------------+
//! |                 number of the frame answered                  | 32
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{put, u32_at};
use super::{Header, Kind};

/// Bytes of the frame.
const RESET: usize = 36;

/// There is no such connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// The identifiers of the frame that it answers, exchanged.
    pub header: Header,
    /// That frame's number.
    pub number: u32,
}

impl Reset {
    /// Writes the frame and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Reset, frame);
        put(frame, 32, self.number.to_be_bytes());
        RESET
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        Self::parse_after(Header::of(frame, Kind::Reset)?, frame)
    }

    /// As [`Reset::parse`], for a frame whose header, of the kind RESET, was parsed already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &[u8]) -> Option<Self> {
        (frame.len() == RESET).then_some(())?;
        Some(Self { header, number: u32_at(frame, 32)? })
    }
}
