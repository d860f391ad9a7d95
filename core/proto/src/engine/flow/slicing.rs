//! How a frame that the path no longer carries whole is cut into slices.

use crate::wire::{DATA, SLICE_HEAD, WRITE_HEAD};

/// A part of the records of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) at: usize,
    pub(crate) len: usize,
    pub(crate) total: usize,
}

impl Slice {
    /// Bytes of a slice in frames of at most `mtu`; those of a record's head are never cut.
    fn size(mtu: u16) -> usize {
        usize::from(mtu).saturating_sub(DATA + SLICE_HEAD).max(WRITE_HEAD + 1)
    }

    /// All of them.
    pub(crate) const fn whole(total: usize) -> Self {
        Self { at: 0, len: total, total }
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.len == self.total
    }
}

/// A frame that is leaving in slices: the next slice, and how many are left. Each retransmission
/// begins with another slice, from the first and the second half in turn. A queue that takes only
/// the first few frames of a burst would otherwise drop the same slices each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slicing {
    seq: u32,
    // 32 bits each: a frame has at most 65,535 bytes, and every flow has space for this.
    number: u32,
    left: u32,
    count: u32,
}

impl Slicing {
    /// Cuts the frame `seq`, sent `attempts` times and with `total` bytes of records, into slices
    /// for frames of at most `mtu`.
    pub(crate) fn new(seq: u32, attempts: u8, total: usize, mtu: u16) -> Self {
        let count = u32::try_from(total.div_ceil(Slice::size(mtu))).unwrap_or(u32::MAX).max(1);
        let (turn, half) = (u32::from(attempts / 2), u32::from(attempts % 2) * count / 2);
        Self { seq, number: (turn + half) % count, left: count, count }
    }

    /// Returns the sequence number of the frame.
    pub(crate) const fn seq(&self) -> u32 {
        self.seq
    }

    /// Returns whether no slice has left yet.
    pub(crate) const fn is_first(&self) -> bool {
        self.left == self.count
    }

    pub(crate) const fn is_last(&self) -> bool {
        self.left == 1
    }

    /// Returns the next slice.
    pub(crate) fn slice(&self, total: usize, mtu: u16) -> Slice {
        let size = Slice::size(mtu);
        let at = (self.number as usize * size).min(total);
        Slice { at, len: size.min(total - at), total }
    }

    /// Returns the rest after that slice, or `None` after the last.
    pub(crate) fn next(self) -> Option<Self> {
        let number = (self.number + 1) % self.count;
        (self.left > 1).then_some(Self { number, left: self.left - 1, ..self })
    }
}
