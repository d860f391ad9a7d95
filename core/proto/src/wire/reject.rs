//! REJECT, server to client.
//!
//! ```text
//! +---------------+-----------------------------------------------+
//! |    reason     |                       0                       | 32
//! +---------------+-----------------------------------------------+
//! |                            cookie                             | 36
//! |                                                               | 40
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{put, put_tag, tag_at_end, u8_at, u64_at, zero};
use super::{Fields, Header, Kind, TAG};

/// Bytes of the frame.
const REJECT: usize = 44;

/// Why a server does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// Its program says so.
    Program = 0,
    /// It does not speak the client's version.
    Version = 1,
    /// It has no room for another connection.
    Resources = 2,
    /// It does not offer what the connection is to promise, or wants it sealed from a client that
    /// has no word for that.
    Attribute = 3,
    /// It does not agree to the security of the connection: it has no secret, or another one.
    Security = 4,
}

impl Reason {
    /// The reason with this number, if there is one.
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            0 => Self::Program,
            1 => Self::Version,
            2 => Self::Resources,
            3 => Self::Attribute,
            4 => Self::Security,
            _ => return None,
        })
    }
}

/// A server does not accept. With a tag the frame is that much longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    /// `from` is 0 or the server's identifier.
    pub header: Header,
    /// Why.
    pub reason: Reason,
    /// As the client sent it, so that nobody off the path can answer for the server.
    pub cookie: u64,
    /// The tag over [`Reject::fields`] in a sealed handshake.
    pub tag: Option<[u8; TAG]>,
}

impl Reject {
    /// Writes the frame and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Reject, frame);
        put(frame, 32, [self.reason as u8, 0, 0, 0]);
        put(frame, 36, self.cookie.to_be_bytes());
        put_tag(frame, REJECT, self.tag)
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        Self::parse_after(Header::of(frame, Kind::Reject)?, frame)
    }

    /// As [`Reject::parse`], for a frame whose header, of the kind REJECT, was parsed already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &[u8]) -> Option<Self> {
        let tag = tag_at_end(frame, REJECT)?;
        zero::<3>(frame, 33)?;
        Some(Self { header, reason: Reason::from_u8(u8_at(frame, 32)?)?, cookie: u64_at(frame, 36)?, tag })
    }

    /// What the tag of such a frame authenticates.
    #[must_use]
    pub fn fields(frame: &[u8]) -> Fields {
        Fields::of(frame, 36, &[])
    }
}
