//! Buffers for frames: those that wait or are in flight, and those held back. One allocation each, whose pages come when they are
//! first used. Whose flow has how many is known, so that one that is stuck leaves some to the others.

use super::conn::NONE;
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
    /// The flow that has each buffer, or [`NONE`]; as many as were ever taken.
    owners: Vec<u32>,
    /// Buffers of each flow, and flows that have some.
    held: Vec<u32>,
    holders: u32,
    /// Buffers that were given back so far.
    pub(super) given: u64,
}

impl Frames {
    pub(super) fn new(count: u32, stride: usize) -> Self {
        let free = Vec::with_capacity(count as usize);
        let owners = Vec::with_capacity(count as usize);
        let bytes = vec![0; stride * count as usize];
        Self { bytes, stride, free, fresh: 0, count, owners, held: Vec::new(), holders: 0, given: 0 }
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Buffers that could be taken.
    pub(super) fn left(&self) -> usize {
        self.free.len() + (self.count - self.fresh) as usize
    }

    /// Whether a flow may take so many more for messages while other connections are open. It never has more than it leaves
    /// free (Choudhury and Hahne 1998, dynamic thresholds with a factor of 1), so that any number of stuck ones leave some; nor
    /// more than a quarter of all while another has any. What has none gets what there is.
    pub(super) fn is_fair(&self, flow: u32, needed: usize) -> bool {
        let held = self.held.get(flow as usize).map_or(0, |held| *held as usize);
        let others = self.holders as usize > usize::from(held > 0);
        let most = self.count as usize / if others { 4 } else { 1 };
        let left = self.left().saturating_sub(needed);
        held == 0 || held + needed <= most.min(left)
    }

    /// A buffer for a flow, or for [`NONE`].
    pub(super) fn take(&mut self, flow: u32) -> Option<Buffer> {
        let buffer = match self.free.pop() {
            Some(buffer) => buffer,
            None if self.fresh < self.count => {
                self.fresh += 1;
                self.owners.push(NONE);
                self.fresh - 1
            }
            None => return None,
        };
        self.owners[buffer as usize] = flow;
        if flow != NONE {
            let place = flow as usize;
            if self.held.len() <= place {
                self.held.resize(place + 1, 0);
            }
            self.holders += u32::from(self.held[place] == 0);
            self.held[place] += 1;
        }
        Some(Buffer(buffer))
    }

    pub(super) fn give(&mut self, buffer: Buffer) {
        let flow = self.owners.get(buffer.0 as usize).map_or(NONE, |flow| *flow);
        if let Some(held) = self.held.get_mut(flow as usize) {
            *held -= 1;
            self.holders -= u32::from(*held == 0);
        }
        self.free.push(buffer.0);
        self.given = self.given.wrapping_add(1);
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
