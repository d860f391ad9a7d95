//! A message that arrives in parts: in order on a reliable connection, in any order on an
//! unreliable one.

use super::pieces::Pieces;
use crate::Time;
use crate::engine::host::MessageBuffer;
use alloc::vec::Vec;

/// The bit of a part's message number that marks a message to deliver only if the RMA before it was
/// not refused.
pub(crate) const AFTER: u32 = 1 << 31;
/// Time after which an unreliable message is given up if none of its parts comes, microseconds.
const GIVE_UP: u64 = 1_000_000;

/// A message that is being reassembled.
#[derive(Clone, Copy, Debug)]
struct Assembly {
    buffer: MessageBuffer,
    message: u32,
    /// In order: bytes received from the start on.
    filled: u32,
    /// In any order: which parts have come.
    pieces: Pieces,
}

/// Where a part belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    /// The buffer into which the part is copied.
    pub(crate) buffer: MessageBuffer,
    /// Whether the message is whole with it.
    pub(crate) is_whole: bool,
}

/// The message of a flow that is being reassembled, if any.
#[derive(Debug)]
pub(crate) struct MessageParts {
    assembly: Option<Assembly>,
    /// In any order: parts that have come.
    seen: Vec<u64>,
    /// In any order: when a part last came.
    part_at: Time,
}

impl MessageParts {
    pub(crate) const fn new() -> Self {
        Self { assembly: None, seen: Vec::new(), part_at: Time(0) }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.assembly.is_none()
    }

    /// Returns whether the message with this number is being reassembled.
    pub(crate) fn has(&self, message: u32) -> bool {
        self.assembly.is_some_and(|assembly| assembly.message == message)
    }

    /// Returns whether the message that is being reassembled is newer than this one. Numbers of 31
    /// bits wrap.
    #[expect(clippy::cast_possible_wrap, reason = "distance modulo 2^31")]
    pub(crate) fn is_newer_than(&self, message: u32) -> bool {
        self.assembly.is_some_and(|assembly| ((message.wrapping_sub(assembly.message) << 1) as i32) < 0)
    }

    /// Begins a message of `total` bytes. The one before it was taken.
    pub(crate) fn begin(&mut self, buffer: MessageBuffer, message: u32, total: u32) {
        self.assembly = Some(Assembly { buffer, message, filled: 0, pieces: Pieces::of(total) });
        self.seen.clear();
    }

    /// Adds a part in order. Returns `None` if it is not the next one.
    pub(crate) fn add_next(&mut self, message: u32, total: u32, at: u32, len: u32) -> Option<Placement> {
        let assembly = self.assembly.as_mut()?;
        if assembly.message != message || assembly.pieces.total != total || assembly.filled != at {
            return None;
        }
        assembly.filled += len;
        Some(Placement { buffer: assembly.buffer, is_whole: assembly.filled == total })
    }

    /// Adds a part of the message in any order. Returns `None` if it has come, or does not fit.
    pub(crate) fn add(&mut self, total: u32, at: u32, len: u32) -> Option<Placement> {
        let assembly = self.assembly.as_mut()?;
        if assembly.pieces.total != total || !assembly.pieces.note(&mut self.seen, at, len) {
            return None;
        }
        Some(Placement { buffer: assembly.buffer, is_whole: assembly.pieces.is_whole() })
    }

    /// Ends the reassembly, whole or not. Returns the buffer.
    pub(crate) fn take(&mut self) -> Option<MessageBuffer> {
        self.assembly.take().map(|assembly| assembly.buffer)
    }

    /// Notes that a part of an unreliable message came.
    pub(crate) fn on_part(&mut self, now: Time) {
        self.part_at = now;
    }

    /// Returns when an unreliable message is given up.
    pub(crate) fn expires_at(&self) -> Option<Time> {
        self.assembly.map(|_| self.part_at.plus_micros(GIVE_UP))
    }

    /// Gives an unreliable message up whose parts stopped coming. Returns its buffer.
    pub(crate) fn expire(&mut self, now: Time) -> Option<MessageBuffer> {
        if now.since(self.part_at) >= GIVE_UP * 1000 { self.take() } else { None }
    }
}
