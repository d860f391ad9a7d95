//! Frames that came out of order, or whose messages found no slot, until their turn.

use super::frame_pool::Buffer;
use crate::wire::MAX_SACK;
use alloc::collections::VecDeque;

/// An entry of the reorder queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReorderEntry {
    Missing,
    /// Applied; only its number has to pass.
    Done,
    /// The last frame of a write.
    WriteEnd {
        op: u32,
    },
    /// Records to be applied in their turn.
    Held {
        buffer: Buffer,
        len: u16,
    },
}

impl ReorderEntry {
    #[inline]
    const fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

/// The reorder queue of a flow. Frames are named by their *gap*: how many frames before their turn
/// they came. The first entry, of gap 0, is the next in-order frame.
#[derive(Default)]
pub(crate) struct ReorderQueue(VecDeque<ReorderEntry>);

impl ReorderQueue {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a frame after the next in-order one has come.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns whether this frame has come.
    pub(crate) fn has(&self, gap: usize) -> bool {
        self.0.get(gap).is_some_and(|entry| !entry.is_missing())
    }

    /// Returns whether this frame is newer than all that have come.
    #[inline]
    pub(crate) fn is_newest(&self, gap: usize) -> bool {
        gap >= self.0.len()
    }

    /// Returns the entry of the next in-order frame.
    #[inline]
    pub(crate) fn front(&self) -> Option<ReorderEntry> {
        self.0.front().copied()
    }

    /// Sets the entry of a frame.
    pub(crate) fn put(&mut self, gap: usize, entry: ReorderEntry) {
        while self.0.len() <= gap {
            self.0.push_back(ReorderEntry::Missing);
        }
        self.0[gap] = entry;
    }

    /// Advances past the next in-order frame.
    #[inline]
    pub(crate) fn pop(&mut self) {
        self.0.pop_front();
    }

    /// Returns how many SACK words cover the queue, which is not empty.
    pub(crate) fn sack_words(&self) -> usize {
        (self.0.len() - 1).div_ceil(64)
    }

    /// Returns the frames after the next in-order one as SACK bits.
    pub(crate) fn sack(&self) -> [u64; MAX_SACK] {
        self.bits(|entry| !entry.is_missing()).0
    }

    /// Returns the frames after the next in-order one whose messages were delivered, as SACK bits,
    /// and how many words those take. Frames that are held are not among them.
    pub(crate) fn delivered(&self) -> ([u64; MAX_SACK], usize) {
        self.bits(|entry| matches!(entry, ReorderEntry::Done))
    }

    fn bits(&self, is_set: impl Fn(&ReorderEntry) -> bool) -> ([u64; MAX_SACK], usize) {
        let (mut words, mut count) = ([0; MAX_SACK], 0);
        for (at, entry) in self.0.iter().skip(1).take(64 * MAX_SACK).enumerate() {
            if is_set(entry) {
                words[at / 64] |= 1 << (at % 64);
                count = at / 64 + 1;
            }
        }
        (words, count)
    }

    /// Removes all entries. Returns the hold buffers.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Buffer> {
        self.0.drain(..).filter_map(|entry| match entry {
            ReorderEntry::Held { buffer, .. } => Some(buffer),
            _ => None,
        })
    }

    /// Returns an empty queue with the memory of this one.
    pub(super) fn emptied(mut self) -> Self {
        self.0.clear();
        self
    }
}
