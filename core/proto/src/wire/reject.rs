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

use super::bytes::{put, u8_at, u64_at, zero};
use super::{Header, Kind};

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
    /// It does not offer what the connection is to promise.
    Attribute = 3,
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
            _ => return None,
        })
    }
}

/// A server does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    /// `from` is 0 or the server's identifier.
    pub header: Header,
    /// Why.
    pub reason: Reason,
    /// As the client sent it, so that nobody off the path can answer for the server.
    pub cookie: u64,
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
        REJECT
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        Self::parse_after(Header::of(frame, Kind::Reject)?, frame)
    }

    /// As [`Reject::parse`], for a frame whose header, of the kind REJECT, was parsed already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &[u8]) -> Option<Self> {
        (frame.len() == REJECT).then_some(())?;
        zero::<3>(frame, 33)?;
        Some(Self { header, reason: Reason::from_u8(u8_at(frame, 32)?)?, cookie: u64_at(frame, 36)? })
    }
}
