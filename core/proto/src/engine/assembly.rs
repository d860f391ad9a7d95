//! The state of a message that arrives in parts.

use super::host::MessageBuffer;
use super::pieces::Pieces;

/// The bit of a part's message number that marks a message to deliver only if the RMA before it was
/// not refused.
pub(super) const AFTER: u32 = 1 << 31;

/// A message that is being reassembled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assembly {
    pub(super) buffer: MessageBuffer,
    pub(super) message: u32,
    /// On a reliable connection: bytes received from the start on.
    pub(super) filled: u32,
    /// On an unreliable connection: which parts have come.
    pub(super) pieces: Pieces,
}

impl Assembly {
    pub(super) const fn new(buffer: MessageBuffer, message: u32, total: u32) -> Self {
        Self { buffer, message, filled: 0, pieces: Pieces::of(total) }
    }
}

/// Returns whether a message is older than another. Their numbers of 31 bits wrap.
#[expect(clippy::cast_possible_wrap, reason = "distance modulo 2^31")]
pub(super) fn is_older(message: u32, than: u32) -> bool {
    ((message.wrapping_sub(than) << 1) as i32) < 0
}
