//! Buffers for frames: those that wait or are in flight, and those held back. One allocation each, whose pages come when they are
//! first used.

use alloc::vec;
use alloc::vec::Vec;

/// A buffer's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffer(pub(super) u32);

/// Buffers of one size.
pub(super) struct Frames {
    bytes: Vec<u8>,
    stride: usize,
    free: Vec<u32>,
    fresh: u32,
    count: u32,
}

impl Frames {
    pub(super) fn new(count: u32, stride: usize) -> Self {
        let free = Vec::with_capacity(count as usize);
        Self { bytes: vec![0; stride * count as usize], stride, free, fresh: 0, count }
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Buffers that could be taken.
    pub(super) fn left(&self) -> usize {
        self.free.len() + (self.count - self.fresh) as usize
    }

    pub(super) fn take(&mut self) -> Option<Buffer> {
        if let Some(buffer) = self.free.pop() {
            return Some(Buffer(buffer));
        }
        (self.fresh < self.count).then(|| {
            self.fresh += 1;
            Buffer(self.fresh - 1)
        })
    }

    pub(super) fn give(&mut self, buffer: Buffer) {
        self.free.push(buffer.0);
    }

    #[inline]
    pub(super) fn bytes(&self, buffer: Buffer) -> &[u8] {
        let at = buffer.0 as usize * self.stride;
        &self.bytes[at..at + self.stride]
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self, buffer: Buffer) -> &mut [u8] {
        let at = buffer.0 as usize * self.stride;
        &mut self.bytes[at..at + self.stride]
    }
}
