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
//! |        payload length         |         share length          | 84
//! +-------------------------------+-------------------------------+
//! |  payload, share, then zeros up to at least 564 bytes of frame | 88
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{length, put, put_bytes, u16_at, u32_at, u64_at};
use super::redirect::{MAX_URI, REDIRECT};
use super::{Fields, Header, Kind, MAX_SHARE, Offer, SHARE, TAG, features};
use crate::MAX_REQUEST;

/// Bytes before the payload.
pub const CONNECT: usize = 88;

/// Longest payload, bytes.
pub const MAX_PAYLOAD: usize = MAX_REQUEST;

/// Shortest CONNECT, bytes: as long as the longest answer to one, so that nobody can have a server
/// send more to a third party than he sent himself.
pub const CONNECT_MIN: usize = REDIRECT + MAX_URI;

/// The same for a CONNECT with the feature SEALED, whose answers have a tag.
pub const CONNECT_SEALED_MIN: usize = CONNECT_MIN + TAG;

/// A client's share of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share<'a> {
    /// There is none: the offer has no feature SEALED.
    None,
    /// It follows the payload, of [`SHARE`] bytes. A server that does not know it finds a request
    /// as ever. Zero until there is a cookie.
    Beside(&'a [u8]),
    /// The payload is in it, encrypted, and the frame has none beside. Its length stands in a field
    /// that is 0 otherwise, so that a server that does not know it drops the frame.
    Inside(&'a [u8]),
}

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
    /// The client's share of a sealed handshake.
    pub share: Share<'a>,
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
        let (share, inside, least): (&[u8], _, _) = match self.share {
            Share::None => (&[], 0, CONNECT_MIN),
            Share::Beside(share) => (share, 0, CONNECT_SEALED_MIN),
            Share::Inside(share) => (share, share.len(), CONNECT_SEALED_MIN),
        };
        put(frame, 86, length(inside));
        let end = put_bytes(frame, CONNECT, self.payload);
        let end = put_bytes(frame, end, share);
        if end >= least {
            return end;
        }
        frame[end..least].fill(0);
        least
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
        let [len, inside] = [u16_at(frame, 84)?, u16_at(frame, 86)?].map(usize::from);
        let (payload, rest) = frame.get(CONNECT..)?.split_at_checked(len)?;
        let offer = Offer::parse(frame)?;
        let (share, padding) = if offer.features & features::SEALED != 0 {
            (frame.len() >= CONNECT_SEALED_MIN).then_some(())?;
            let is_inside = inside != 0;
            let (share, padding) = rest.split_at_checked(if is_inside { inside } else { SHARE })?;
            let is_sound = !is_inside || (SHARE..=MAX_SHARE + MAX_PAYLOAD).contains(&inside) && payload.is_empty();
            is_sound.then_some(())?;
            (if is_inside { Share::Inside(share) } else { Share::Beside(share) }, padding)
        } else {
            (inside == 0).then_some(())?;
            (Share::None, rest)
        };
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
            share,
        })
    }

    /// What the share of such a frame authenticates: everything before the share.
    #[must_use]
    pub fn fields(frame: &[u8]) -> Fields {
        let len = u16_at(frame, 84).map_or(0, usize::from);
        Fields::of(frame, CONNECT + len, &[72..84, 86..88])
    }
}
