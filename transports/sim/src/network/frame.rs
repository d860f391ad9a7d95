//! Frames on their way.

use super::graph::NodeIndex;

/// A frame as the network carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its sender.
    pub from: NodeIndex,
    /// Its receiver.
    pub to: NodeIndex,
    /// What the sender wrote on it for the receiver, beside the content: never corrupted.
    pub tag: u64,
    /// Marked by a congested link.
    pub congested: bool,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The frames that are on their way, by number. Buffers are used again, so that a network at work
/// allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Flights {
    frames: Vec<Frame>,
    free: Vec<u32>,
    spare: Vec<Vec<u8>>,
}

impl Flights {
    /// A frame with this content, in parts one after the other.
    pub(super) fn add(&mut self, from: NodeIndex, to: NodeIndex, tag: u64, parts: &[&[u8]]) -> u32 {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        for part in parts {
            bytes.extend_from_slice(part);
        }
        let frame = Frame { from, to, tag, congested: false, bytes };
        if let Some(number) = self.free.pop() {
            self.frames[number as usize] = frame;
            number
        } else {
            self.frames.push(frame);
            super::graph::index(self.frames.len() - 1)
        }
    }

    /// Another frame with the same content.
    pub(super) fn copy(&mut self, number: u32) -> u32 {
        let mut bytes = self.spare.pop().unwrap_or_default();
        let Frame { from, to, tag, congested, bytes: content } = &self.frames[number as usize];
        bytes.clear();
        bytes.extend_from_slice(content);
        let frame = Frame { from: *from, to: *to, tag: *tag, congested: *congested, bytes };
        if let Some(number) = self.free.pop() {
            self.frames[number as usize] = frame;
            number
        } else {
            self.frames.push(frame);
            super::graph::index(self.frames.len() - 1)
        }
    }

    pub(super) fn get(&mut self, number: u32) -> &mut Frame {
        &mut self.frames[number as usize]
    }

    /// A frame leaves the network; its number is free.
    pub(super) fn take(&mut self, number: u32) -> Frame {
        self.free.push(number);
        std::mem::take(&mut self.frames[number as usize])
    }

    /// A frame has been used up: its buffer serves another.
    pub(super) fn recycle(&mut self, frame: Frame) {
        self.spare.push(frame.bytes);
    }

    /// Frames on their way.
    pub(super) fn count(&self) -> usize {
        self.frames.len() - self.free.len()
    }
}
