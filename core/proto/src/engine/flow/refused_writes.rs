//! Writes of the peer that were refused, until their last frame passes. The result of each then
//! reports the refusal.

use super::limits::{MAX_LARGE, WINDOW};
use alloc::vec::Vec;

/// Refused writes of one peer that may be unfinished. A conforming sender has fewer: one in each
/// early frame, and one that each large message has interrupted.
pub(crate) const MAX_REFUSED: usize = WINDOW + MAX_LARGE;

/// The refused writes of a flow, by their operation, with the status that their result reports.
#[derive(Default)]
pub(crate) struct RefusedWrites(Vec<(u32, u8)>);

impl RefusedWrites {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether no other write may be refused.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= MAX_REFUSED
    }

    pub(crate) fn contains(&self, op: u32) -> bool {
        self.0.iter().any(|(refused, _)| *refused == op)
    }

    /// Notes that a write was refused. The caller bounds their number.
    pub(crate) fn push(&mut self, op: u32, status: u8) {
        self.0.push((op, status));
    }

    /// Forgets a write that ends. Returns its status, 0 if it was not refused.
    pub(crate) fn take(&mut self, op: u32) -> u8 {
        let refused = self.0.iter().position(|(refused, _)| *refused == op);
        refused.map_or(0, |at| self.0.swap_remove(at).1)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns an empty list with the memory of this one.
    pub(super) fn emptied(mut self) -> Self {
        self.0.clear();
        self
    }
}
