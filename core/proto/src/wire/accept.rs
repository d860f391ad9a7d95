//! ACCEPT, server to client: the [offer](super::Offer) and nothing after it.

use super::offer::END;
use super::{Header, Kind, Offer};

/// A server has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// `from` is the server's identifier from now on.
    pub header: Header,
    /// What the server can do; features are those that both have.
    pub offer: Offer,
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
        END
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let header = Header::of(frame, Kind::Accept).filter(|_| frame.len() == END)?;
        Some(Self { header, offer: Offer::parse(frame)? })
    }
}
