//! What every frame begins with (the picture is above, in [`wire`](super)).

use super::bytes::{array, length, put, u8_at, u16_at, u32_at, u64_at};
use super::{Crc, data};

/// Bytes of the header of every frame.
pub const HEADER: usize = 32;

/// Version of this format, the low half of a frame's first byte.
pub const VERSION: u8 = 2;

/// The first byte: 0xC, and the version.
pub(super) const MAGIC: u8 = 0xC0 | VERSION;

/// Up to this size a frame is checked in one go, in a copy whose check is zero: continuing a CRC
/// costs more than the copy.
const SHORT: usize = 128;

/// The kinds of frames. Bit 0x80 marks sealed ones ([`SealedHeader`](super::SealedHeader)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A client asks for a connection.
    Connect = 1,
    /// A server wants proof that the client is where it says.
    Retry = 2,
    /// A server has accepted.
    Accept = 3,
    /// A server has not.
    Reject = 4,
    /// A server names another endpoint to ask.
    Redirect = 5,
    /// Records and an acknowledgement.
    Data = 6,
    /// The connection ends.
    Close = 7,
    /// There is no such connection.
    Reset = 8,
    /// A message to a group.
    Multicast = 9,
    /// A client has seen that it was accepted.
    Confirm = 10,
}

impl Kind {
    /// The kind with this number, if there is one.
    #[inline]
    #[must_use]
    pub const fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Connect,
            2 => Self::Retry,
            3 => Self::Accept,
            4 => Self::Reject,
            5 => Self::Redirect,
            6 => Self::Data,
            7 => Self::Close,
            8 => Self::Reset,
            9 => Self::Multicast,
            10 => Self::Confirm,
            _ => return None,
        })
    }
}

/// Why a frame is dropped before anybody looks at its connection; each has a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Malformed {
    /// Shorter than a header.
    Short,
    /// Not a frame, or one of a version that is not spoken here.
    Version,
    /// A kind that is not known here. [`verify`] knows no sealed one.
    Kind,
    /// Not as long as it says.
    Length,
    /// The check is wrong.
    Check,
}

/// A frame's header without length and check, which [`seal`] writes and [`verify`] looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What follows. Each kind's `emit` writes its own kind, whatever stands here.
    pub kind: Kind,
    /// The receiver's identifier of the connection.
    pub to: u64,
    /// The sender's identifier of the connection.
    pub from: u64,
    /// The sender's number of this transmission on this connection; one more each time, never
    /// repeated, wraps.
    pub number: u32,
    /// The sender's clock when the frame left, microseconds, wraps.
    pub time: u32,
}

impl Header {
    /// Writes the 32 bytes, length and check zero until [`seal`].
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    #[inline]
    pub fn emit(&self, frame: &mut [u8]) {
        let head = &mut frame[..HEADER];
        put(head, 0, [MAGIC, self.kind as u8, 0, 0, 0, 0, 0, 0]);
        put(head, 8, self.to.to_be_bytes());
        put(head, 16, self.from.to_be_bytes());
        put(head, 24, self.number.to_be_bytes());
        put(head, 28, self.time.to_be_bytes());
    }

    /// Reads them, of a frame that [`verify`] let pass; `None` if there are fewer or the kind is
    /// unknown.
    #[inline]
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let head: &[u8; HEADER] = frame.first_chunk()?;
        Some(Self {
            kind: Kind::from_u8(u8_at(head, 1)?)?,
            to: u64_at(head, 8)?,
            from: u64_at(head, 16)?,
            number: u32_at(head, 24)?,
            time: u32_at(head, 28)?,
        })
    }

    /// The header of a frame that must be of this kind.
    #[inline]
    pub(super) fn of(frame: &[u8], kind: Kind) -> Option<Self> {
        Self::parse(frame).filter(|header| header.kind == kind)
    }

    /// Writes the header as one of this kind.
    #[inline]
    pub(super) fn emit_as(&self, kind: Kind, frame: &mut [u8]) {
        Self { kind, ..*self }.emit(frame);
    }
}

/// Fills in length and check of a frame of which `head` is all that does not lie in registered
/// memory, and of which `piece_len` bytes follow. `piece` continues the check over these bytes,
/// because only the caller may touch that memory; it gives the check back as it is when there are
/// none, or when the frame is flagged [`UNCHECKED`](super::flags::UNCHECKED).
///
/// # Panics
///
/// When `head` is shorter than a header.
#[inline]
pub fn seal(head: &mut [u8], piece_len: usize, piece: impl FnOnce(Crc) -> Crc) {
    put(head, 2, length(head.len() + piece_len));
    put(head, 4, [0; 4]);
    let check = piece(Crc::new().update(head)).value();
    put(head, 4, check.to_be_bytes());
}

/// What the frame at the start of these bytes says that it is long; `None` if no frame begins
/// there. Nothing else of it has been looked at.
#[inline]
#[must_use]
pub fn claimed_len(bytes: &[u8]) -> Option<usize> {
    let magic = u8_at(bytes, 0)?;
    let len = usize::from(u16_at(bytes, 2)?);
    (magic == MAGIC && len >= HEADER).then_some(len)
}

/// Verifies magic, version, kind, length and check of what arrived as one frame, in this order.
///
/// # Errors
///
/// The reason why the frame is to be dropped.
#[inline]
pub fn verify(bytes: &[u8]) -> Result<Header, Malformed> {
    let header = verify_head(bytes)?;
    verify_check(&header, bytes)?;
    Ok(header)
}

/// As [`verify`], without the check: nothing in the frame may have an effect before
/// [`verify_check`], or [`ends_check`] for whoever computes the check himself.
///
/// # Errors
///
/// The reason why the frame is to be dropped.
#[inline]
pub fn verify_head(bytes: &[u8]) -> Result<Header, Malformed> {
    if bytes.len() < HEADER {
        return Err(Malformed::Short);
    }
    if bytes[0] != MAGIC {
        return Err(Malformed::Version);
    }
    let header = Header::parse(bytes).ok_or(Malformed::Kind)?;
    if u16_at(bytes, 2).map(usize::from) == Some(bytes.len()) { Ok(header) } else { Err(Malformed::Length) }
}

/// Verifies the check of a frame whose header [`verify_head`] returned.
///
/// # Errors
///
/// [`Malformed::Check`].
#[inline]
pub fn verify_check(header: &Header, bytes: &[u8]) -> Result<(), Malformed> {
    let covered = if header.kind == Kind::Data { data::covered(bytes) } else { bytes.len() };
    if u32_at(bytes, 4) == Some(check(&bytes[..covered.max(HEADER)])) { Ok(()) } else { Err(Malformed::Check) }
}

/// The check of a frame as it came, as far as `head`, its own field counted as zero: for who goes
/// on with it over the rest himself.
///
/// # Panics
///
/// When `head` is shorter than a header.
#[must_use]
pub fn begin_check(head: &[u8]) -> Crc {
    let mut first: [u8; 8] = array(head, 0).unwrap_or_default();
    put(&mut first, 4, [0; 4]);
    Crc::new().update(&first).update(&head[8..])
}

/// Whether a frame ends with the check that it carries.
#[must_use]
pub fn ends_check(frame: &[u8], crc: Crc) -> bool {
    u32_at(frame, 4) == Some(crc.value())
}

/// The check of a frame as it came, its own field counted as zero.
#[inline]
fn check(bytes: &[u8]) -> u32 {
    if bytes.len() <= SHORT {
        let mut copy = [0; SHORT];
        let copy = &mut copy[..bytes.len()];
        copy.copy_from_slice(bytes);
        put(copy, 4, [0; 4]);
        return Crc::new().update(copy).value();
    }
    begin_check(bytes).value()
}
