//! A message on its way into frame buffers.

use crate::engine::flow::batch::{Batch, Ops};
use crate::engine::flow::frame_pool::{Buffer, FramePool, SHORT};
use crate::engine::flow::message_parts::AFTER;
use crate::engine::host::Op;
use crate::wire::{MESSAGE_HEAD, PART_HEAD, emit_message, emit_part};
use crate::{Cursor, Gather, Time};

/// A message that is being written into buffers.
pub(super) struct OutboundMessage<'a, M: ?Sized> {
    pub(crate) parts: &'a M,
    pub(crate) len: usize,
    /// Whether it belongs to an RMA. No other message shares its frame.
    pub(super) is_rma: bool,
    pub(crate) after: bool,
    pub(crate) op: Op,
    pub(crate) prompt: bool,
    pub(crate) now: Time,
    /// Bytes of records that a frame holds.
    pub(crate) capacity: usize,
    /// The flow that gets the buffers, and whether its connection is the only one.
    pub(crate) owner: u32,
    pub(super) is_only_conn: bool,
}

impl<M: Gather + ?Sized> OutboundMessage<'_, M> {
    /// Writes the message into one batch per frame, and passes them to `sink` in order. Returns
    /// false, and changes nothing, if there are too few buffers.
    pub(super) fn write_batches(
        &self,
        frames: &mut FramePool,
        part_number: &mut u32,
        mut sink: impl FnMut(Batch),
    ) -> bool {
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
        let mut cursor = Cursor::default();
        for at in (0..self.len).step_by(size) {
            let Some(buffer) = frames.take(self.owner) else { return false };
            let (count, is_last) = (size.min(self.len - at), at + size >= self.len);
            let bytes = frames.bytes_mut(buffer);
            let end = emit_part(bytes, 0, message, saturating_u32(self.len), saturating_u32(at), count);
            self.parts.copy(&mut cursor, &mut bytes[end..end + count]);
            let ops = if is_last { batch.ops } else { Ops::NONE };
            let (messages, prompt) = (u16::from(is_last), self.prompt && is_last);
            sink(Batch { buffer, len: saturating_u16(end + count), messages, ops, prompt, ..batch });
        }
        true
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
