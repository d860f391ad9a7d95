//! Limits that several parts of the engine share.

/// Reads of one peer that may wait to be served, and results that may wait to be sent. A frame with
/// more requests is dropped and retransmitted by the peer.
pub(crate) const MAX_REQUESTS: usize = 1024;
/// Large messages of one connection that may wait for memory of their receiver, or be on their way
/// there.
pub const MAX_LARGE: usize = 64;
/// Frames of one connection that may be in flight.
pub(crate) const WINDOW: usize = 4096;
/// Shortest frame, bytes, whose check is computed while its memory is copied: a second pass over
/// a shorter one costs less than finding out whether it may be.
pub(crate) const LEAST_COPY_VERIFY: usize = 4096;
