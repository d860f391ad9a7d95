//! Accesses to memory of peers that have not ended.

use crate::bits::{READ, RMA, WRITE};
use crate::code::Code;
use crate::partner::Control;
use crate::segments::Segments;
use cci::{Memory, Registration};

/// Bytes of a peer's memory: the offset in it, the length, and the program's key.
pub(crate) type Target = (u64, u64, u64);

/// An access that has not ended.
pub(crate) struct Access {
    pub(crate) index: u32,
    /// Tells it from another access with this number.
    pub(crate) life: u32,
    pub(crate) to: u32,
    pub(crate) is_write: bool,
    pub(crate) targets: Vec<Target>,
    pub(crate) segments: Segments,
    pub(crate) data: Option<u64>,
    pub(crate) registered: Vec<Registration<Memory>>,
    pub(crate) wanted: u64,
    pub(crate) begun: u64,
    /// Operations of CCI that have not ended.
    pub(crate) open: u32,
    pub(crate) failed: Option<Code>,
    /// The key has been asked for once more.
    pub(crate) has_asked_again: bool,
    pub(crate) is_refused: bool,
}

impl Access {
    /// Whether anything of it depends on the link that is up.
    pub(crate) const fn has_begun(&self) -> bool {
        self.begun > 0
    }

    /// What has it begin.
    pub(crate) const fn again(&self) -> Control {
        Control::Access(self.index, self.life)
    }

    pub(crate) const fn what(&self) -> u64 {
        if self.is_write { RMA | WRITE } else { RMA | READ }
    }
}
