//! The RMAs of a connection that have not ended, together: how many there are and how many run,
//! whether their bytes move, and which operation later ones wait for. Each by itself is in
//! `rma_state.rs`.

use super::limits::{MAX_LARGE, MAX_REQUESTS};
use super::rma_state::RmaState;
use crate::engine::host::Op;
use crate::{Access, Time};

/// The open RMAs of a connection. An RMA *begins* when the program posts it, *starts* when it
/// leaves the queue, and *ends* when its end is reported.
#[derive(Debug)]
pub(crate) struct OpenRmas {
    /// RMAs that have not ended.
    open: u32,
    /// Those of them that have started, and large messages among those.
    running: u32,
    running_large: u32,
    /// When the oldest of the open RMAs began.
    since: Time,
    /// Whether bytes moved in the frame that is being received, and when they last did.
    has_moved: bool,
    moved_at: Time,
    /// An operation that later ones wait for.
    barrier: Option<Op>,
}

impl OpenRmas {
    pub(crate) const fn new() -> Self {
        Self {
            open: 0,
            running: 0,
            running_large: 0,
            since: Time(0),
            has_moved: false,
            moved_at: Time(0),
            barrier: None,
        }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.open == 0
    }

    pub(crate) const fn len(&self) -> u32 {
        self.open
    }

    /// Returns when the oldest of them began, or when the last of them did if there are none.
    pub(crate) const fn since(&self) -> Time {
        self.since
    }

    /// Returns when bytes last moved.
    pub(crate) const fn moved_at(&self) -> Time {
        self.moved_at
    }

    /// Returns the operation that later ones wait for.
    #[inline]
    pub(crate) const fn barrier(&self) -> Option<Op> {
        self.barrier
    }

    /// Returns whether this RMA may start, where no barrier stands before it. The peer keeps a
    /// limited number of requests and of large messages. A fence waits for everything before it.
    pub(crate) fn may_start(&self, rma: &RmaState, has_messages_in_flight: bool) -> bool {
        let is_crowded = rma.access.is_request() && self.running as usize >= MAX_REQUESTS
            || rma.access == Access::Large && self.running_large as usize >= MAX_LARGE;
        !is_crowded && (!rma.fence || !has_messages_in_flight && self.running == 0)
    }

    /// Notes that the program has posted an RMA.
    pub(crate) fn begin(&mut self, now: Time) {
        if self.open == 0 {
            self.since = now;
        }
        self.open += 1;
    }

    /// Notes that the first frame of an RMA leaves. Later operations wait for a fence, and for the
    /// data before a message.
    pub(crate) fn start(&mut self, op: Op, rma: &RmaState) {
        self.running += 1;
        self.running_large += u32::from(rma.is_large());
        if rma.fence || rma.access.is_request() && rma.has_message {
            self.barrier = Some(op);
        }
    }

    /// Notes that an RMA has ended. It has started: nothing but the end of the connection ends one
    /// that is still queued, and that ends the flow.
    pub(crate) fn end(&mut self, op: Op, is_large: bool) {
        self.open = self.open.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
        self.running_large = self.running_large.saturating_sub(u32::from(is_large));
        self.lift_barrier(op);
    }

    /// Lets later operations pass this one.
    pub(crate) fn lift_barrier(&mut self, op: Op) {
        if self.barrier == Some(op) {
            self.barrier = None;
        }
    }

    /// Notes that the frame that is being received has brought bytes or an answer.
    pub(crate) const fn on_moved(&mut self) {
        self.has_moved = true;
    }

    /// Notes when bytes moved, after a frame was received.
    #[inline]
    pub(crate) fn on_received(&mut self, now: Time) {
        if core::mem::take(&mut self.has_moved) {
            self.moved_at = now;
        }
    }
}
