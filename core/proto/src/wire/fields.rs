//! What a handshake authenticates of its frames.

use crate::MAX_REQUEST;

/// The bytes of a frame of a handshake that its share or its tag authenticates, as a copy: what
/// changes when the frame is sent again is zero, and so is what the share itself decides.
#[derive(Clone, Debug)]
pub struct Fields {
    bytes: [u8; Self::MOST],
    len: usize,
}

impl Fields {
    /// Most bytes of them: those of a CONNECT.
    const MOST: usize = 88 + MAX_REQUEST;

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
