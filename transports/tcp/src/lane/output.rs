//! Frames that are about to leave: bytes in the order of the stream.

use crate::frame::Header;
use cci_transport::Message;

/// Bytes beyond those that memory is needed for: frames without a message that leave with one.
const MORE: usize = 256;

/// Bytes of whole frames, `at..end`. The memory behind them keeps what was there: it is filled with
/// zeros once, not for each frame.
#[derive(Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    at: usize,
    end: usize,
}

impl Output {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Bytes that have not left.
    #[inline]
    pub(crate) fn left(&self) -> &[u8] {
        &self.bytes[self.at..self.end]
    }

    /// Whether it has no memory.
    #[inline]
    pub(crate) fn is_bare(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Gets memory.
    pub(crate) fn set_buffer(&mut self, buffer: Vec<u8>) {
        self.bytes = buffer;
    }

    /// Gives its memory away, once it is empty.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        (self.at, self.end) = (0, 0);
        std::mem::take(&mut self.bytes)
    }

    /// Appends a frame of which the parts are the body.
    pub(crate) fn frame(&mut self, header: &Header, parts: &[&[u8]]) {
        let header = header.emit();
        self.room(header.len()).copy_from_slice(&header);
        for part in parts {
            self.room(part.len()).copy_from_slice(part);
        }
    }

    /// Appends a frame whose body is a message.
    #[inline]
    pub(crate) fn message(&mut self, header: &Header, message: &Message<'_>) {
        self.frame(header, &[]);
        message.copy_to(self.room(message.len()));
    }

    /// Bytes at its end, to be filled in.
    #[inline]
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        let start = self.end;
        self.end += len;
        if self.bytes.len() < self.end {
            // The next time, a frame of another kind may leave with as many bytes.
            self.bytes.resize((self.end + MORE).next_power_of_two(), 0);
        }
        &mut self.bytes[start..self.end]
    }

    /// So many bytes have left. True: all have.
    #[inline]
    pub(crate) fn on_left(&mut self, count: usize) -> bool {
        self.at += count;
        let all = self.at >= self.end;
        if all {
            (self.at, self.end) = (0, 0);
        }
        all
    }
}
