//! Memory for messages on their way.

use crate::Buffer;
use cci_mem::memory::Memory;
use cci_mem::pages::SharedPages;
use cci_transport::Message;
use std::fmt;
use std::sync::Arc;

/// Fixed-size buffers in memory that stays where it is.
pub struct Pool {
    memory: Memory,
    stride: usize,
    free: Vec<u32>,
    /// The first that was never taken; its memory is still untouched.
    fresh: u32,
    count: u32,
    scratch: Vec<u8>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} of {} bytes)", self.count, self.stride)
    }
}

impl Pool {
    /// So many buffers for messages of at most `longest` bytes.
    ///
    /// # Errors
    ///
    /// The system has no memory.
    pub fn new(count: u32, longest: usize) -> rustix::io::Result<Self> {
        // Whole lines, so that two messages never share one.
        let stride = longest.next_multiple_of(64);
        let len = stride * count as usize;
        let memory = Memory::of_pages(&Arc::new(SharedPages::new(len)?), len);
        let free = Vec::with_capacity(count as usize);
        Ok(Self { memory, stride, free, fresh: 0, count, scratch: vec![0; stride] })
    }

    /// The memory of all.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Where a buffer begins in the memory.
    #[inline]
    #[must_use]
    pub fn offset(&self, buffer: u32) -> u64 {
        u64::from(buffer) * self.stride as u64
    }

    fn take(&mut self) -> Option<u32> {
        if let Some(buffer) = self.free.pop() {
            return Some(buffer);
        }
        (self.fresh < self.count).then(|| {
            self.fresh += 1;
            self.fresh - 1
        })
    }

    /// A buffer with a message; `None`: all are taken.
    pub fn write_message(&mut self, message: &Message<'_>) -> Option<Buffer> {
        let buffer = self.take()?;
        let (at, len) = (self.offset(buffer), message.len());
        let Self { memory, scratch, .. } = self;
        let is_in = if let Message::One(bytes) = message {
            memory.copy_source(at, *bytes)
        } else {
            message.copy_to(&mut scratch[..len]);
            memory.copy_in(at, &scratch[..len])
        };
        debug_assert!(is_in, "the facade checks lengths");
        Some((buffer, len))
    }

    /// A buffer with these bytes; `None`: all are taken, or the bytes are too many.
    pub fn write(&mut self, bytes: &[u8]) -> Option<Buffer> {
        let buffer = self.take()?;
        if bytes.len() > self.stride || !self.memory.copy_in(self.offset(buffer), bytes) {
            self.give(buffer);
            return None;
        }
        Some((buffer, bytes.len()))
    }

    /// Takes a buffer back.
    pub fn give(&mut self, buffer: u32) {
        self.free.push(buffer);
    }
}
