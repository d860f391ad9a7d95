//! MULTICAST, a sender to a group: a header whose `to` is 0, then the message to the end of the
//! frame.

use super::{HEADER, Header, Kind};

/// A message to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multicast<'a> {
    /// The sender's random identifier.
    pub from: u64,
    /// The sender's number of this transmission.
    pub number: u32,
    /// The sender's clock, microseconds.
    pub time: u32,
    /// The message.
    pub bytes: &'a [u8],
}

impl<'a> Multicast<'a> {
    /// Writes what stands before the message and says how long that is; the message is the caller's
    /// to append.
    ///
    /// # Panics
    ///
    /// When the buffer is shorter.
    pub fn emit_head(&self, frame: &mut [u8]) -> usize {
        Header { kind: Kind::Multicast, to: 0, from: self.from, number: self.number, time: self.time }.emit(frame);
        HEADER
    }

    /// Reads one that [`verify`](super::verify) let pass.
    #[must_use]
    pub fn parse(frame: &'a [u8]) -> Option<Self> {
        Self::parse_after(Header::of(frame, Kind::Multicast)?, frame)
    }

    /// As [`Multicast::parse`], for a frame whose header, of the kind MULTICAST, was parsed
    /// already.
    #[must_use]
    pub fn parse_after(header: Header, frame: &'a [u8]) -> Option<Self> {
        (header.to == 0).then_some(())?;
        Some(Self { from: header.from, number: header.number, time: header.time, bytes: frame.get(HEADER..)? })
    }
}
