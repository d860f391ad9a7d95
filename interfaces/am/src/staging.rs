//! Registered memory from which copied bulk requests leave.

use cci::{HeapBytes, Memory};
use std::sync::Arc;

/// Copied bulk requests that may be under way.
const BUFFERS: u32 = 8;

#[derive(Debug)]
pub(crate) struct Staging<R> {
    memory: Memory,
    pub(crate) region: R,
    free: Vec<u32>,
    longest: usize,
}

impl<R> Staging<R> {
    /// The memory for buffers of this length. The system gives its pages as they are written.
    pub(crate) fn memory(longest: usize) -> Memory {
        Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; longest.max(1) * BUFFERS as usize])))
    }

    pub(crate) fn new(memory: Memory, region: R, longest: usize) -> Self {
        Self { memory, region, free: (0..BUFFERS).collect(), longest: longest.max(1) }
    }

    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Copies bytes, no more than the longest, into a buffer: its number and where it begins.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> Option<(u32, u64)> {
        let buffer = *self.free.last()?;
        let offset = u64::from(buffer) * self.longest as u64;
        if !self.memory.copy_in(offset, bytes) {
            return None;
        }
        self.free.pop();
        Some((buffer, offset))
    }

    pub(crate) fn free(&mut self, buffer: u32) {
        self.free.push(buffer);
    }
}
