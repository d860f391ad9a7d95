//! Memory for replies that cannot leave at once, and for the bytes of bulk replies: a buffer for
//! each credit, so that there is always one.

use crate::peers::Peer;
use crate::wire::{HEAD, SPAN, Span};
use cci::{HeapBytes, Memory};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is in a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// The requester.
    pub(crate) source: Peer,
    /// Bytes of the message; of a bulk reply the RMA's message is `message`.
    pub(crate) len: usize,
    /// Bytes of the payload that have left already.
    pub(crate) sent: usize,
    pub(crate) bulk: Option<Span>,
    pub(crate) message: [u8; HEAD + SPAN],
    pub(crate) message_len: usize,
    /// An RMA has begun, whose end frees the buffer.
    pub(crate) is_flying: bool,
}

#[derive(Debug)]
pub(crate) struct ReplyBuffers {
    memory: Memory,
    stride: usize,
    longest: usize,
    free: Vec<u32>,
    waiting: Vec<Option<Waiting>>,
    /// Buffers whose reply has not left, oldest first.
    pub(crate) queue: VecDeque<u32>,
}

impl ReplyBuffers {
    /// The system gives pages as they are written, so that unused buffers take no memory.
    pub(crate) fn new(count: u32, longest: usize) -> Self {
        let stride = (HEAD + longest).next_multiple_of(64);
        let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; stride * count as usize])));
        let waiting = vec![None; count as usize];
        Self { memory, stride, longest, free: (0..count).rev().collect(), waiting, queue: VecDeque::new() }
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The most bytes of a reply's payload.
    #[inline]
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    pub(crate) fn free(&mut self, buffer: u32) {
        self.waiting[buffer as usize] = None;
        self.free.push(buffer);
    }

    /// Where a buffer begins.
    pub(crate) fn offset(&self, buffer: u32) -> u64 {
        u64::from(buffer) * self.stride as u64
    }

    /// Copies bytes, no more than a head and the longest payload, into a buffer.
    pub(crate) fn fill(&self, buffer: u32, bytes: &[u8]) {
        let is_filled = self.memory.copy_in(self.offset(buffer), bytes);
        debug_assert!(is_filled, "{} bytes do not fit a reply buffer", bytes.len());
    }

    pub(crate) fn read(&self, buffer: u32, offset: usize, target: &mut [u8]) {
        let is_read = self.memory.copy_out(self.offset(buffer) + offset as u64, target);
        debug_assert!(is_read, "{offset} is not within a reply buffer");
    }

    pub(crate) fn set(&mut self, buffer: u32, waiting: Waiting) {
        self.waiting[buffer as usize] = Some(waiting);
    }

    pub(crate) fn get(&mut self, buffer: u32) -> Option<&mut Waiting> {
        self.waiting.get_mut(buffer as usize)?.as_mut()
    }

    /// Frees the buffers of a requester that is gone, and returns how many an RMA still reads.
    pub(crate) fn leave(&mut self, source: Peer) -> u32 {
        let of_source = |waiting: &Option<Waiting>| waiting.as_ref().is_some_and(|waiting| waiting.source == source);
        let (all, free) = (&mut self.waiting, &mut self.free);
        self.queue.retain(|buffer| {
            let is_gone = of_source(&all[*buffer as usize]);
            if is_gone {
                all[*buffer as usize] = None;
                free.push(*buffer);
            }
            !is_gone
        });
        let flying = self.waiting.iter().filter(|waiting| of_source(waiting)).count();
        u32::try_from(flying).unwrap_or(u32::MAX)
    }
}
