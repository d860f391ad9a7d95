//! Pools of frame buffers and hold buffers. A buffer gets its memory when it is first taken, so an
//! idle endpoint has none. The pool counts the buffers of each flow, so that a stuck flow leaves
//! some to the others.
//!
//! A short message needs no buffer: it lies in the descriptor of its operation.

use crate::engine::connection::conn::NONE;
use crate::engine::host::Op;
use crate::wire::MESSAGE_HEAD;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Buffers reserved for results and read requests, so that RMA continues while messages wait for
/// slots.
pub(super) const RESULT_RESERVE: usize = 16;
/// Bytes of the longest message that fits into a descriptor.
pub(crate) const SHORT: usize = 64;
/// The bit of a buffer's number that marks a descriptor. The other bits are the operation's number.
const DESCRIPTOR: u32 = 1 << 31;
/// Descriptors in one allocation.
const TOGETHER: usize = 64;

/// A buffer's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer(pub(crate) u32);

/// Room for the record of a short message.
type Descriptor = [u8; MESSAGE_HEAD + SHORT];

/// Buffers of one size, and descriptors.
pub(crate) struct FramePool {
    /// The buffers that have memory.
    buffers: Vec<Box<[u8]>>,
    /// By the operation's number. Chunks that were never used have no memory.
    descriptors: Vec<Vec<Descriptor>>,
    stride: usize,
    free: Vec<u32>,
    fresh: u32,
    count: u32,
    /// As `count`, or less after an allocation failed.
    limit: u32,
    /// The flow that holds each buffer, or [`NONE`].
    owners: Vec<u32>,
    /// Buffers of each flow, and the number of flows that hold some.
    held: Vec<u32>,
    holders: u32,
    /// Buffers that only answers may take.
    answers: usize,
    /// The message that is sent is an answer.
    is_answering: bool,
    /// Buffers that were given back so far.
    pub(crate) given: u64,
}

impl FramePool {
    pub(crate) const fn new(count: u32, stride: usize) -> Self {
        Self {
            buffers: Vec::new(),
            descriptors: Vec::new(),
            stride,
            free: Vec::new(),
            fresh: 0,
            count,
            limit: count,
            owners: Vec::new(),
            held: Vec::new(),
            holders: 0,
            answers: 0,
            is_answering: false,
            given: 0,
        }
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Returns how many buffers can be taken.
    pub(crate) fn left(&self) -> usize {
        self.free.len() + (self.limit - self.fresh) as usize
    }

    /// Sets so many buffers aside for answers.
    pub(crate) fn reserve_answers(&mut self, count: u32) {
        self.answers = count as usize;
    }

    /// Says whether the messages that follow are answers: they may take what is set aside, and need
    /// not leave their share to other flows.
    pub(crate) fn set_answering(&mut self, on: bool) {
        self.is_answering = on;
    }

    /// Returns how many buffers a message leaves.
    #[inline]
    fn reserve(&self) -> usize {
        if self.is_answering { RESULT_RESERVE } else { RESULT_RESERVE + self.answers }
    }

    /// Returns whether `needed` buffers can be taken for messages with [`FramePool::reserve`] left,
    /// and allocates their memory.
    #[inline]
    pub(crate) fn ensure(&mut self, needed: usize) -> bool {
        self.with_memory() >= needed && self.left() >= needed + self.reserve() || self.ensure_more(needed)
    }

    /// Returns how many buffers can be taken without an allocation.
    #[inline]
    fn with_memory(&self) -> usize {
        self.free.len() + self.buffers.len() - self.fresh as usize
    }

    #[cold]
    fn ensure_more(&mut self, needed: usize) -> bool {
        // An allocation may succeed again.
        self.limit = self.count;
        if self.left() < needed + self.reserve() {
            return false;
        }
        while self.with_memory() < needed {
            if !self.add() {
                return false;
            }
        }
        true
    }

    /// Allocates one more buffer. Returns false if there is no memory, or all `count` buffers
    /// exist.
    #[cold]
    fn add(&mut self) -> bool {
        let mut bytes = Vec::new();
        let has_memory = self.buffers.len() < self.count as usize
            && bytes.try_reserve_exact(self.stride).is_ok()
            && self.buffers.try_reserve(1).is_ok()
            && self.owners.try_reserve(1).is_ok()
            && self.free.try_reserve(self.buffers.len() + 1 - self.free.len()).is_ok();
        if has_memory {
            bytes.resize(self.stride, 0);
            self.buffers.push(bytes.into_boxed_slice());
            self.owners.push(NONE);
        } else {
            self.limit = u32::try_from(self.buffers.len()).unwrap_or(self.count);
        }
        has_memory
    }

    /// Returns whether a flow may take `needed` more buffers for messages while other connections
    /// are open. It holds at most as many as it leaves free (Choudhury and Hahne 1998, dynamic
    /// thresholds with a factor of 1). So any number of stuck flows leave some. It holds at most a
    /// quarter of all while another flow holds any. A flow that holds none may take what is free.
    pub(crate) fn is_fair(&self, flow: u32, needed: usize) -> bool {
        let held = self.held.get(flow as usize).map_or(0, |held| *held as usize);
        let others = self.holders as usize > usize::from(held > 0);
        let most = self.count as usize / if others { 4 } else { 1 };
        let left = self.left().saturating_sub(needed);
        held == 0 || self.is_answering || held + needed <= most.min(left)
    }

    /// Takes a buffer for a flow, or for [`NONE`].
    pub(crate) fn take(&mut self, flow: u32) -> Option<Buffer> {
        let buffer = match self.free.pop() {
            Some(buffer) => buffer,
            None if (self.fresh as usize) < self.buffers.len() || self.add() => {
                self.fresh += 1;
                self.fresh - 1
            }
            None => return None,
        };
        self.owners[buffer as usize] = flow;
        if flow != NONE {
            let index = flow as usize;
            if self.held.len() <= index {
                self.held.resize(index + 1, 0);
            }
            self.holders += u32::from(self.held[index] == 0);
            self.held[index] += 1;
        }
        Some(Buffer(buffer))
    }

    /// Returns the descriptor of an operation that is about to begin, or `None` if there is no
    /// memory.
    pub(crate) fn descriptor(&mut self, op: Op) -> Option<Buffer> {
        let chunk = op.0 as usize / TOGETHER;
        if self.descriptors.len() <= chunk {
            self.descriptors.try_reserve(chunk + 1 - self.descriptors.len()).ok()?;
            self.descriptors.resize_with(chunk + 1, Vec::new);
        }
        let chunk = &mut self.descriptors[chunk];
        if chunk.is_empty() {
            chunk.try_reserve_exact(TOGETHER).ok()?;
            chunk.resize(TOGETHER, [0; MESSAGE_HEAD + SHORT]);
        }
        Some(Buffer(DESCRIPTOR | op.0))
    }

    pub(crate) fn give(&mut self, buffer: Buffer) {
        self.given = self.given.wrapping_add(1);
        if buffer.0 & DESCRIPTOR != 0 {
            return;
        }
        let flow = self.owners.get(buffer.0 as usize).map_or(NONE, |flow| *flow);
        if let Some(held) = self.held.get_mut(flow as usize) {
            *held -= 1;
            self.holders -= u32::from(*held == 0);
        }
        self.free.push(buffer.0);
    }

    #[inline]
    pub(crate) fn bytes(&self, buffer: Buffer) -> &[u8] {
        if buffer.0 & DESCRIPTOR == 0 {
            return &self.buffers[buffer.0 as usize];
        }
        let op = (buffer.0 & !DESCRIPTOR) as usize;
        &self.descriptors[op / TOGETHER][op % TOGETHER]
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self, buffer: Buffer) -> &mut [u8] {
        if buffer.0 & DESCRIPTOR == 0 {
            return &mut self.buffers[buffer.0 as usize];
        }
        let op = (buffer.0 & !DESCRIPTOR) as usize;
        &mut self.descriptors[op / TOGETHER][op % TOGETHER]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_get_memory_when_they_are_taken() {
        let mut frames = FramePool::new(40, 100);
        assert_eq!((frames.left(), frames.buffers.len()), (40, 0));
        let first = frames.take(0).expect("one of forty");
        assert_eq!((frames.bytes(first).len(), frames.buffers.len(), frames.left()), (100, 1, 39));
        frames.give(first);
        assert_eq!(frames.take(0), Some(first), "the one freed last");
        assert!(frames.ensure(23) && frames.buffers.len() == 24);
        assert!(!frames.ensure(24), "the reserve stays");
        let rest: Vec<_> = core::iter::from_fn(|| frames.take(1)).collect();
        assert_eq!((rest.len(), frames.left(), frames.buffers.len()), (39, 0, 40));
    }

    #[test]
    fn answers_take_what_is_set_aside_and_no_share_is_asked_of_them() {
        let mut frames = FramePool::new(40, 100);
        frames.reserve_answers(10);
        assert!(frames.ensure(14) && !frames.ensure(15));
        frames.take(0);
        let held = core::iter::from_fn(|| frames.take(1)).take(13).count();
        assert_eq!((held, frames.ensure(1), frames.is_fair(1, 1)), (13, false, false));
        frames.set_answering(true);
        assert!(frames.ensure(10) && !frames.ensure(11), "the reserve of results stays");
        assert!(frames.is_fair(1, 1));
        frames.set_answering(false);
        assert!(!frames.ensure(1));
    }

    #[test]
    fn a_descriptor_is_its_operations_own() {
        let mut frames = FramePool::new(0, 100);
        let buffers = [0, 63, 64, 70_000].map(|op| frames.descriptor(Op(op)).expect("memory"));
        for (fill, buffer) in (1..).zip(buffers) {
            frames.bytes_mut(buffer).fill(fill);
        }
        for (fill, buffer) in (1..).zip(buffers) {
            assert_eq!(frames.bytes(buffer), [fill; MESSAGE_HEAD + SHORT]);
            frames.give(buffer);
        }
        assert_eq!((frames.left(), frames.free.len()), (0, 0));
    }
}
