//! What waits to leave on a connection, and what is in flight: operations, batches, frames.

use super::frame_pool::Buffer;
use crate::Time;
use crate::engine::connection::conn::NONE;
use crate::engine::host::{Op, Target};
use alloc::vec::Vec;

/// Operations that end when a frame is acknowledged: a list linked through `Engine::links`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ops {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl Ops {
    pub(crate) const NONE: Self = Self { head: NONE, tail: NONE };
}

/// Sets what follows an operation in its list.
pub(crate) fn link(links: &mut Vec<u32>, op: Op, next: u32) {
    let at = op.0 as usize;
    if links.len() <= at {
        links.resize(at + 1, NONE);
    }
    links[at] = next;
}

/// Appends one list of operations to another.
pub(crate) fn join(links: &mut [u32], first: Ops, second: Ops) -> Ops {
    if first.head == NONE {
        return second;
    }
    if second.head == NONE {
        return first;
    }
    if let Some(next) = links.get_mut(first.tail as usize) {
        *next = second.head;
    }
    Ops { head: first.head, tail: second.tail }
}

/// Records in a buffer that leave as one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) buffer: Buffer,
    /// Bytes of records.
    pub(crate) len: u16,
    /// Messages among them; each needs a slot of the peer.
    pub(crate) messages: u16,
    pub(crate) ops: Ops,
    /// The operation of its message, or of the first of its messages. Every part of a long message
    /// has it too.
    pub(crate) of: u32,
    /// Whether another message may be appended.
    pub(crate) is_open: bool,
    /// Whether the peer is asked to acknowledge at once.
    pub(crate) prompt: bool,
    /// When the first of its operations began.
    pub(crate) since: Time,
}

/// An entry of the queue of what waits for its first transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queued {
    Batch(Batch),
    /// An RMA, by its operation.
    Rma(Op),
    /// The end of a write whose memory was deregistered meanwhile, by its number on the wire.
    Aborted(u32),
}

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
