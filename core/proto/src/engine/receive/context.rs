//! The receive context, and the outcomes of applying records to it.

use crate::Failure;
use crate::engine::connection::conn::Conn;
use crate::engine::flow::Flow;
use crate::engine::flow::rma_state::RmaState;
use crate::engine::host::Op;
use alloc::vec::Vec;

/// The outcome of applying a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameOutcome {
    /// All its records were applied.
    Done,
    /// A message found no slot. The records before it were applied, and are not applied again.
    NoSlot,
    /// It is a duplicate, or there is no room for its requests. The peer retransmits what it still
    /// misses.
    Dropped,
}

/// The end of a part of an operation: the operation and its outcome.
pub(super) type RmaEnd = (Op, Result<(), Failure>);

/// Parts of operations that ended with one frame: nearly always one or none, more only with many
/// results.
#[derive(Default)]
pub(super) struct RmaEnds {
    first: Option<RmaEnd>,
    others: Vec<RmaEnd>,
}

impl RmaEnds {
    pub(crate) fn push(&mut self, end: RmaEnd) {
        if self.first.is_none() {
            self.first = Some(end);
        } else {
            self.others.push(end);
        }
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = RmaEnd> {
        self.first.into_iter().chain(self.others)
    }
}

/// The receive context: what the records of a frame are applied to.
pub(crate) struct RecvCtx<'a> {
    pub(crate) conn: &'a mut Conn,
    pub(crate) flow: &'a mut Flow,
    pub(crate) index: u32,
    pub(crate) rmas: &'a mut Vec<Option<RmaState>>,
    pub(crate) max_send_size: u32,
    /// Whether the frame was held and acknowledged, so that the peer does not retransmit it.
    pub(crate) is_held: bool,
}
