//! Where a stream is in its frames, and whose bytes come next.

use super::further::Part;
use super::sum::Sum;

/// Whose bytes come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BytesOf {
    /// The peer's write of this number.
    Write(u32),
    /// This side's read of this number.
    Read(u32),
    /// An operation's that goes in parts.
    Part(Part),
    /// Nobody's: they are dropped.
    Nobody,
}

/// Where a stream is in its frames.
#[derive(Default)]
pub(crate) struct Incoming {
    /// The first bytes of a frame.
    pub(super) carry: Vec<u8>,
    /// Bytes of RMA that are left of a frame.
    pub(super) left: usize,
    pub(super) of: Option<BytesOf>,
    /// Their check: they come by the buffer.
    pub(super) sum: Option<Sum>,
    pub(super) has_greeted: bool,
    /// These bytes belong to a long fragment.
    pub(super) is_long: bool,
    /// Bytes of the heads that are likely to come next, before those of a long fragment; 0:
    /// anything may come.
    pub(super) heads: usize,
    /// The first frame in `carry` is a message without a slot.
    pub(super) stalled: bool,
}

impl Incoming {
    /// Whether the peer has said HELLO.
    pub(crate) fn has_greeted(&self) -> bool {
        self.has_greeted
    }
}
