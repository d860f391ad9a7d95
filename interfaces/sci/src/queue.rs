//! DMA queues and their transfers, as the state of a host has them.

use crate::mapped::Mapped;
use crate::notices::Notices;
use crate::partner::Partner;
use cci::RmaHandle;
use std::sync::Arc;

/// The state of a DMA queue, with the numbers of SISCI.
///
/// # Example
///
/// ```
/// use cci_sci::QueueState;
///
/// fn may_enqueue(state: QueueState) -> bool {
///     matches!(state, QueueState::Idle | QueueState::Gather)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(clippy::exhaustive_enums, reason = "those of SISCI")]
pub enum QueueState {
    /// It is empty.
    Idle = 0,
    /// It has transfers, and is not posted.
    Gather = 1,
    /// It is posted.
    Posted = 2,
    /// All transfers have ended well.
    Done = 3,
    /// The program has ended it.
    Aborted = 4,
    /// A transfer has failed.
    Error = 5,
}

/// What is at the remote end of a transfer.
#[derive(Clone, Copy)]
pub(crate) enum RemoteEnd {
    /// A segment of this host or of a partner, with the handle of its registration.
    Segment(Partner, RmaHandle),
    /// A broadcast group.
    Group(u32),
}

/// A transfer between a segment of this host and one that it is connected to.
pub(crate) struct Transfer {
    pub(crate) own: Arc<Mapped>,
    /// Of the registration of the segment of this host.
    pub(crate) own_handle: RmaHandle,
    pub(crate) own_offset: u64,
    pub(crate) remote: Arc<Mapped>,
    pub(crate) end: RemoteEnd,
    pub(crate) remote_offset: u64,
    pub(crate) len: u64,
    pub(crate) is_read: bool,
}

/// A DMA queue.
pub(crate) struct Queue {
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) most: usize,
    pub(crate) state: QueueState,
    /// Transfers that have begun, and those of them that have not ended.
    pub(crate) begun: usize,
    pub(crate) open: usize,
    /// Bytes of the next transfer that have gone to a group, or come from it.
    pub(crate) moved: u64,
    pub(crate) has_failed: bool,
    pub(crate) is_aborted: bool,
    /// How often it was posted.
    pub(crate) postings: u64,
    pub(crate) notices: Notices<QueueState>,
}

/// How the begin of a transfer went.
pub(crate) enum Begun {
    Open,
    Ended,
    NoRoom,
    Failed,
}

impl Transfer {
    /// The peer that the remote segment is of, if it is one segment of another process.
    pub(crate) fn partner(&self) -> Partner {
        match self.end {
            RemoteEnd::Segment(partner, _) => partner,
            RemoteEnd::Group(_) => None,
        }
    }
}

impl Queue {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            transfers: Vec::new(),
            most,
            state: QueueState::Idle,
            begun: 0,
            open: 0,
            moved: 0,
            has_failed: false,
            is_aborted: false,
            postings: 0,
            notices: Notices::new(),
        }
    }

    pub(crate) fn reset(&mut self) {
        *self = Self { postings: self.postings, ..Self::new(self.most) };
    }

    /// Begins no further transfer.
    pub(crate) fn abort(&mut self) {
        self.is_aborted = true;
    }

    /// Whether a transfer keeps its order behind those that have not ended: a fence orders those of
    /// one link.
    pub(crate) fn follows_in_order(&self, transfer: &Transfer) -> bool {
        let before = self.begun.checked_sub(1).and_then(|before| self.transfers.get(before));
        transfer.partner().is_some() && before.is_some_and(|before| before.partner() == transfer.partner())
    }

    /// Whether it is posted and has nothing open: then it goes on once there is room.
    pub(crate) fn is_starved(&self) -> bool {
        self.state == QueueState::Posted && self.open == 0
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.has_failed || self.is_aborted
    }
}
