//! The frames in flight of a flow, from the oldest unacknowledged to the newest, and what they add
//! up to. The window itself, how many bytes may be in flight, is a matter of `congestion.rs` and of
//! the peer's receive buffer.

use super::batch::{Batch, Ops};
use super::frame_pool::Buffer;
use super::in_flight::{InFlight, Payload};
use super::limits::WINDOW;
use crate::Time;
use crate::engine::connection::conn::NONE;
use alloc::collections::VecDeque;

/// A frame without payload, to be filled in place.
const EMPTY: InFlight = InFlight::new(Payload::Empty);

/// Frames in flight. They are named by their index: 0 is the oldest.
#[derive(Default)]
pub(crate) struct SendWindow {
    frames: VecDeque<InFlight>,
    /// Bytes on the wire of the frames that are neither lost nor accepted.
    bytes: u64,
    /// Messages that were not acknowledged in order.
    messages: u32,
    /// Frames that are lost.
    lost: u32,
    /// No frame before this index is lost.
    lost_from: usize,
    /// Frames retransmitted in the life of the flow, for the report.
    resent: u64,
}

/// What an acknowledgement has newly accepted.
#[derive(Default)]
pub(crate) struct Accepted {
    /// Bytes on the wire.
    pub(crate) bytes: u64,
    /// Frames that had been declared lost too early.
    pub(crate) spurious: u32,
    /// Whether one of the frames was large.
    pub(crate) has_above_base: bool,
}

impl SendWindow {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns whether no other frame may be in flight, whatever its size.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() >= WINDOW
    }

    /// Returns the bytes in flight.
    #[inline]
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the messages in flight.
    #[inline]
    pub(crate) const fn messages(&self) -> u32 {
        self.messages
    }

    /// Returns how many frames were retransmitted.
    pub(crate) const fn resent(&self) -> u64 {
        self.resent
    }

    /// Returns whether a frame is lost.
    #[inline]
    pub(crate) const fn has_lost(&self) -> bool {
        self.lost > 0
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&InFlight> {
        self.frames.get(at)
    }

    /// Returns the oldest frame.
    #[inline]
    pub(crate) fn front(&self) -> Option<&InFlight> {
        self.frames.front()
    }

    /// Iterates over what the frames carry, the oldest first.
    pub(crate) fn payloads(&self) -> impl DoubleEndedIterator<Item = &Payload> {
        self.frames.iter().map(|frame| &frame.payload)
    }

    /// Returns the sequence number of the frame at this index, or of the frame that follows the
    /// newest. `next_seq`: the number after the newest one.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "at most WINDOW")]
    pub(crate) fn seq(&self, at: usize, next_seq: u32) -> u32 {
        next_seq.wrapping_sub((self.frames.len() - at) as u32)
    }

    /// Returns whether a frame was not accepted yet, as far as is known.
    pub(crate) fn awaits_ack(&self) -> bool {
        self.frames.iter().any(|frame| !frame.is_accepted())
    }

    /// Returns whether a frame was sent, and neither accepted nor declared lost since.
    pub(crate) fn has_sent(&self) -> bool {
        self.frames.iter().any(InFlight::is_sent)
    }

    /// Returns when the oldest message in flight was posted.
    pub(crate) fn oldest_message(&self) -> Option<Time> {
        self.payloads().find_map(|payload| payload.batch().filter(|batch| batch.messages > 0).map(|batch| batch.since))
    }

    /// Returns the newest operation that ends with a batch.
    pub(super) fn last_send(&self) -> Option<u32> {
        let mut tails = self.payloads().rev().filter_map(|payload| payload.batch().map(|batch| batch.ops.tail));
        tails.find(|tail| *tail != NONE)
    }

    /// Returns the index of the oldest frame that was not accepted.
    pub(crate) fn first_unaccepted(&self) -> Option<usize> {
        self.frames.iter().position(|frame| !frame.is_accepted())
    }

    /// Returns the index of the frame that was pushed this many frames ago, the newest 1 ago,
    /// unless it was accepted.
    pub(crate) fn unaccepted_back(&self, back: usize) -> Option<usize> {
        let at = self.frames.len().checked_sub(back)?;
        self.frames.get(at).is_some_and(|frame| !frame.is_accepted()).then_some(at)
    }

    /// Returns the index of the oldest lost frame, or of the oldest one without messages.
    pub(crate) fn next_lost(&mut self, with_messages: bool) -> Option<usize> {
        let is_lost = |at: &usize| self.frames[*at].is_lost();
        let first = (self.lost_from..self.frames.len()).find(is_lost)?;
        let may_go = |at: &usize| with_messages || !self.frames[*at].payload.is_message();
        let next = (first..self.frames.len()).find(|at| is_lost(at) && may_go(at));
        self.lost_from = first;
        next
    }

    /// Adds a frame that is about to leave. Returns its index.
    #[inline]
    pub(crate) fn push(&mut self, payload: Payload) -> usize {
        self.messages += payload.batch().map_or(0, |batch| u32::from(batch.messages));
        self.frames.push_back(InFlight::new(payload));
        self.frames.len() - 1
    }

    /// Adds a frame with one message. Returns its index.
    #[inline(always)]
    pub(crate) fn push_single(&mut self, batch: Batch) -> usize {
        // Built in place, and therefore always inline: a copy would load its bytes before they have
        // reached the cache.
        self.frames.push_back(EMPTY);
        if let Some(frame) = self.frames.back_mut() {
            frame.payload = Payload::Batch(batch);
        }
        self.messages += 1;
        self.frames.len() - 1
    }

    /// Notes that a frame leaves, with this transmission number and this many bytes on the wire:
    /// the whole frame, or its first slice. Returns whether it leaves for the first time and is the
    /// only one in flight; `None`: there is no such frame.
    #[inline]
    pub(crate) fn on_sent(
        &mut self,
        now: Time,
        at: usize,
        number: u32,
        bytes: u64,
        is_above_base: bool,
    ) -> Option<bool> {
        let is_only = self.frames.len() == 1;
        let frame = self.frames.get_mut(at)?;
        let is_first = frame.attempts() == 0;
        if frame.is_lost() {
            self.lost -= 1;
        } else if !is_first {
            self.bytes = self.bytes.saturating_sub(frame.bytes());
        }
        frame.on_sent(now, number, bytes, is_above_base);
        self.resent += u64::from(!is_first);
        self.bytes += bytes;
        Some(is_first && is_only)
    }

    /// Notes that one more slice of a frame leaves. Returns whether there is such a frame.
    pub(crate) fn on_slice_sent(&mut self, now: Time, at: usize, number: u32, bytes: u64) -> bool {
        let Some(frame) = self.frames.get_mut(at) else { return false };
        if frame.is_lost() {
            // It was declared lost too early: it had not left whole.
            self.lost -= 1;
            self.bytes += frame.bytes();
        }
        frame.on_slice_sent(now, number, bytes);
        self.bytes += bytes;
        true
    }

    /// Marks a frame as accepted. `echo`: the newest transmission that the peer has received.
    #[inline]
    fn accept(&mut self, at: usize, echo: u32, accepted: &mut Accepted) {
        let Some(frame) = self.frames.get_mut(at) else { return };
        accepted.bytes += frame.bytes();
        accepted.has_above_base |= frame.is_above_base();
        accepted.spurious += u32::from(frame.is_spurious_loss(echo));
        if frame.is_lost() {
            self.lost -= 1;
        } else {
            self.bytes = self.bytes.saturating_sub(frame.bytes());
        }
        frame.on_accepted();
    }

    /// Removes the oldest frame, which was acknowledged in order. Returns its batch.
    #[inline]
    pub(crate) fn pop_accepted(&mut self, echo: u32, accepted: &mut Accepted) -> Option<Batch> {
        if self.frames.front().is_some_and(|frame| !frame.is_accepted()) {
            self.accept(0, echo, accepted);
        }
        self.lost_from = self.lost_from.saturating_sub(1);
        match self.frames.pop_front()?.payload {
            Payload::Batch(batch) => {
                self.messages -= u32::from(batch.messages);
                Some(batch)
            }
            _ => None,
        }
    }

    /// Accepts a frame out of order. Returns the buffer that is not needed any more: that of a
    /// frame without messages, which only has to arrive.
    pub(crate) fn accept_out_of_order(&mut self, at: usize, echo: u32, accepted: &mut Accepted) -> Option<Buffer> {
        if self.frames.get(at)?.is_accepted() {
            return None;
        }
        self.accept(at, echo, accepted);
        let frame = self.frames.get_mut(at)?;
        let buffer = frame.payload.batch().filter(|batch| batch.messages == 0 && batch.ops.head == NONE)?.buffer;
        frame.payload = Payload::Empty;
        Some(buffer)
    }

    /// Declares a frame lost. Returns its bytes.
    pub(crate) fn declare_lost(&mut self, at: usize) -> u64 {
        let Some(frame) = self.frames.get_mut(at) else { return 0 };
        frame.on_lost();
        self.bytes = self.bytes.saturating_sub(frame.bytes());
        self.lost += 1;
        self.lost_from = self.lost_from.min(at);
        frame.bytes()
    }

    /// Forgets the sizes of all frames: their fate says nothing about the path.
    pub(crate) fn forget_sizes(&mut self) {
        self.frames.iter_mut().for_each(InFlight::forget_size);
    }

    /// Empties a frame whose memory is gone. A write becomes an aborted one. Returns what the frame
    /// carried.
    pub(crate) fn lose_memory(&mut self, at: usize) -> Option<Payload> {
        let frame = self.frames.get_mut(at)?;
        let rest = match frame.payload {
            Payload::Write { op, is_last, .. } => Payload::Aborted { op, is_last },
            _ => Payload::Empty,
        };
        Some(core::mem::replace(&mut frame.payload, rest))
    }

    /// Takes the first `most` operations out of a frame.
    pub(crate) fn take_ops(&mut self, at: usize, most: usize, links: &[u32]) -> Ops {
        match self.frames.get_mut(at).map(|frame| &mut frame.payload) {
            Some(Payload::Batch(batch)) => batch.take_ops(most, links),
            _ => Ops::NONE,
        }
    }

    /// Removes all frames. Returns their batches.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Batch> {
        self.frames.drain(..).filter_map(|frame| frame.payload.batch().copied())
    }

    /// Returns an empty window with the memory of this one.
    pub(super) fn emptied(mut self) -> Self {
        self.frames.clear();
        Self { frames: self.frames, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three frames of 100 bytes, sent with the numbers 0, 1 and 2.
    fn three() -> SendWindow {
        let mut window = SendWindow::default();
        for number in 0..3 {
            let at = window.push(Payload::Empty);
            assert_eq!(window.on_sent(Time(0), at, number, 100, false), Some(number == 0));
        }
        window
    }

    #[test]
    fn bytes_and_losses_follow_the_frames() {
        let mut window = three();
        assert_eq!((window.bytes(), window.has_lost(), window.next_lost(true)), (300, false, None));
        assert_eq!((window.declare_lost(1), window.bytes(), window.next_lost(true)), (100, 200, Some(1)));
        assert_eq!(window.on_sent(Time(1), 1, 3, 120, false), Some(false));
        assert_eq!((window.bytes(), window.has_lost(), window.resent()), (320, false, 1));
        let mut accepted = Accepted::default();
        (0..3).for_each(|_| assert!(window.pop_accepted(3, &mut accepted).is_none()));
        assert_eq!((accepted.bytes, accepted.spurious), (320, 0));
        assert_eq!((window.bytes(), window.is_empty()), (0, true));
    }

    #[test]
    fn a_frame_that_arrives_after_its_loss_was_lost_too_early() {
        for resend in [false, true] {
            let (mut window, mut accepted) = (three(), Accepted::default());
            window.declare_lost(0);
            if resend {
                // The peer has not received this transmission yet.
                window.on_sent(Time(1), 0, 3, 100, false);
            }
            window.pop_accepted(2, &mut accepted);
            assert_eq!((accepted.spurious, window.bytes(), window.has_lost()), (1, 200, false), "{resend}");
        }
    }

    #[test]
    fn the_index_of_the_first_loss_moves_with_the_frames() {
        let (mut window, mut accepted) = (three(), Accepted::default());
        window.declare_lost(2);
        assert_eq!(window.next_lost(true), Some(2));
        window.pop_accepted(1, &mut accepted);
        assert_eq!(window.next_lost(true), Some(1));
        window.declare_lost(0);
        assert_eq!((window.next_lost(true), window.seq(0, 7)), (Some(0), 5));
    }
}
