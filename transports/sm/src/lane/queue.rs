//! What waits in a lane: operations in their order, and control frames, which go first.

use crate::lane::operation::{Pending, Serve, Stage};
use crate::lane::state::EndpointState;
use cci_mem::ring::{BODY, BODY_WORDS, Header};
use cci_proto::engine::MAX_LARGE;
use cci_transport::{Connection, Posted, Slot};
use std::collections::VecDeque;

/// Replies of the library that may wait for a peer's room.
const MAX_REPLIES: usize = 1 << 14;
/// Control frames that may wait while requests are taken.
const MANY_CONTROLS: usize = 1 << 12;

/// The bytes of a message that waits for room.
pub(crate) enum QueuedPayload {
    /// As they will stand in the entry.
    Inline([u8; BODY]),
    /// In a buffer of the endpoint.
    Buffer(Box<[u8]>),
}

impl EndpointState {
    /// Takes back the buffer of a message that waited.
    #[inline]
    pub(crate) fn reuse(&mut self, kept: QueuedPayload) {
        if let QueuedPayload::Buffer(buffer) = kept {
            self.buffers.push(buffer);
        }
    }
}

/// A message that waits for room.
pub(crate) struct QueuedMessage {
    pub(crate) cell: &'static Connection,
    pub(crate) slot: &'static Slot,
    pub(crate) posted: Posted,
    pub(crate) data: QueuedPayload,
    pub(crate) len: usize,
    /// Milliseconds of the endpoint's clock.
    pub(crate) since: u64,
}

/// What waits in a lane.
pub(crate) enum Op {
    Message(QueuedMessage),
    /// A control frame, with a payload that goes into a slot.
    Frame {
        header: Header,
        words: [u64; BODY_WORDS],
        payload: Option<Box<[u8]>>,
        /// The library answers a frame of the peer by it.
        reply: bool,
    },
    Rma(Box<Pending>),
    Serve(Box<Serve>),
}

impl Op {
    /// The connection of a message or an RMA.
    fn cell(&self) -> Option<&'static Connection> {
        match self {
            Self::Message(message) => Some(message.cell),
            Self::Rma(pending) => Some(pending.cell),
            Self::Frame { .. } | Self::Serve(_) => None,
        }
    }

    /// Whether it is a large message behind which the others of its connection wait.
    fn holds(&self) -> bool {
        matches!(self, Self::Rma(pending) if pending.holds())
    }

    /// Whether the library answers a frame of the peer by it.
    pub(crate) fn is_reply(&self) -> bool {
        matches!(self, Self::Frame { reply: true, .. } | Self::Serve(_))
    }
}

/// What waits on an ordered connection for the end of a large message.
struct Hold {
    cell: &'static Connection,
    behind: VecDeque<Op>,
}

/// Which of the two queues an operation stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Control,
    Operation,
}

/// What waits in a lane for room, or for the peer.
#[derive(Default)]
pub(crate) struct OperationQueue {
    /// Messages and RMAs that wait, in order.
    operations: VecDeque<Op>,
    /// Large messages for which the peer is to give memory: nothing waits for them but what they
    /// hold.
    parked: Vec<Op>,
    /// Large messages whose peer is not asked while it is asked for so many others.
    unasked: VecDeque<Op>,
    holds: Vec<Hold>,
    /// Control frames that wait, answers among them. They go first: an operation may wait for the
    /// peer's answer, and the peer for ours.
    controls: VecDeque<Op>,
    /// How many of these are replies.
    replies: usize,
    /// A CONNECT stays in the ring until fewer control frames wait.
    backlogged: bool,
}

impl OperationQueue {
    /// Whether nothing waits for its turn. Large messages may still be parked, or hold others
    /// back.
    #[inline(always)]
    pub(crate) fn has_no_turn(&self) -> bool {
        self.controls.len() | self.operations.len() == 0
    }

    #[inline(always)]
    pub(crate) fn has_controls(&self) -> bool {
        !self.controls.is_empty()
    }

    /// Messages and RMAs that wait.
    #[inline(always)]
    pub(crate) fn operations(&self) -> &VecDeque<Op> {
        &self.operations
    }

    /// All messages and RMAs, also those that wait for no turn.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Op> {
        let behind = self.holds.iter().flat_map(|hold| &hold.behind);
        self.operations.iter().chain(&self.parked).chain(&self.unasked).chain(behind)
    }

    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        let behind = self.holds.iter().map(|hold| hold.behind.len());
        self.operations.len() + self.parked() + behind.sum::<usize>()
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Op> {
        let behind = self.holds.iter_mut().flat_map(|hold| &mut hold.behind);
        self.operations.iter_mut().chain(&mut self.parked).chain(&mut self.unasked).chain(behind)
    }

    /// Whether nothing waits, of whatever kind.
    pub(crate) fn is_empty(&self) -> bool {
        self.has_no_turn() && self.parked.is_empty() && self.unasked.is_empty() && self.holds.is_empty()
    }

    /// Whether a connection has to wait for a large message of its own.
    #[inline(always)]
    pub(crate) fn holds_any(&self) -> bool {
        !self.holds.is_empty()
    }

    /// Whether this one has to.
    #[inline]
    pub(crate) fn is_held(&self, cell: &'static Connection) -> bool {
        self.holds_any() && self.holds.iter().any(|hold| std::ptr::eq(hold.cell, cell))
    }

    /// What a connection does from now on waits for the end of its large message.
    pub(crate) fn hold(&mut self, cell: &'static Connection) {
        self.holds.push(Hold { cell, behind: VecDeque::new() });
    }

    /// The large message of a connection has ended: what waited for it takes its turn.
    pub(crate) fn release(&mut self, cell: &'static Connection) {
        let Some(at) = self.holds.iter().position(|hold| std::ptr::eq(hold.cell, cell)) else { return };
        // It may hold the rest again.
        self.holds.swap_remove(at).behind.into_iter().for_each(|op| self.push(op));
    }

    /// Keeps a large message until the peer has answered, or can be asked.
    pub(crate) fn park(&mut self, op: Op) {
        match &op {
            Op::Rma(pending) if pending.stage == Stage::Ask => self.unasked.push_back(op),
            _ => self.parked.push(op),
        }
    }

    /// Has large messages take their turn for which the peer can be asked now.
    fn ask_next(&mut self) {
        let room = MAX_LARGE.saturating_sub(self.parked.len()).min(self.unasked.len());
        self.operations.extend(self.unasked.drain(..room));
    }

    /// Large messages that wait for memory, also those for which the peer is not asked yet.
    pub(crate) fn parked(&self) -> usize {
        self.parked.len() + self.unasked.len()
    }

    /// Whether no further large message is to be parked.
    pub(crate) fn has_parked_enough(&self) -> bool {
        self.parked.len() >= MAX_LARGE
    }

    /// The large message whose operation has this number.
    pub(crate) fn unpark(&mut self, operation: u32) -> Option<Box<Pending>> {
        let is_it = |op: &Op| matches!(op, Op::Rma(pending) if pending.operation == operation);
        let at = self.parked.iter().position(is_it)?;
        let op = self.parked.remove(at);
        self.ask_next();
        match op {
            Op::Rma(pending) => Some(pending),
            _ => None,
        }
    }

    /// Has a large message go on, whose peer has answered. It goes before those that are still to
    /// ask, which wait while many have.
    pub(crate) fn resume(&mut self, pending: Box<Pending>) {
        let asks = |op: &Op| matches!(op, Op::Rma(first) if first.stage == Stage::Ask);
        let at = self.operations.iter().position(asks).unwrap_or(self.operations.len());
        self.operations.insert(at, Op::Rma(pending));
    }

    /// The message whose turn it is among the operations.
    #[inline(always)]
    pub(crate) fn front_message(&self) -> Option<&QueuedMessage> {
        match self.operations.front() {
            Some(Op::Message(message)) => Some(message),
            _ => None,
        }
    }

    /// Takes the message that [`OperationQueue::front_message`] shows.
    #[inline]
    pub(crate) fn pop_message(&mut self) -> Option<QueuedMessage> {
        match self.operations.pop_front()? {
            Op::Message(message) => Some(message),
            other => {
                self.operations.push_front(other);
                None
            }
        }
    }

    /// Appends a message or an RMA. What a large message holds up waits for its end.
    pub(crate) fn push(&mut self, op: Op) {
        if let Some(cell) = op.cell() {
            if let Some(hold) = self.holds.iter_mut().find(|hold| std::ptr::eq(hold.cell, cell)) {
                return hold.behind.push_back(op);
            }
            if op.holds() {
                self.hold(cell);
            }
        }
        self.operations.push_back(op);
    }

    /// Appends a control frame.
    pub(crate) fn push_control(&mut self, op: Op) {
        self.replies += usize::from(op.is_reply());
        self.controls.push_back(op);
    }

    /// Takes what goes next. It is [ended](OperationQueue::end) or [put
    /// back](OperationQueue::put_back).
    pub(crate) fn take(&mut self) -> Option<(Op, Turn)> {
        match self.controls.pop_front() {
            Some(op) => Some((op, Turn::Control)),
            None => self.operations.pop_front().map(|op| (op, Turn::Operation)),
        }
    }

    /// What was taken is done.
    pub(crate) fn end(&mut self, op: &Op, turn: Turn) {
        self.replies -= usize::from(turn == Turn::Control && op.is_reply());
    }

    /// What was taken waits on, as the first.
    pub(crate) fn put_back(&mut self, op: Op, turn: Turn) {
        match turn {
            Turn::Control => self.controls.push_front(op),
            Turn::Operation => self.operations.push_front(op),
        }
    }

    /// Passes each message and RMA to `keep` in order, and keeps what it returns.
    pub(crate) fn retain_operations(&mut self, mut keep: impl FnMut(Op) -> Option<Op>) {
        for _ in 0..self.operations.len() {
            let Some(op) = self.operations.pop_front() else { break };
            self.operations.extend(keep(op));
        }
        self.parked = std::mem::take(&mut self.parked).into_iter().filter_map(&mut keep).collect();
        self.unasked = std::mem::take(&mut self.unasked).into_iter().filter_map(&mut keep).collect();
        for mut hold in std::mem::take(&mut self.holds) {
            hold.behind = hold.behind.into_iter().filter_map(&mut keep).collect();
            let cell = hold.cell;
            self.holds.push(hold);
            let is_its = |op: &Op| op.holds() && op.cell().is_some_and(|other| std::ptr::eq(other, cell));
            if !self.operations.iter().chain(&self.parked).chain(&self.unasked).any(is_its) {
                self.release(cell);
            }
        }
        self.ask_next();
    }

    /// Keeps the control frames for which `keep` is true; those that are dropped are no replies.
    pub(crate) fn retain_controls(&mut self, keep: impl FnMut(&Op) -> bool) {
        self.controls.retain(keep);
    }

    pub(crate) fn clear_controls(&mut self) {
        self.controls.clear();
        self.replies = 0;
    }

    pub(crate) fn clear(&mut self) {
        self.operations.clear();
        self.parked.clear();
        self.unasked.clear();
        self.holds.clear();
        self.clear_controls();
    }

    /// Whether more replies wait than a peer of ours would leave.
    pub(crate) fn has_too_many_replies(&self) -> bool {
        self.replies > MAX_REPLIES
    }

    /// Whether so many control frames waited that no further request is taken, until fewer do.
    #[inline]
    pub(crate) fn is_backlogged(&self) -> bool {
        self.backlogged
    }

    /// Whether a request has to stay in the ring, because many control frames wait.
    pub(crate) fn begins_backlog(&mut self) -> bool {
        self.backlogged |= self.controls.len() >= MANY_CONTROLS;
        self.backlogged
    }

    /// Ends the backlog where few control frames wait.
    #[inline]
    pub(crate) fn check_backlog(&mut self) {
        self.backlogged &= self.controls.len() >= MANY_CONTROLS / 2;
    }
}
