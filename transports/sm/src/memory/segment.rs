//! A peer's segment of library memory.

use crate::memory::registry::Target;
use crate::sys::Mapped;
use cci_mem::memory::Memory;
use cci_mem::segment::Segment;
use std::sync::Arc;

/// Bytes of a peer's segment that are entered into the page table at a time.
const UNIT: usize = 1 << 20;
/// The shortest copy for which units are entered, in bytes: a shorter one meets fewer page faults
/// than entering a unit costs.
const ENTERING: usize = 64 << 10;

/// A segment of library memory of a peer, mapped here.
pub(crate) struct PeerSegment {
    segment: Arc<Segment>,
    /// By unit, whether it has been entered into the page table.
    entered: Vec<bool>,
}

impl PeerSegment {
    pub(crate) fn new(segment: Segment) -> Self {
        let entered = vec![false; segment.len().div_ceil(UNIT)];
        Self { segment: Arc::new(segment), entered }
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.segment.len()
    }

    /// The offset of `len` bytes of an operation, when they lie inside as a whole.
    pub(crate) fn offset(&self, target: &Target, from: u64, len: usize) -> Option<usize> {
        let offset = usize::try_from(target.segment_offset.checked_add(from)?).ok()?;
        (offset.checked_add(len)? <= self.len()).then_some(offset)
    }

    /// Bytes for the program, which stay mapped as long as it has them.
    pub(crate) fn memory(&self, target: &Target, len: usize) -> Option<Memory> {
        Memory::of_peer(Arc::clone(&self.segment), self.offset(target, 0, len)?, len)
    }

    /// Bytes that are about to be copied.
    pub(crate) fn bytes(&mut self, offset: usize, len: usize) -> Mapped<'_> {
        if len >= ENTERING {
            for unit in offset / UNIT..(offset + len).div_ceil(UNIT) {
                if !std::mem::replace(&mut self.entered[unit], true) {
                    self.segment.enter(unit * UNIT, UNIT.min(self.len() - unit * UNIT));
                }
            }
        }
        Mapped::of(&self.segment, offset, len)
    }
}
