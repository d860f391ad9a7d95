//! What waits in a lane: operations in their order, and answers, which go first.

use cci_mem::ring::{BODY, BODY_WORDS, Header};
use cci_transport::{Connection, Posted, Slot};
use std::collections::VecDeque;

/// Replies of the library that may wait for a peer's room.
const MAX_REPLIES: usize = 1 << 14;
/// Answers of any kind that may wait while requests are taken.
const MANY_ANSWERS: usize = 1 << 12;

/// The bytes of a message that waits for room.
pub(crate) enum QueuedPayload {
    /// As they will stand in the entry.
    Inline([u8; BODY]),
    /// In a buffer of the endpoint.
    Buffer(Box<[u8]>),
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
    Rma(Box<crate::rma::Pending>),
    Serve(Box<crate::rma::relay::Serve>),
}

impl Op {
    /// Whether the library answers a frame of the peer by it.
    pub(crate) fn is_reply(&self) -> bool {
        matches!(self, Self::Frame { reply: true, .. } | Self::Serve(_))
    }
}

/// Which of the two queues an operation stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Answer,
    Operation,
}

/// What waits in a lane for room, or for the peer.
#[derive(Default)]
pub(crate) struct OperationQueue {
    /// Messages and RMAs that wait, in order.
    operations: VecDeque<Op>,
    /// Control frames and answers that wait. They go first: an operation may wait for the peer's answer, and the peer for ours.
    answers: VecDeque<Op>,
    /// How many of the answers are replies.
    replies: usize,
    /// A CONNECT stays in the ring until fewer answers wait.
    backlogged: bool,
}

impl OperationQueue {
    /// Whether nothing waits.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.answers.len() | self.operations.len() == 0
    }

    #[inline(always)]
    pub(crate) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Messages and RMAs that wait.
    #[inline(always)]
    pub(crate) fn operations(&self) -> &VecDeque<Op> {
        &self.operations
    }

    pub(crate) fn operations_mut(&mut self) -> impl Iterator<Item = &mut Op> {
        self.operations.iter_mut()
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

    /// Appends a message or an RMA.
    pub(crate) fn push(&mut self, op: Op) {
        self.operations.push_back(op);
    }

    /// Appends a control frame or an answer.
    pub(crate) fn push_answer(&mut self, op: Op) {
        self.replies += usize::from(op.is_reply());
        self.answers.push_back(op);
    }

    /// Takes what goes next. It is [ended](OperationQueue::end) or [put back](OperationQueue::put_back).
    pub(crate) fn take(&mut self) -> Option<(Op, Turn)> {
        match self.answers.pop_front() {
            Some(op) => Some((op, Turn::Answer)),
            None => self.operations.pop_front().map(|op| (op, Turn::Operation)),
        }
    }

    /// What was taken is done.
    pub(crate) fn end(&mut self, op: &Op, turn: Turn) {
        self.replies -= usize::from(turn == Turn::Answer && op.is_reply());
    }

    /// What was taken waits on, as the first.
    pub(crate) fn put_back(&mut self, op: Op, turn: Turn) {
        match turn {
            Turn::Answer => self.answers.push_front(op),
            Turn::Operation => self.operations.push_front(op),
        }
    }

    /// Passes each message and RMA to `keep` in order, and keeps what it returns.
    pub(crate) fn retain_operations(&mut self, mut keep: impl FnMut(Op) -> Option<Op>) {
        for _ in 0..self.operations.len() {
            let Some(op) = self.operations.pop_front() else { break };
            self.operations.extend(keep(op));
        }
    }

    /// Keeps the answers for which `keep` is true; those that are dropped are no replies.
    pub(crate) fn retain_answers(&mut self, keep: impl FnMut(&Op) -> bool) {
        self.answers.retain(keep);
    }

    pub(crate) fn clear_answers(&mut self) {
        self.answers.clear();
        self.replies = 0;
    }

    pub(crate) fn clear(&mut self) {
        self.operations.clear();
        self.clear_answers();
    }

    /// Whether more replies wait than a peer of ours would leave.
    pub(crate) fn has_too_many_replies(&self) -> bool {
        self.replies > MAX_REPLIES
    }

    /// Whether so many answers waited that no further request is taken, until fewer do.
    #[inline]
    pub(crate) fn is_backlogged(&self) -> bool {
        self.backlogged
    }

    /// Whether a request has to stay in the ring, because many answers wait.
    pub(crate) fn begins_backlog(&mut self) -> bool {
        self.backlogged |= self.answers.len() >= MANY_ANSWERS;
        self.backlogged
    }

    /// Ends the backlog where few answers wait.
    #[inline]
    pub(crate) fn check_backlog(&mut self) {
        self.backlogged &= self.answers.len() >= MANY_ANSWERS / 2;
    }
}
