//! The peer's requests: results of its operations, which wait to be sent, and its reads, which are
//! being served. Only a read may stand in a frame many times; every other request is alone in one,
//! so that the window bounds its results. A frame with reads beyond the limit is dropped, and the
//! peer retransmits it.

use super::limits::{MAX_REQUESTS, WINDOW};
use super::rma_state::RmaAnswer;
use crate::engine::host::Target;
use alloc::collections::VecDeque;

/// A read of the peer that is being served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerRead {
    pub(crate) op: u32,
    pub(crate) target: Target,
    /// Offset of the next byte to be sent.
    pub(crate) at: u64,
}

/// Results to be sent, and reads to be served, the oldest first.
#[derive(Default)]
pub(crate) struct PeerRequests {
    results: VecDeque<(u32, RmaAnswer)>,
    reads: VecDeque<PeerRead>,
    /// Whether a read goes before the program's next operation.
    is_turn_of_reads: bool,
}

impl PeerRequests {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.results.is_empty()
    }

    /// Returns whether this many more results, or reads, may wait.
    pub(crate) fn has_room_for(&self, count: usize) -> bool {
        self.results.len().max(self.reads.len()) + count <= MAX_REQUESTS
    }

    /// Returns whether another read may wait.
    pub(crate) fn has_room_for_read(&self) -> bool {
        self.reads.len() < MAX_REQUESTS
    }

    /// Returns whether more results wait than a conforming peer has operations.
    pub(crate) fn is_flooded(&self) -> bool {
        self.results.len() >= WINDOW
    }

    /// Queues the result of an operation of the peer, or what else answers it.
    pub(crate) fn push_result(&mut self, op: u32, answer: RmaAnswer) {
        self.results.push_back((op, answer));
    }

    #[inline]
    pub(crate) fn has_results(&self) -> bool {
        !self.results.is_empty()
    }

    pub(crate) fn pop_result(&mut self) -> Option<(u32, RmaAnswer)> {
        self.results.pop_front()
    }

    /// Iterates over the results, the oldest first.
    pub(crate) fn results(&self) -> impl ExactSizeIterator<Item = (u32, RmaAnswer)> {
        self.results.iter().copied()
    }

    /// Begins to serve a read.
    pub(crate) fn push_read(&mut self, op: u32, target: Target) {
        self.reads.push_back(PeerRead { op, target, at: 0 });
    }

    /// Returns whether a read is served before the program's queue, and gives the queue the next
    /// turn. `has_queued`: something in the queue may leave.
    pub(crate) fn take_turn(&mut self, has_queued: bool) -> bool {
        let is_taken = !self.reads.is_empty() && (!has_queued || self.is_turn_of_reads);
        if is_taken {
            self.is_turn_of_reads = false;
        }
        is_taken
    }

    /// Gives the reads the next turn, because something of the queue leaves.
    #[inline]
    pub(crate) fn give_turn(&mut self) {
        self.is_turn_of_reads = true;
    }

    /// Returns the read whose bytes leave next.
    pub(crate) fn next_read(&self) -> Option<PeerRead> {
        self.reads.front().copied()
    }

    /// Notes that this many bytes of the next read leave.
    pub(crate) fn advance_read(&mut self, len: u64) {
        if let Some(read) = self.reads.front_mut() {
            read.at += len;
            if read.at == read.target.len {
                self.reads.pop_front();
            }
        }
    }

    /// Ends a read with this result: its memory is gone.
    pub(crate) fn refuse_read(&mut self, op: u32, answer: RmaAnswer) {
        self.reads.retain(|read| read.op != op);
        self.push_result(op, answer);
    }

    /// Results and reads that wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.results.len() + self.reads.len()
    }

    /// Returns empty lists with the memory of these.
    pub(super) fn emptied(mut self) -> Self {
        self.results.clear();
        self.reads.clear();
        Self { is_turn_of_reads: false, ..self }
    }
}
