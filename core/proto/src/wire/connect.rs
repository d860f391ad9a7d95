//! CONNECT, client to server: the [offer](super::Offer), and after it:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                             token                             | 64
//! |                                                               | 68
//! +---------------------------------------------------------------+
//! |                            cookie                             | 72
//! |                                                               | 76
//! +---------------------------------------------------------------+
//! |                          cookie time                          | 80
//! +-------------------------------+-------------------------------+
//! |        payload length         |               0               | 84
//! +-------------------------------+-------------------------------+
//! |  payload, then zeros up to at least 564 bytes of frame        | 88
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{length, put, put_bytes, u16_at, u32_at, u64_at, zero};
use super::redirect::{MAX_URI, REDIRECT};
use super::{Header, Kind, Offer, features};
use crate::MAX_REQUEST;

/// Bytes before the payload.
pub const CONNECT: usize = 88;

/// Longest payload, bytes.
pub const MAX_PAYLOAD: usize = MAX_REQUEST;

/// Shortest CONNECT, bytes: as long as the longest answer to one, so that nobody can have a server
/// send more to a third party than he sent himself.
pub const CONNECT_MIN: usize = REDIRECT + MAX_URI;

/// A client asks for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    /// `to` is 0.
    pub header: Header,
    /// What the client can do.
    pub offer: Offer,
    /// What the server expects the client by; 0 = nothing.
    pub token: u64,
    /// From the server's RETRY; 0 at first.
    pub cookie: u64,
    /// From the server's RETRY; 0 at first.
    pub cookie_time: u32,
    /// For the server's program, at most [`MAX_PAYLOAD`].
    pub payload: &'a [u8],
}

impl<'a> Connect<'a> {
    /// Writes the frame with its padding and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Connect, frame);
        self.offer.emit(frame);
        put(frame, 64, self.token.to_be_bytes());
        put(frame, 72, self.cookie.to_be_bytes());
        put(frame, 80, self.cookie_time.to_be_bytes());
        put(frame, 84, length(self.payload.len()));
        put(frame, 86, [0; 2]);
        let end = put_bytes(frame, CONNECT, self.payload);
        if end >= CONNECT_MIN {
            return end;
        }
        frame[end..CONNECT_MIN].fill(0);
        CONNECT_MIN
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &'a [u8]) -> Option<Self> {
        Self::parse_after(Header::of(frame, Kind::Connect)?, frame)
    }

    /// As [`Connect::parse`], for a frame whose header, of the kind CONNECT, was parsed already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &'a [u8]) -> Option<Self> {
        if header.to != 0 || frame.len() < CONNECT_MIN {
            return None;
        }
        zero::<2>(frame, 86)?;
        let len = usize::from(u16_at(frame, 84)?);
        let (payload, padding) = frame.get(CONNECT..)?.split_at_checked(len)?;
        let offer = Offer::parse(frame)?;
        // Features yet to come may put something there that only those who know them can read.
        let is_padded = offer.features & features::ENCRYPTION != 0 || padding.iter().all(|byte| *byte == 0);
        (len <= MAX_PAYLOAD && is_padded).then_some(())?;
        Some(Self {
            header,
            offer,
            token: u64_at(frame, 64)?,
            cookie: u64_at(frame, 72)?,
            cookie_time: u32_at(frame, 80)?,
            payload,
        })
    }
}
