//! A frame in flight: what it carries, and what became of its transmissions.

use super::batch::Batch;
use crate::Time;
use crate::engine::connection::conn::NONE;
use crate::engine::host::Target;
use crate::engine::serial::distance;

/// What a sequenced frame carries: enough to retransmit it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload {
    /// Nothing any more. Its number still has to arrive.
    Empty,
    Batch(Batch),
    /// Part of a write, by its number on the wire, because the host may have reused its own.
    Write {
        op: u32,
        at: u64,
        len: u32,
        is_last: bool,
    },
    /// Part of a write whose memory is gone: a record in its place makes the target refuse the
    /// whole.
    Aborted {
        op: u32,
        is_last: bool,
    },
    ReadBytes {
        op: u32,
        target: Target,
        at: u64,
        len: u32,
    },
}

impl Payload {
    /// Returns whether it carries a message or part of one.
    pub(crate) fn is_message(&self) -> bool {
        matches!(self, Self::Batch(batch) if batch.of != NONE)
    }

    /// Returns the batch that it carries.
    #[inline]
    pub(super) fn batch(&self) -> Option<&Batch> {
        match self {
            Self::Batch(batch) => Some(batch),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    Sent,
    Lost,
    Accepted,
}

/// A frame in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(super) payload: Payload,
    sent_at: Time,
    /// Number of its last transmission.
    number: u32,
    /// Bytes on the wire.
    bytes: u32,
    attempts: u8,
    /// Whether it last left whole and larger than the base MTU. Its loss or arrival tells whether
    /// the path carries that size.
    is_above_base: bool,
    /// Whether it was declared lost once.
    was_lost: bool,
    state: FrameState,
}

impl InFlight {
    /// A frame that is about to leave for the first time.
    #[inline]
    pub(super) const fn new(payload: Payload) -> Self {
        Self {
            payload,
            sent_at: Time(0),
            number: 0,
            bytes: 0,
            attempts: 0,
            is_above_base: false,
            was_lost: false,
            state: FrameState::Sent,
        }
    }

    pub(crate) const fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Returns when it was last sent.
    #[inline]
    pub(crate) const fn sent_at(&self) -> Time {
        self.sent_at
    }

    /// Returns the number of its last transmission.
    #[inline]
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// Returns its bytes on the wire.
    #[inline]
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Returns how often it was sent.
    #[inline]
    pub(crate) const fn attempts(&self) -> u8 {
        self.attempts
    }

    /// Returns whether it last left whole and larger than the base MTU.
    #[inline]
    pub(crate) const fn is_above_base(&self) -> bool {
        self.is_above_base
    }

    /// Returns whether it was sent, and neither accepted nor declared lost since.
    #[inline]
    pub(crate) fn is_sent(&self) -> bool {
        self.state == FrameState::Sent
    }

    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.state == FrameState::Lost
    }

    #[inline]
    pub(crate) fn is_accepted(&self) -> bool {
        self.state == FrameState::Accepted
    }

    /// Returns whether its acceptance shows that it was declared lost too early. `echo`: the newest
    /// transmission that the peer has received.
    #[inline]
    pub(super) fn is_spurious_loss(&self, echo: u32) -> bool {
        // The peer has not echoed its retransmission yet: an earlier one had arrived.
        self.is_lost() || self.was_lost && distance(self.number, echo) > 0
    }

    /// Notes that it leaves, whole or with its first slice.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, number: u32, bytes: u64, is_above_base: bool) {
        (self.number, self.sent_at) = (number, now);
        self.attempts = self.attempts.saturating_add(1);
        self.state = FrameState::Sent;
        self.is_above_base = is_above_base;
        self.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// Notes that a further slice of it leaves.
    pub(super) fn on_slice_sent(&mut self, now: Time, number: u32, bytes: u64) {
        (self.number, self.sent_at) = (number, now);
        self.state = FrameState::Sent;
        self.bytes = self.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    #[inline]
    pub(super) fn on_accepted(&mut self) {
        self.state = FrameState::Accepted;
    }

    pub(super) fn on_lost(&mut self) {
        (self.state, self.was_lost) = (FrameState::Lost, true);
    }

    /// Forgets its size: whether it arrives says nothing about the path.
    pub(super) fn forget_size(&mut self) {
        self.is_above_base = false;
    }
}
