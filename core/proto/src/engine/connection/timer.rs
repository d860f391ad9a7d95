//! The timers of all connections in one table.

use crate::Time;
use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Reverse;

/// Entries that may be left over whatever the number of connections.
const SPARE: usize = 256;

/// An acknowledgement that waits for an answer of the program. It is valid while the connection's
/// `ack_number` is the same.
#[derive(Clone, Copy)]
pub(crate) struct DelayedAck {
    pub(crate) deadline: Time,
    pub(crate) index: u32,
    pub(crate) number: u16,
}

/// Deadlines. A connection has one valid entry (its `armed`). An entry with another time is stale
/// and ignored. A deadline that moves back keeps its entry: the timer fires early, finds nothing
/// due, and is armed again.
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// Acknowledgements that wait: the delay is the same for all, so that they stand in order.
    acks: VecDeque<DelayedAck>,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::with_capacity(2 * SPARE), acks: VecDeque::new() }
    }

    /// Entries, those that are left over too.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Removes stale entries once they are the majority.
    pub(crate) fn sweep(&mut self, connections: usize, mut counts: impl FnMut(Time, u32) -> bool) {
        if self.heap.len() > 2 * connections + SPARE {
            self.heap.retain(|Reverse((deadline, index))| counts(*deadline, *index));
        }
    }

    /// Arms the timer of connection `index` for `deadline`; `armed` is the connection's entry.
    pub(crate) fn arm(&mut self, index: u32, deadline: Time, armed: &mut Time) {
        if deadline < *armed {
            *armed = deadline;
            self.heap.push(Reverse((deadline, index)));
        }
    }

    pub(crate) fn ack_at(&mut self, ack: DelayedAck) {
        self.acks.push_back(ack);
    }

    /// Whether an entry is due.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.heap.peek().is_some_and(|Reverse((deadline, _))| *deadline <= now)
    }

    /// The next entry that is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, u32)> {
        let Reverse((deadline, index)) = *self.heap.peek()?;
        if deadline > now {
            return None;
        }
        self.heap.pop();
        // What ten thousand handshakes at a time needed is not kept for ever.
        if self.heap.len() * 8 < self.heap.capacity() && self.heap.capacity() > 4 * SPARE {
            self.heap.shrink_to((2 * self.heap.len()).max(2 * SPARE));
        }
        Some((deadline, index))
    }

    /// The acknowledgement that has waited longest.
    pub(crate) fn first_ack(&self) -> Option<DelayedAck> {
        self.acks.front().copied()
    }

    pub(crate) fn drop_ack(&mut self) {
        self.acks.pop_front();
    }

    pub(crate) fn next_ack(&self) -> Option<Time> {
        self.acks.front().map(|ack| ack.deadline)
    }

    pub(crate) fn next(&self) -> Option<Time> {
        let timer = self.heap.peek().map(|Reverse((deadline, _))| *deadline);
        match (timer, self.next_ack()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
