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

use super::bytes::{length, put, put_bytes, put_tag, tag_at_end, u16_at, u64_at, zero};
use super::{Fields, Header, Kind, TAG};

/// Bytes before the URI.
pub(super) const REDIRECT: usize = 52;

/// Where the cookie stands.
const COOKIE: core::ops::Range<usize> = 36..44;

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
    /// The tag over [`Redirect::fields`] in a sealed handshake; it follows the URI.
    pub tag: Option<[u8; TAG]>,
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
        let end = put_bytes(frame, REDIRECT, self.uri);
        put_tag(frame, end, self.tag)
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
        let len = Some(usize::from(u16_at(frame, 32)?)).filter(|len| (1..=MAX_URI).contains(len))?;
        let uri = frame.get(REDIRECT..REDIRECT + len)?;
        let tag = tag_at_end(frame, REDIRECT + len)?;
        Some(Self { header, cookie: u64_at(frame, 36)?, token: u64_at(frame, 44)?, uri, tag })
    }

    /// What the tag of such a frame authenticates.
    #[must_use]
    pub fn fields(frame: &[u8]) -> Fields {
        let len = u16_at(frame, 32).map_or(0, usize::from);
        Fields::of(frame, REDIRECT + len, &[COOKIE])
    }
}
