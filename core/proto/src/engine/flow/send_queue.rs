//! What waits for its first transmission: messages in batches, and RMAs, in the order in which they
//! were posted.

use super::batch::Batch;
use super::frame_pool::FramePool;
use crate::Time;
use crate::engine::connection::conn::NONE;
use crate::engine::host::Op;
use alloc::collections::VecDeque;

/// An entry of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queued {
    Batch(Batch),
    /// An RMA, by its operation.
    Rma(Op),
    /// The end of a write whose memory was deregistered meanwhile, by its number on the wire.
    Aborted(u32),
}

/// The send queue of a flow.
#[derive(Default)]
pub(crate) struct SendQueue {
    entries: VecDeque<Queued>,
    /// Messages of reads, deferred until the data has arrived.
    deferred: VecDeque<(Op, Batch)>,
}

impl SendQueue {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Messages in it. Looks at every entry.
    pub(crate) fn messages(&self) -> usize {
        let messages = |queued: &Queued| match queued {
            Queued::Batch(batch) => usize::from(batch.messages),
            Queued::Rma(_) | Queued::Aborted(_) => 0,
        };
        self.entries.iter().map(messages).sum()
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&Queued> {
        self.entries.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Queued> {
        self.entries.pop_front()
    }

    pub(crate) fn push_batch(&mut self, batch: Batch) {
        self.entries.push_back(Queued::Batch(batch));
    }

    /// Returns the newest entry if it is a batch to which another message may be appended.
    pub(crate) fn open_batch(&mut self) -> Option<&mut Batch> {
        match self.entries.back_mut() {
            Some(Queued::Batch(batch)) if batch.is_open => Some(batch),
            _ => None,
        }
    }

    pub(crate) fn push_rma(&mut self, op: Op) {
        self.entries.push_back(Queued::Rma(op));
    }

    /// Undoes [`SendQueue::push_rma`], since which nothing was pushed.
    pub(crate) fn cancel_rma(&mut self) {
        self.entries.pop_back();
    }

    /// Queues the write of a large message whose memory the peer has given, before everything else,
    /// because what is queued may wait for it. Only the message of a write goes first that has been
    /// sent: the peer takes it for one of the write before it. `is_barrier`: everything else waits
    /// for this write. `is_of_rma`: whether a batch has the message of an RMA.
    pub(crate) fn push_granted(&mut self, op: Op, is_barrier: bool, is_of_rma: impl Fn(&Batch) -> bool) {
        let passes = |queued: &Queued| matches!(queued, Queued::Batch(batch) if is_of_rma(batch));
        let first = if is_barrier { 0 } else { self.entries.iter().take_while(|queued| passes(queued)).count() };
        self.entries.insert(first, Queued::Rma(op));
    }

    /// Keeps a batch of a read's message until the data has arrived.
    pub(crate) fn defer(&mut self, op: Op, batch: Batch) {
        self.deferred.push_back((op, batch));
    }

    /// Queues the deferred message of a read, before everything else.
    pub(crate) fn release(&mut self, op: Op) {
        // The parts of a message are adjacent, and reads mostly end in the order in which they
        // began.
        let first = self.deferred.iter().position(|(of, _)| *of == op).unwrap_or(0);
        let count = self.deferred.iter().skip(first).take_while(|(of, _)| *of == op).count();
        for at in (first..first + count).rev() {
            if let Some((_, batch)) = self.deferred.remove(at) {
                self.entries.push_front(Queued::Batch(batch));
            }
        }
    }

    /// Frees the deferred message of a read that failed.
    pub(crate) fn drop_deferred(&mut self, op: Op, frames: &mut FramePool) {
        self.deferred.retain(|(of, batch)| {
            if *of == op {
                frames.give(batch.buffer);
            }
            *of != op
        });
    }

    /// Aborts a write, by its operation and its number on the wire: drops its unsent bytes and its
    /// message. If its last frame was not sent, an aborted frame takes its place. Returns whether
    /// its message was dropped.
    pub(crate) fn abort(&mut self, op: Op, wire: u32, frames: &mut FramePool) -> bool {
        let mut is_dropped = false;
        self.entries.retain_mut(|queued| match queued {
            Queued::Rma(of) if *of == op => {
                *queued = Queued::Aborted(wire);
                true
            }
            Queued::Batch(batch) if batch.of == op.0 => {
                frames.give(batch.buffer);
                is_dropped |= batch.ops.head == op.0;
                false
            }
            _ => true,
        });
        is_dropped
    }

    /// Returns when the oldest queued message was posted.
    pub(crate) fn oldest_message(&self) -> Option<Time> {
        self.entries.iter().find_map(|queued| match queued {
            Queued::Batch(batch) => Some(batch.since),
            Queued::Rma(_) | Queued::Aborted(_) => None,
        })
    }

    /// Returns the newest operation that ends with a batch.
    pub(super) fn last_send(&self) -> Option<u32> {
        let mut tails = self.entries.iter().rev().filter_map(|queued| match queued {
            Queued::Batch(batch) => Some(batch.ops.tail),
            Queued::Rma(_) | Queued::Aborted(_) => None,
        });
        tails.find(|tail| *tail != NONE)
    }

    /// Removes all entries. Returns the batches.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Batch> {
        self.entries.drain(..).filter_map(|queued| match queued {
            Queued::Batch(batch) => Some(batch),
            Queued::Rma(_) | Queued::Aborted(_) => None,
        })
    }

    /// Removes all deferred messages.
    pub(crate) fn drain_deferred(&mut self) -> impl Iterator<Item = Batch> {
        self.deferred.drain(..).map(|(_, batch)| batch)
    }

    /// Returns an empty queue with the memory of this one.
    pub(super) fn emptied(mut self) -> Self {
        self.entries.clear();
        Self { entries: self.entries, deferred: VecDeque::new() }
    }
}
