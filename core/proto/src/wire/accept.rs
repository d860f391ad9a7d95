//! ACCEPT, server to client: the [offer](super::Offer), and after it:
//!
//! ```text
//! +---------------------------------------------------------------+
//! |                            cookie                             | 64
//! |                                                               | 68
//! +---------------------------------------------------------------+
//! |  share, in a sealed handshake, to the end of the frame        | 72
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{put, put_bytes, u64_at};
use super::offer::END;
use super::{Fields, Header, Kind, MAX_SHARE, Offer, SHARE, features};

/// Bytes of the frame.
const ACCEPT: usize = END + 8;

/// A server has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept<'a> {
    /// `from` is the server's identifier from now on.
    pub header: Header,
    /// What the server can do; features are those that both have.
    pub offer: Offer,
    /// As the client sent it, so that nobody off the path can answer for the server.
    pub cookie: u64,
    /// The server's share of the handshake, if the offer has the feature SEALED; at most
    /// [`MAX_SHARE`] bytes.
    pub share: &'a [u8],
}

impl<'a> Accept<'a> {
    /// Writes the frame and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Accept, frame);
        self.offer.emit(frame);
        put(frame, END, self.cookie.to_be_bytes());
        put_bytes(frame, ACCEPT, self.share)
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &'a [u8]) -> Option<Self> {
        Self::parse_after(Header::of(frame, Kind::Accept)?, frame)
    }

    /// As [`Accept::parse`], for a frame whose header, of the kind ACCEPT, was parsed already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &'a [u8]) -> Option<Self> {
        let offer = Offer::parse(frame)?;
        let share = frame.get(ACCEPT..)?;
        let is_sound = match offer.features & features::SEALED {
            0 => share.is_empty(),
            _ => (SHARE..=MAX_SHARE).contains(&share.len()),
        };
        is_sound.then_some(Self { header, offer, cookie: u64_at(frame, END)?, share })
    }

    /// What the share of such a frame authenticates.
    #[must_use]
    pub fn fields(frame: &[u8]) -> Fields {
        Fields::of(frame, END, &[])
    }
}
