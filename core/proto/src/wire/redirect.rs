//! REDIRECT, server to client.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |          uri length           |               0               | 32
//! +-------------------------------+-------------------------------+
//! |                            cookie                             | 36
//! |                                                               | 40
//! +---------------------------------------------------------------+
//! |                             token                             | 44
//! |                                                               | 48
//! +---------------------------------------------------------------+
//! |  uri                                                          | 52
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{length, put, put_bytes, u16_at, u64_at, zero};
use super::{Header, Kind};

/// Bytes before the URI.
pub(super) const REDIRECT: usize = 52;

/// Longest URI, bytes.
pub const MAX_URI: usize = 512;

/// A server names another endpoint to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect<'a> {
    /// `from` is 0 or the server's identifier.
    pub header: Header,
    /// As the client sent it, so that nobody off the path can answer for the server.
    pub cookie: u64,
    /// What the other endpoint expects the client by.
    pub token: u64,
    /// The other endpoint's, 1 to [`MAX_URI`] bytes; whether it is one is for the link to say.
    pub uri: &'a [u8],
}

impl<'a> Redirect<'a> {
    /// Writes the frame and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Redirect, frame);
        put(frame, 32, length(self.uri.len()));
        put(frame, 34, [0; 2]);
        put(frame, 36, self.cookie.to_be_bytes());
        put(frame, 44, self.token.to_be_bytes());
        put_bytes(frame, REDIRECT, self.uri)
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &'a [u8]) -> Option<Self> {
        Self::parse_after(Header::of(frame, Kind::Redirect)?, frame)
    }

    /// As [`Redirect::parse`], for a frame whose header, of the kind REDIRECT, was parsed already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &'a [u8]) -> Option<Self> {
        zero::<2>(frame, 34)?;
        let uri = frame.get(REDIRECT..)?;
        let is_sound = usize::from(u16_at(frame, 32)?) == uri.len() && (1..=MAX_URI).contains(&uri.len());
        is_sound.then_some(())?;
        Some(Self { header, cookie: u64_at(frame, 36)?, token: u64_at(frame, 44)?, uri })
    }
}
