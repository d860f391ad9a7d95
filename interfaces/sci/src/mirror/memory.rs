//! The memory of a mirror, as windows have it.

use crate::mirror::sys::Region;
use cci_mem::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Bytes that are protected and compared as one.
pub(crate) const BLOCK: usize = 64 << 10;
/// Bytes of a mirror, at most: an owner states how many its segment has.
const MOST: usize = 1 << 36;

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Block {
    /// No window was ever mapped to it.
    Absent = 0,
    /// Write-protected.
    Quiet = 1,
    /// The program may store to it.
    Open = 2,
    /// As open, since the last comparison.
    Fresh = 3,
    /// Write-protected, and the owner sends what changes: a first store waits for nobody.
    Watched = 4,
}

impl Block {
    /// Whether a store to its pages is noticed before it is made.
    pub(super) fn is_protected(self) -> bool {
        matches!(self, Self::Quiet | Self::Watched)
    }

    /// Whether the program may have stored to it lately.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Fresh)
    }
}

/// What has become of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All are on their way, or have arrived if that was asked for.
    All,
    /// The owner did not answer in time; they are sent later.
    Late,
    /// There is no connection.
    Gone,
}

/// Private memory for a segment of another host. The connection and its windows keep it.
pub(crate) struct Mirror {
    pub(crate) region: Region,
    pub(crate) len: usize,
    pub(crate) token: u64,
    blocks: Vec<AtomicU32>,
    /// Writes that have failed.
    failures: AtomicU64,
    /// Whether first stores wait for the owner.
    is_waiting: AtomicBool,
}

impl Mirror {
    /// `None`: there is no room.
    pub(crate) fn new(token: u64, len: usize) -> Option<Self> {
        if len > MOST {
            return None;
        }
        let blocks = (0..len.div_ceil(BLOCK)).map(|_| AtomicU32::new(Block::Absent as u32)).collect();
        let (failures, is_waiting) = (AtomicU64::new(0), AtomicBool::new(false));
        Some(Self { region: Region::new(len)?, len, token, blocks, failures, is_waiting })
    }

    /// Where a block begins, and how many bytes of the segment it has.
    pub(crate) fn span(&self, block: usize) -> (usize, usize) {
        (block * BLOCK, BLOCK.min(self.len - block * BLOCK))
    }

    pub(crate) fn block(&self, block: usize) -> Block {
        // Publishes nothing: the pages are protected, and let through, by system calls.
        match self.blocks[block].load(Ordering::Relaxed) {
            1 => Block::Quiet,
            2 => Block::Open,
            3 => Block::Fresh,
            4 => Block::Watched,
            _ => Block::Absent,
        }
    }

    pub(crate) fn set_block(&self, block: usize, state: Block) {
        // As in `block`.
        self.blocks[block].store(state as u32, Ordering::Relaxed);
    }

    /// Whether first stores wait for the owner.
    pub(super) fn is_waiting(&self) -> bool {
        // Publishes nothing.
        self.is_waiting.load(Ordering::Relaxed)
    }

    pub(super) fn set_waiting(&self, is_waiting: bool) {
        // As in `is_waiting`.
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    pub(crate) fn failures(&self) -> u64 {
        // Publishes nothing.
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn note_failure(&self) {
        // As in `failures`.
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_cannot_have_too_much_allocated() {
        assert!([MOST + 1, 1 << 50, usize::MAX].into_iter().all(|len| Mirror::new(1, len).is_none()));
        let mirror = Mirror::new(1, BLOCK + 1).expect("memory");
        assert_eq!((mirror.blocks.len(), mirror.span(0), mirror.span(1)), (2, (0, BLOCK), (BLOCK, 1)));
        assert_eq!(mirror.block(1), Block::Absent);
    }
}
