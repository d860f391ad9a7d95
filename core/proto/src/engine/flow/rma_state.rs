//! The state of an RMA, and its answer.

use crate::engine::host::Target;
use crate::{Access, Failure};

/// Bits of an operation's number on the wire that are the host's.
pub(crate) const OP_BITS: u32 = 20;
pub(crate) const OP_MASK: u32 = (1 << OP_BITS) - 1;

/// An RMA that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RmaState {
    pub(crate) conn: u32,
    /// The operation's number on the wire: the host's number in the lower bits, and above them a
    /// count of RMAs. So a late result never ends a later operation with the same host number.
    pub(crate) wire: u32,
    pub(crate) target: Target,
    pub(crate) access: Access,
    pub(crate) fence: bool,
    pub(crate) has_message: bool,
    /// The peer has given a large message its memory: the operation goes on as a write.
    pub(crate) is_granted: bool,
    /// Bytes cut into frames.
    pub(crate) at: u64,
    /// Bytes that a read has brought.
    pub(crate) received: u64,
    /// Whether its result or its last byte has come. Repetitions are ignored.
    pub(crate) answered: bool,
    /// Events still to come before it ends: its result, and its message's acknowledgement.
    pub(crate) left: u8,
    pub(crate) failed: Option<Failure>,
}

impl RmaState {
    /// Returns whether it is a large message, before or after it has its memory.
    pub(crate) fn is_large(&self) -> bool {
        self.is_granted || self.access == Access::Large
    }
}

/// What the initiator of an operation is told at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RmaAnswer {
    /// By RESULT.
    Status(u8),
    /// By VALUE: it has changed a word that had this value.
    Value(u64),
    /// Not its end: by LANDING, where to write.
    Landing([u64; 2]),
}

impl RmaAnswer {
    /// Returns the refusal of an operation.
    pub(crate) fn refusal(failure: Failure) -> Self {
        Self::Status(status(failure))
    }
}

/// Returns the number by which a result reports this failure.
pub(crate) fn status(failure: Failure) -> u8 {
    match failure {
        Failure::Copy => 2,
        Failure::TooLong => 3,
        _ => 1,
    }
}
