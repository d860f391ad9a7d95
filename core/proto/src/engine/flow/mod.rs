//! The state of a connection while something is in flight on it. A flow is taken when it is needed
//! and given back when nothing is open. So memory grows with the frames in flight, not with the
//! connections.

pub(super) mod batch;
pub(super) mod congestion;
pub(super) mod continuation;
pub(super) mod end_order;
pub(super) mod frame_pool;
pub(super) mod idle_probing;
pub(super) mod in_flight;
pub(super) mod limits;
pub(super) mod loss_detection;
pub(super) mod message_parts;
pub(super) mod next_frame;
pub(super) mod open_rmas;
pub(super) mod path_probing;
pub(super) mod peer_readiness;
pub(super) mod peer_requests;
pub(super) mod pieces;
pub(super) mod probe_timeout;
pub(super) mod refused_writes;
pub(super) mod reorder_queue;
pub(super) mod rma_state;
pub(super) mod send_queue;
pub(super) mod send_window;
pub(super) mod slices;
pub(super) mod slicing;

use crate::engine::connection::conn::NONE;
use crate::engine::host::Op;
use alloc::vec::Vec;
use congestion::Congestion;
use continuation::CopyVerify;
use end_order::EndOrder;
use idle_probing::IdleProbing;
use loss_detection::LossDetection;
use message_parts::MessageParts;
use next_frame::NextFrame;
use open_rmas::OpenRmas;
use path_probing::PathProbing;
use peer_readiness::PeerReadiness;
use peer_requests::PeerRequests;
use probe_timeout::ProbeTimeout;
use refused_writes::RefusedWrites;
use reorder_queue::ReorderQueue;
use send_queue::SendQueue;
use send_window::SendWindow;
use slicing::Slicing;

/// The state of a busy connection: parts that each own their state. What takes several of them is
/// in the folders above: `send`, `receive`, `recovery` and `teardown`.
pub(crate) struct Flow {
    /// The connection.
    conn: u32,
    // What waits to leave.
    pub(crate) queue: SendQueue,
    pub(crate) requests: PeerRequests,
    pub(crate) open_rmas: OpenRmas,
    pub(crate) end_order: EndOrder,
    // What is in flight, and what may leave.
    pub(crate) send_window: SendWindow,
    pub(crate) loss_detection: LossDetection,
    pub(crate) probe_timeout: ProbeTimeout,
    pub(crate) congestion: Congestion,
    pub(crate) peer: PeerReadiness,
    pub(crate) path_probing: PathProbing,
    /// A frame that is leaving in slices.
    pub(crate) slicing: Option<Slicing>,
    // What was received.
    pub(crate) next_frame: NextFrame,
    pub(crate) reorder_queue: ReorderQueue,
    pub(crate) message_parts: MessageParts,
    pub(crate) copy_verify: CopyVerify,
    pub(crate) refused_writes: RefusedWrites,
    // Both.
    pub(crate) idle_probing: IdleProbing,
}

// A thousand busy connections have less than a megabyte of it, without their lists.
const _: () = assert!(size_of::<Flow>() <= 928);

impl Flow {
    pub(crate) fn new(conn: u32) -> Self {
        Self {
            conn,
            queue: SendQueue::default(),
            requests: PeerRequests::default(),
            open_rmas: OpenRmas::new(),
            end_order: EndOrder::default(),
            send_window: SendWindow::default(),
            loss_detection: LossDetection::new(),
            probe_timeout: ProbeTimeout::new(),
            congestion: Congestion::new(),
            peer: PeerReadiness::new(),
            path_probing: PathProbing::default(),
            slicing: None,
            next_frame: NextFrame::default(),
            reorder_queue: ReorderQueue::default(),
            message_parts: MessageParts::new(),
            copy_verify: CopyVerify::default(),
            refused_writes: RefusedWrites::default(),
            idle_probing: IdleProbing::new(),
        }
    }

    /// Resets the flow for another connection, and keeps the memory of its lists.
    fn reuse(&mut self, conn: u32) {
        let old = core::mem::replace(self, Self::new(conn));
        self.queue = old.queue.emptied();
        self.requests = old.requests.emptied();
        self.end_order = old.end_order.emptied();
        self.send_window = old.send_window.emptied();
        self.reorder_queue = old.reorder_queue.emptied();
        self.refused_writes = old.refused_writes.emptied();
    }

    /// Returns the connection, or [`NONE`] if the flow was given back.
    #[inline]
    pub(crate) const fn conn(&self) -> u32 {
        self.conn
    }

    /// Returns whether nothing is open in either direction.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty()
            && self.requests.is_empty()
            && self.send_window.is_empty()
            && self.end_order.is_empty()
            && self.open_rmas.is_empty()
            && !self.awaits_rest()
    }

    /// Returns whether frames come in order: nothing of the next one or of a later one has come.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.reorder_queue.is_empty() && !self.next_frame.is_begun()
    }

    /// Returns whether something was received in part, so that only the peer can complete it.
    pub(crate) fn awaits_rest(&self) -> bool {
        !self.reorder_queue.is_empty()
            || !self.message_parts.is_empty()
            || self.next_frame.is_begun()
            || !self.refused_writes.is_empty()
    }

    /// Returns the newest send that has not ended, unless `end_order` holds it already.
    pub(crate) fn last_send(&self) -> Option<Op> {
        if !self.end_order.is_empty() {
            return None;
        }
        self.queue.last_send().or_else(|| self.send_window.last_send()).map(Op)
    }

    /// Returns whether there is something to transmit for the first time.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.queue.is_empty() || !self.requests.is_empty()
    }
}

/// The flows of an endpoint.
pub(crate) struct Flows {
    flows: Vec<Flow>,
    free: Vec<u32>,
}

impl Flows {
    pub(crate) fn new() -> Self {
        Self { flows: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn take(&mut self, conn: u32) -> u32 {
        if let Some(index) = self.free.pop() {
            if let Some(flow) = self.flows.get_mut(index as usize) {
                flow.reuse(conn);
            }
            return index;
        }
        self.flows.push(Flow::new(conn));
        u32::try_from(self.flows.len() - 1).unwrap_or(NONE)
    }

    /// Gives a quiet flow back. Until it is taken again it belongs to no connection.
    pub(crate) fn give(&mut self, index: u32) {
        if let Some(flow) = self.flows.get_mut(index as usize) {
            flow.conn = NONE;
        }
        self.free.push(index);
    }

    /// Iterates over the flows that belong to a connection.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().filter(|flow| flow.conn != NONE)
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Flow> {
        self.flows.get(index as usize)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Flow> {
        self.flows.get_mut(index as usize)
    }
}
