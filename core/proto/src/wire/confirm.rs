//! CONFIRM, client to server: a header and nothing else.

use super::{HEADER, Header, Kind};

/// A client has seen that it was accepted; sent again for every ACCEPT that comes again. DATA says
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// Both identifiers are the connection's.
    pub header: Header,
}

impl Confirm {
    /// Writes the frame and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Confirm, frame);
        HEADER
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        Self::parse_after(Header::of(frame, Kind::Confirm)?, frame)
    }

    /// As [`Confirm::parse`], for a frame whose header, of the kind CONFIRM, was parsed already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &[u8]) -> Option<Self> {
        (frame.len() == HEADER).then_some(Self { header })
    }
}
