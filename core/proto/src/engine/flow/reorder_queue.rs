//! Frames that came out of order.

use super::frame_pool::Buffer;

/// An entry of the reorder queue. The first entry is the next in-order frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReorderEntry {
    Missing,
    /// Applied; only its number has to pass.
    Done,
    /// The last frame of a write.
    WriteEnd {
        op: u32,
    },
    /// Records to be applied in their turn.
    Held {
        buffer: Buffer,
        len: u16,
    },
}
