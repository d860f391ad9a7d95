//! Sealed frames: bit 0x80 of the kind. The header is in clear and authenticated, with the upper
//! half of the transmission number where `check` was. What follows it is encrypted, and the last 16
//! bytes are the tag. Keys are the driver's.
//!
//! ```text
//! +-------+-------+-+-+-----------+-------------------------------+
//! |  0xC  |   2   |1|p|   kind    |        length, with tag       |  0
//! +-------+-------+-+-+-----------+-------------------------------+
//! |                     number, upper 32 bits                     |  4
//! +---------------------------------------------------------------+
//! |                           to, from                            |  8
//! +---------------------------------------------------------------+
//! |                     number, lower 32 bits                     | 24
//! +---------------------------------------------------------------+
//! |                             time                              | 28
//! +---------------------------------------------------------------+
//! |  body, encrypted                                              | 32
//! |                                                               |
//! |                      tag, 16 bytes, last                      |
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{array, length, put, u8_at, u16_at, u32_at, u64_at};
use super::header::MAGIC;
use super::{HEADER, Header, Kind, Malformed};

/// Bytes of the tag that ends a sealed frame, and of a reset token.
pub const TAG: usize = 16;

/// Shortest share of a handshake, bytes: an ephemeral key and a tag.
pub const SHARE: usize = 32 + TAG;

/// Longest share of a handshake beside the payload in it, bytes.
pub const MAX_SHARE: usize = 256;

/// Bits of the kind of a sealed frame.
const SEALED: u8 = 0x80;
const PHASE: u8 = 0x40;

/// Bytes of a sealed CONFIRM without its tag.
const CONFIRM: usize = HEADER + TAG;
/// Bytes of a sealed RESET.
const RESET: usize = HEADER + 4 + TAG;

/// Whether these bytes begin with the header of a sealed frame.
#[inline]
#[must_use]
pub fn is_sealed(frame: &[u8]) -> bool {
    u8_at(frame, 1).is_some_and(|kind| kind & SEALED != 0)
}

/// The header of a sealed frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedHeader {
    /// Its header, with the lower half of the number.
    pub header: Header,
    /// The whole number of the transmission.
    pub number: u64,
    /// The lowest bit of the phase of the key.
    pub phase: bool,
}

impl SealedHeader {
    /// Parses the header of a sealed frame of which more or less may follow. `None` if it is none.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let head: &[u8; HEADER] = frame.first_chunk()?;
        let bits = u8_at(head, 1).filter(|bits| bits & SEALED != 0)?;
        let kind = Kind::from_u8(bits & !(SEALED | PHASE))?;
        let number = u32_at(head, 24)?;
        let header = Header { kind, to: u64_at(head, 8)?, from: u64_at(head, 16)?, number, time: u32_at(head, 28)? };
        let number = u64::from(u32_at(head, 4)?) << 32 | u64::from(number);
        Some(Self { header, number, phase: bits & PHASE != 0 })
    }

    /// Verifies magic, version, kind and length of what arrived as one sealed frame. The tag is not
    /// looked at.
    ///
    /// # Errors
    ///
    /// The reason why the frame is to be dropped.
    pub fn verify(frame: &[u8]) -> Result<Self, Malformed> {
        if frame.len() < HEADER + TAG {
            return Err(Malformed::Short);
        }
        if frame[0] != MAGIC {
            return Err(Malformed::Version);
        }
        let sealed = Self::parse(frame).ok_or(Malformed::Kind)?;
        let is_sealable = matches!(sealed.header.kind, Kind::Data | Kind::Close | Kind::Confirm | Kind::Reset);
        if !is_sealable {
            return Err(Malformed::Kind);
        }
        if u16_at(frame, 2).map(usize::from) == Some(frame.len()) { Ok(sealed) } else { Err(Malformed::Length) }
    }
}

/// Makes the header of a frame, `head` of which is written and `piece_len` bytes follow, that of a
/// sealed one. The caller encrypts what follows offset 32 and appends the tag.
///
/// # Panics
///
/// When `head` is shorter than a header.
#[inline]
pub fn begin_seal(head: &mut [u8], piece_len: usize, number: u64, phase: bool) {
    head[1] |= SEALED | if phase { PHASE } else { 0 };
    put(head, 2, length(head.len() + piece_len + TAG));
    put(head, 4, ((number >> 32) as u32).to_be_bytes());
}

/// The body of a sealed CONFIRM: what its sender would show to have forgotten the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedConfirm {
    /// Both identifiers are the connection's.
    pub header: Header,
    /// The client's reset token.
    pub token: [u8; TAG],
}

impl SealedConfirm {
    /// Writes the frame without its tag and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Confirm, frame);
        put(frame, HEADER, self.token);
        CONFIRM
    }

    /// Parses an opened frame, without its tag.
    #[must_use]
    pub fn parse_after(header: Header, frame: &[u8]) -> Option<Self> {
        (frame.len() == CONFIRM).then_some(())?;
        Some(Self { header, token: array(frame, HEADER)? })
    }
}

/// A sealed RESET: the answer to a sealed frame for a connection that is not known. It is not
/// encrypted: its sender has no key of the connection, and a token where the tag would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedReset {
    /// The identifiers of the frame that it answers, exchanged.
    pub header: Header,
    /// The lower half of that frame's number.
    pub number: u32,
    /// What the sender has given to its peer under seal.
    pub token: [u8; TAG],
}

impl SealedReset {
    /// Bytes of the frame.
    pub const LEN: usize = RESET;

    /// Writes the frame, which gets neither tag nor check, and says how long it is.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        self.header.emit_as(Kind::Reset, frame);
        frame[1] |= SEALED;
        put(frame, 2, length(RESET));
        put(frame, HEADER, self.number.to_be_bytes());
        put(frame, HEADER + 4, self.token);
        RESET
    }

    /// Parses a frame whose header was verified.
    #[must_use]
    pub fn parse_after(header: Header, frame: &[u8]) -> Option<Self> {
        (frame.len() == RESET).then_some(())?;
        Some(Self { header, number: u32_at(frame, HEADER)?, token: array(frame, HEADER + 4)? })
    }
}

/// The bytes of a frame of a handshake that its share or its tag authenticates, as a copy: what
/// changes when the frame is sent again is zero, and so is what the share itself decides.
#[derive(Clone, Debug)]
pub struct Fields {
    bytes: [u8; Self::MOST],
    len: usize,
}

impl Fields {
    /// Most bytes of them: those of a CONNECT.
    const MOST: usize = super::CONNECT + super::MAX_PAYLOAD;

    /// Those of the first `len` bytes of a frame, without the bytes in these ranges.
    pub(super) fn of(frame: &[u8], len: usize, without: &[core::ops::Range<usize>]) -> Self {
        let mut bytes = [0; Self::MOST];
        let len = len.min(frame.len()).min(Self::MOST);
        bytes[..len].copy_from_slice(&frame[..len]);
        // Length and check, number and time.
        for range in [2..8, 24..32].iter().chain(without) {
            bytes[range.clone()].fill(0);
        }
        Self { bytes, len }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
