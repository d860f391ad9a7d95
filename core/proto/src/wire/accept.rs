//! ACCEPT, server to client: the [offer](super::Offer), and after it:
//!
//! ```text
//! +---------------------------------------------------------------+
//! |                            cookie                             | 64
//! |                                                               | 68
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{put, u64_at};
use super::offer::END;
use super::{Header, Kind, Offer};

/// Bytes of the frame.
const ACCEPT: usize = END + 8;

/// A server has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// `from` is the server's identifier from now on.
    pub header: Header,
    /// What the server can do; features are those that both have.
    pub offer: Offer,
    /// As the client sent it, so that nobody off the path can answer for the server.
    pub cookie: u64,
}

impl Accept {
    /// Writes the frame and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Accept, frame);
        self.offer.emit(frame);
        put(frame, END, self.cookie.to_be_bytes());
        ACCEPT
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        Self::parse_after(Header::of(frame, Kind::Accept)?, frame)
    }

    /// As [`Accept::parse`], for a frame whose header, of the kind ACCEPT, was parsed already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &[u8]) -> Option<Self> {
        (frame.len() == ACCEPT).then_some(())?;
        Some(Self { header, offer: Offer::parse(frame)?, cookie: u64_at(frame, END)? })
    }
}
