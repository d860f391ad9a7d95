//! The state of a message that arrives in parts.

use super::pieces::Pieces;
use crate::engine::host::MessageBuffer;

/// The bit of a part's message number that marks a message to deliver only if the RMA before it was
/// not refused.
pub(crate) const AFTER: u32 = 1 << 31;

/// A message that is being reassembled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assembly {
    pub(crate) buffer: MessageBuffer,
    pub(crate) message: u32,
    /// On a reliable connection: bytes received from the start on.
    pub(crate) filled: u32,
    /// On an unreliable connection: which parts have come.
    pub(crate) pieces: Pieces,
}

impl Assembly {
    pub(crate) const fn new(buffer: MessageBuffer, message: u32, total: u32) -> Self {
        Self { buffer, message, filled: 0, pieces: Pieces::of(total) }
    }
}

/// Returns whether a message is older than another. Their numbers of 31 bits wrap.
#[expect(clippy::cast_possible_wrap, reason = "distance modulo 2^31")]
pub(crate) fn is_older(message: u32, than: u32) -> bool {
    ((message.wrapping_sub(than) << 1) as i32) < 0
}
