//! A node at work: its virtual processor, what has arrived for it, and its wake-up.

use super::graph::Processor;
use cci_proto::Time;
use std::collections::VecDeque;

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    processor: Processor,
    /// When the processor has done what it was charged with.
    idle_at: Time,
    /// When the interface may send, and take in, the next frame.
    sends_at: Time,
    takes_at: Time,
    /// Numbers of frames that have come, and wait for the processor or the interface.
    pub(super) waiting: VecDeque<u32>,
    /// Numbers of frames that the program can take.
    pub(super) arrived: VecDeque<u32>,
    /// When it is to be woken.
    pub(super) wake: Option<Time>,
    /// The earliest event of a wake-up that is scheduled.
    pub(super) scheduled: Option<Time>,
}

impl Node {
    pub(super) fn new(processor: Processor) -> Self {
        Self {
            processor,
            idle_at: Time(0),
            sends_at: Time(0),
            takes_at: Time(0),
            waiting: VecDeque::new(),
            arrived: VecDeque::new(),
            wake: None,
            scheduled: None,
        }
    }

    /// Charges the sending of a frame of `len` bytes; returns when it enters its first link.
    pub(super) fn send(&mut self, now: Time, len: usize) -> Time {
        let overhead = self.processor.overhead(self.processor.send_overhead, len);
        self.idle_at = Time(now.0.max(self.idle_at.0) + overhead);
        let overlap = self.processor.overlap.min(overhead);
        let departure = Time((self.idle_at.0 - overlap).max(self.sends_at.0));
        self.sends_at = Time(departure.0 + self.processor.gap);
        departure
    }

    /// When the next frame that has come can be taken in: the processor is idle then, unless the
    /// program goes on first.
    pub(super) fn takes_at(&self, now: Time) -> Time {
        now.max(self.idle_at).max(self.takes_at)
    }

    /// Charges the reception of a frame of `len` bytes, now; returns when the program sees it.
    pub(super) fn receive(&mut self, now: Time, len: usize) -> Time {
        self.takes_at = Time(now.0 + self.processor.gap);
        self.idle_at = Time(now.0 + self.processor.overhead(self.processor.recv_overhead, len));
        self.idle_at
    }

    /// When the processor has done what it was charged with.
    pub(super) fn idle_at(&self) -> Time {
        self.idle_at
    }

    /// Charges work of the program.
    pub(super) fn charge(&mut self, now: Time, time: u64) {
        self.idle_at = Time(now.0.max(self.idle_at.0).saturating_add(time));
    }
}
