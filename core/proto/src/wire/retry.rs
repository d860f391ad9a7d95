//! RETRY, server to client: shorter than what provoked it, and the server keeps nothing.
//!
//! ```text
//! +---------------------------------------------------------------+
//! |                            cookie                             | 32
//! |                                                               | 36
//! +---------------------------------------------------------------+
//! |                          cookie time                          | 40
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{put, u32_at, u64_at};
use super::{Header, Kind};

/// Bytes of the frame.
const RETRY: usize = 44;

/// A server wants proof that the client is where it says: the same CONNECT with these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// `from` is 0.
    pub header: Header,
    /// The proof.
    pub cookie: u64,
    /// When it was made, by the server's clock.
    pub cookie_time: u32,
}

impl Retry {
    /// Writes the frame and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Retry, frame);
        put(frame, 32, self.cookie.to_be_bytes());
        put(frame, 40, self.cookie_time.to_be_bytes());
        RETRY
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        Self::parse_after(Header::of(frame, Kind::Retry)?, frame)
    }

    /// As [`Retry::parse`], for a frame whose header, of the kind RETRY, was parsed already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &[u8]) -> Option<Self> {
        (header.from == 0 && frame.len() == RETRY).then_some(())?;
        Some(Self { header, cookie: u64_at(frame, 32)?, cookie_time: u32_at(frame, 40)? })
    }
}
