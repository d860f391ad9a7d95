//! What is in flight on a connection, and what came out of order.

use super::batch::Batch;
use super::frame_pool::Buffer;
use crate::Time;
use crate::engine::connection::conn::NONE;
use crate::engine::host::Target;

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
}

/// State of a frame in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameState {
    Sent,
    Lost,
    Accepted,
}

/// A frame in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) payload: Payload,
    pub(crate) sent: Time,
    /// Number of its last transmission.
    pub(crate) number: u32,
    /// Bytes on the wire.
    pub(crate) bytes: u32,
    pub(crate) attempts: u8,
    /// Whether it last left whole and larger than the base MTU. Its loss or arrival tells whether
    /// the path carries that size.
    pub(crate) is_large: bool,
    /// Whether it was declared lost once.
    pub(crate) was_lost: bool,
    pub(crate) state: FrameState,
}

pub(crate) const fn fresh(payload: Payload) -> InFlight {
    InFlight {
        payload,
        sent: Time(0),
        number: 0,
        bytes: 0,
        attempts: 0,
        is_large: false,
        was_lost: false,
        state: FrameState::Sent,
    }
}

/// An entry of the reorder queue. The first entry is the next in-order frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReorderEntry {
    Missing,
    /// Applied; only its number has to pass.
    Done,
    /// The last frame of a write.
    WriteEnd {
        op: u32,
    },
    /// Records to be applied in their turn.
    Held {
        buffer: Buffer,
        len: u16,
    },
}
