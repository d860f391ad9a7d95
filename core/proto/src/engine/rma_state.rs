//! The state of RMAs and of operations whose end is reported in order.

use super::host::Target;
use crate::Failure;

/// Bits of an operation's number on the wire that are the host's.
pub(super) const OP_BITS: u32 = 20;
pub(super) const OP_MASK: u32 = (1 << OP_BITS) - 1;

/// An RMA that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct RmaState {
    pub(super) conn: u32,
    /// The operation's number on the wire: the host's number in the lower bits, and above them a
    /// count of RMAs. So a late result never ends a later operation with the same host number.
    pub(super) wire: u32,
    pub(super) target: Target,
    pub(super) read: bool,
    pub(super) fence: bool,
    pub(super) has_message: bool,
    /// Bytes cut into frames.
    pub(super) at: u64,
    /// Bytes that a read has brought.
    pub(super) received: u64,
    /// Whether its result or its last byte has come. Repetitions are ignored.
    pub(super) answered: bool,
    /// Events still to come before it ends: its result, and its message's acknowledgement.
    pub(super) left: u8,
    pub(super) failed: Option<Failure>,
}

/// State of an operation on RO, whose end is reported in order.
#[derive(Clone, Copy, Debug)]
pub(super) enum OrderedEnd {
    /// Its end is not ordered.
    None,
    Open,
    /// Ended; an earlier operation has not.
    Ended(Result<(), Failure>),
}

/// Returns the number by which a result reports this failure.
pub(super) fn status(failure: Failure) -> u8 {
    if failure == Failure::Copy { 2 } else { 1 }
}
