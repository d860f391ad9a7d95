//! Sends and RMA: the application calls that fill the queue of a connection's flow.

use super::conn::{NONE, State};
use super::flow::{Batch, Flow, Ops, Queued};
use super::frame_pool::{Buffer, FramePool, SHORT};
use super::{Engine, Index, Op, Rma, Target, flow_of, get_ready};
use crate::wire::{DATA, MESSAGE_HEAD, PART_HEAD, emit_message, emit_part};
use crate::{Attribute, RmaError, SendError, Time};
use alloc::vec::Vec;

/// Most messages in one frame. Each needs a slot of the peer.
const MAX_MESSAGES: u16 = 512;

/// Bits of an operation's number on the wire that are the host's.
const OP_BITS: u32 = 20;
pub(super) const OP_MASK: u32 = (1 << OP_BITS) - 1;

/// The bit of a part's message number that marks a message to deliver only if the RMA before it was
/// not refused.
pub(super) const AFTER: u32 = 1 << 31;

/// State of an operation on RO, whose end is reported in order.
#[derive(Clone, Copy, Debug)]
pub(super) enum OrderedEnd {
    /// Its end is not ordered.
    None,
    Open,
    /// Ended; an earlier operation has not.
    Ended(Result<(), crate::Failure>),
}

/// An RMA that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct RmaState {
    pub(super) conn: u32,
    /// The operation's number on the wire: the host's number in the lower bits, and above them a
    /// count of RMAs. So a late result never ends a later operation with the same host number.
    pub(super) wire: u32,
    pub(super) target: Target,
    pub(super) read: bool,
    pub(super) fence: bool,
    pub(super) has_message: bool,
    /// Bytes cut into frames.
    pub(super) at: u64,
    /// Bytes that a read has brought.
    pub(super) received: u64,
    /// Whether its result or its last byte has come. Repetitions are ignored.
    pub(super) answered: bool,
    /// Events still to come before it ends: its result, and its message's acknowledgement.
    pub(super) left: u8,
    pub(super) failed: Option<crate::Failure>,
}

impl Engine {
    /// Sends a message: the concatenation of `parts`, which are copied. `ask`: request an
    /// acknowledgement at once. On a reliable connection the operation ends when the peer has
    /// delivered the message, on another when it has left.
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent, and the operation has not begun.
    pub fn send(&mut self, now: Time, index: Index, parts: &[&[u8]], op: Op, ask: bool) -> Result<(), SendError> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let index = index.0;
        let is_only_conn = self.table.len() < 2;
        let conn = self.table.get_mut(index).filter(|conn| conn.state == State::Open).ok_or(SendError::Disconnected)?;
        if len > self.small_peers.largest(conn, index, self.config.max_send_size) as usize {
            return Err(SendError::TooLong);
        }
        let capacity = (usize::from(conn.mtu) - DATA).min(self.frames.stride());
        let flow = flow_of(&mut self.flows, conn, index).ok_or(SendError::NoBuffers)?;
        link(&mut self.links, op, NONE);
        if let Some(Queued::Batch(batch)) = flow.queue.back_mut()
            && batch.is_open
            && usize::from(batch.len) + MESSAGE_HEAD + len <= capacity
            && batch.messages < MAX_MESSAGES
        {
            let end = emit_message(self.frames.bytes_mut(batch.buffer), usize::from(batch.len), false, parts);
            batch.len = u16::try_from(end).unwrap_or(u16::MAX);
            batch.messages += 1;
            batch.prompt |= ask;
            link(&mut self.links, Op(batch.ops.tail), op.0);
            batch.ops.tail = op.0;
        } else {
            let owner = conn.flow;
            let message = OutboundMessage {
                parts,
                len,
                is_rma: false,
                after: false,
                op,
                prompt: ask,
                now,
                capacity,
                owner,
                is_only_conn,
            };
            let queue = &mut flow.queue;
            if !message.write_batches(&mut self.frames, &mut self.parts, |batch| queue.push_back(Queued::Batch(batch)))
            {
                // A flow taken above stays without use, and is given back by the timer.
                get_ready(conn, index, &mut self.ready);
                return Err(SendError::NoBuffers);
            }
        }
        if !flow.order.is_empty() {
            queue_ordered_end(&mut self.ordered_ends, flow, op);
        }
        get_ready(conn, index, &mut self.ready);
        Ok(())
    }

    /// Starts an RMA.
    ///
    /// # Errors
    ///
    /// Refused: nothing was copied, and the operation has not begun.
    pub fn rma(&mut self, now: Time, index: Index, rma: &Rma<'_>) -> Result<(), RmaError> {
        let index = index.0;
        let is_only_conn = self.table.len() < 2;
        let conn = self.table.get_mut(index).filter(|conn| conn.state == State::Open).ok_or(RmaError::Disconnected)?;
        if !conn.is_reliable() {
            return Err(RmaError::Unreliable);
        }
        if rma.target.len == 0 {
            return Err(RmaError::ZeroLength);
        }
        let len = rma.message.map_or(0, <[u8]>::len);
        if len > self.small_peers.largest(conn, index, self.config.max_send_size) as usize {
            return Err(RmaError::MessageTooLong);
        }
        let capacity = (usize::from(conn.mtu) - DATA).min(self.frames.stride());
        let flow = flow_of(&mut self.flows, conn, index).ok_or(RmaError::NoBuffers)?;
        let op = rma.op;
        let before = flow.last_send();
        flow.queue.push_back(Queued::Rma(op));
        if let Some(message) = rma.message {
            // A read's message is queued when the data has come, so the peer need not check an
            // earlier RMA.
            let (parts, owner) = (&[message], conn.flow);
            let after = !rma.read;
            let message = OutboundMessage {
                parts,
                len,
                is_rma: true,
                after,
                op,
                prompt: false,
                now,
                capacity,
                owner,
                is_only_conn,
            };
            let (queue, deferred) = (&mut flow.queue, &mut flow.deferred);
            // A read's message is deferred until the data has come.
            let defer =
                |batch| if rma.read { deferred.push_back((op, batch)) } else { queue.push_back(Queued::Batch(batch)) };
            if !message.write_batches(&mut self.frames, &mut self.parts, defer) {
                flow.queue.pop_back();
                get_ready(conn, index, &mut self.ready);
                return Err(RmaError::NoBuffers);
            }
        }
        link(&mut self.links, op, NONE);
        let at = op.0 as usize;
        if self.rmas.len() <= at {
            self.rmas.resize(at + 1, None);
        }
        self.rmas[at] = Some(RmaState {
            conn: index,
            wire: op.0 & OP_MASK | self.lives << OP_BITS,
            target: rma.target,
            read: rma.read,
            fence: rma.fence,
            has_message: rma.message.is_some(),
            at: 0,
            received: 0,
            answered: false,
            left: 1 + u8::from(rma.message.is_some()),
            failed: None,
        });
        self.lives = self.lives.wrapping_add(1);
        if flow.open_rmas == 0 {
            flow.rma_since = now;
        }
        flow.open_rmas += 1;
        if conn.attribute() == Attribute::ReliableOrdered {
            // Sends end in order by themselves: the newest one stands for all.
            before.into_iter().chain([op]).for_each(|op| queue_ordered_end(&mut self.ordered_ends, flow, op));
        }
        get_ready(conn, index, &mut self.ready);
        Ok(())
    }
}

/// A message that is being written into buffers.
struct OutboundMessage<'a> {
    parts: &'a [&'a [u8]],
    len: usize,
    /// Whether it belongs to an RMA. No other message shares its frame.
    is_rma: bool,
    after: bool,
    op: Op,
    prompt: bool,
    now: Time,
    /// Bytes of records that a frame holds.
    capacity: usize,
    /// The flow that gets the buffers, and whether its connection is the only one.
    owner: u32,
    is_only_conn: bool,
}

impl OutboundMessage<'_> {
    /// Writes the message into one batch per frame, and passes them to `sink` in order. Returns
    /// false, and changes nothing, if there are too few buffers.
    fn write_batches(&self, frames: &mut FramePool, part_number: &mut u32, mut sink: impl FnMut(Batch)) -> bool {
        let size = self.capacity - PART_HEAD;
        let whole = MESSAGE_HEAD + self.len <= self.capacity;
        let needed = if whole { 1 } else { self.len.div_ceil(size) };
        let is_short = whole && self.len <= SHORT;
        // Consecutive short sends share a buffer. A short message of an RMA uses its descriptor.
        let has_buffers = !(is_short && self.is_rma)
            && frames.ensure(needed)
            && (self.is_only_conn || frames.is_fair(self.owner, needed));
        if !has_buffers && !is_short {
            return false;
        }
        let mut batch = Batch {
            buffer: Buffer(0),
            len: 0,
            messages: 1,
            ops: Ops { head: self.op.0, tail: self.op.0 },
            of: self.op.0,
            is_open: whole && has_buffers && !self.after,
            prompt: self.prompt,
            since: self.now,
        };
        if whole {
            let buffer = if has_buffers { frames.take(self.owner) } else { frames.descriptor(self.op) };
            let Some(buffer) = buffer else { return false };
            batch.buffer = buffer;
            batch.len = saturating_u16(emit_message(frames.bytes_mut(buffer), 0, self.after, self.parts));
            sink(batch);
            return true;
        }
        let message = *part_number & !AFTER | if self.after { AFTER } else { 0 };
        *part_number = part_number.wrapping_add(1);
        let mut source = Parts { parts: self.parts, rest: &[] };
        for at in (0..self.len).step_by(size) {
            let Some(buffer) = frames.take(self.owner) else { return false };
            let (count, is_last) = (size.min(self.len - at), at + size >= self.len);
            let bytes = frames.bytes_mut(buffer);
            let end = emit_part(bytes, 0, message, saturating_u32(self.len), saturating_u32(at), count);
            source.copy(&mut bytes[end..end + count]);
            let ops = if is_last { batch.ops } else { Ops::NONE };
            let (messages, prompt) = (u16::from(is_last), self.prompt && is_last);
            sink(Batch { buffer, len: saturating_u16(end + count), messages, ops, prompt, ..batch });
        }
        true
    }
}

/// The bytes of a message that consists of several parts.
struct Parts<'a> {
    parts: &'a [&'a [u8]],
    rest: &'a [u8],
}

impl Parts<'_> {
    /// Copies the next bytes.
    fn copy(&mut self, mut target: &mut [u8]) {
        while !target.is_empty() {
            while self.rest.is_empty() {
                let Some((first, others)) = self.parts.split_first() else { return };
                (self.rest, self.parts) = (first, others);
            }
            let count = target.len().min(self.rest.len());
            let (now, later) = target.split_at_mut(count);
            now.copy_from_slice(&self.rest[..count]);
            (target, self.rest) = (later, &self.rest[count..]);
        }
    }
}

/// Converts to 16 bits, or returns the largest value if it does not fit.
pub(super) fn saturating_u16(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

/// Converts to 32 bits, or returns the largest value if it does not fit.
pub(super) fn saturating_u32(value: impl TryInto<u32>) -> u32 {
    value.try_into().unwrap_or(u32::MAX)
}

/// Makes the end of an operation wait for those before it.
fn queue_ordered_end(ordered_ends: &mut Vec<OrderedEnd>, flow: &mut Flow, op: Op) {
    flow.order.push_back(op);
    let at = op.0 as usize;
    if ordered_ends.len() <= at {
        ordered_ends.resize(at + 1, OrderedEnd::None);
    }
    ordered_ends[at] = OrderedEnd::Open;
}

/// Sets what follows an operation in its list.
pub(super) fn link(links: &mut Vec<u32>, op: Op, next: u32) {
    let at = op.0 as usize;
    if links.len() <= at {
        links.resize(at + 1, NONE);
    }
    links[at] = next;
}
