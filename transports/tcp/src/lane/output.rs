//! Frames that are about to leave: bytes in the order of the stream.

use crate::frame::Header;
use cci_transport::Message;

/// Bytes of whole frames; those before `at` have left.
#[derive(Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    at: usize,
}

impl Output {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that have not left.
    #[inline]
    pub(crate) fn left(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Whether it has no memory.
    #[inline]
    pub(crate) fn is_bare(&self) -> bool {
        self.bytes.capacity() == 0
    }

    /// Gets memory.
    pub(crate) fn set_buffer(&mut self, buffer: Vec<u8>) {
        self.bytes = buffer;
    }

    /// Gives its memory away, once it is empty.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.at = 0;
        std::mem::take(&mut self.bytes)
    }

    /// Appends a frame of which the parts are the body.
    pub(crate) fn frame(&mut self, header: &Header, parts: &[&[u8]]) {
        self.bytes.extend_from_slice(&header.emit());
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
    }

    /// Appends a frame whose body is a message.
    #[inline]
    pub(crate) fn message(&mut self, header: &Header, message: &Message<'_>) {
        self.bytes.extend_from_slice(&header.emit());
        let start = self.bytes.len();
        self.bytes.resize(start + message.len(), 0);
        message.copy_to(&mut self.bytes[start..]);
    }

    /// Bytes at its end, to be filled in.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0);
        &mut self.bytes[start..]
    }

    /// So many bytes have left. True: all have.
    #[inline]
    pub(crate) fn on_left(&mut self, count: usize) -> bool {
        self.at += count;
        let all = self.at >= self.bytes.len();
        if all {
            self.bytes.clear();
            self.at = 0;
        }
        all
    }
}
