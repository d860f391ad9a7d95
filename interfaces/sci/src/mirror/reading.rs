//! Reads of mirrors that have begun, interrupts that wait for them, and blocks that are watched.

use crate::mirror::changes::Change;
use crate::wire::Message;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Instant;

/// A read of blocks, behind a pass that the owner has confirmed.
pub(crate) struct Load {
    pub(super) blocks: Range<usize>,
    pub(super) pass: Option<u64>,
    pub(super) read: Option<u64>,
}

impl Load {
    pub(crate) fn new(blocks: Range<usize>) -> Self {
        Self { blocks, pass: None, read: None }
    }
}

/// What waits for mirrors of one peer.
pub(crate) struct Refresh {
    /// Mirrors that are still to be read.
    pub(super) loads: Vec<(u64, Load)>,
    pub(super) until: Instant,
    /// TRIGGER and DATA in their order, and the DISCONNECT behind them.
    pub(super) held: VecDeque<Message>,
    /// The first of them came before the reads began.
    pub(super) covered: usize,
}

/// A read that has begun.
pub(crate) struct Reading {
    /// Blocks whose RMA has not begun.
    pub(super) rest: VecDeque<usize>,
    /// RMAs that have not ended.
    pub(super) open: u32,
    pub(super) has_failed: bool,
}

/// A block that the owner was asked to watch.
pub(crate) struct Watching {
    pub(super) since: Instant,
    pub(super) is_answered: bool,
    /// A read of the mirror waits for the answer.
    pub(super) is_read: bool,
    /// What has come while a first store waits: it goes on once all is there.
    pub(super) changes: BTreeMap<u64, Change>,
}
