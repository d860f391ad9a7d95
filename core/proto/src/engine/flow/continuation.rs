//! The bytes that continue an RMA: those that may be copied and verified in one pass; see
//! `receive/copy_verify.rs`.

use crate::engine::host::Target;
use crate::wire::{Record, Records};

/// The next bytes of an RMA after those that the newest accepted frame brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    Write { op: u32, target: Target, at: u64 },
    ReadBytes { op: u32, at: u64 },
}

impl Continuation {
    /// Returns the continuation of the last of these records.
    pub(crate) fn after(records: Records<'_>) -> Option<Self> {
        match records.last()? {
            Record::Write { op, target, at, bytes } => Some(Self::Write { op, target, at: at + bytes.len() as u64 }),
            Record::ReadBytes { op, at, bytes } => Some(Self::ReadBytes { op, at: at + bytes.len() as u64 }),
            _ => None,
        }
    }

    /// Returns the part that this record carries, and its bytes.
    pub(crate) fn of(record: Record<'_>) -> Option<(Self, &[u8])> {
        match record {
            Record::Write { op, target, at, bytes } => Some((Self::Write { op, target, at }, bytes)),
            Record::ReadBytes { op, at, bytes } => Some((Self::ReadBytes { op, at }, bytes)),
            _ => None,
        }
    }
}

/// What a flow keeps for copy-and-verify.
#[derive(Debug, Default)]
pub(crate) struct CopyVerify {
    /// The bytes that continue the RMA of the newest accepted frame.
    next: Option<Continuation>,
    /// The part that the current frame carries, if it was copied and verified already.
    copied: Option<Continuation>,
}

impl CopyVerify {
    /// Returns the only part that may be copied before its frame is verified. No accepted frame has
    /// brought these bytes.
    #[inline]
    pub(crate) const fn next(&self) -> Option<Continuation> {
        self.next
    }

    /// Notes what continues the newest accepted frame, if anything does.
    #[inline]
    pub(crate) fn set_next(&mut self, next: Option<Continuation>) {
        self.next = next;
    }

    /// Notes that the bytes of this part are in place, and that its frame is sound and will be
    /// accepted.
    pub(crate) fn on_copied(&mut self, part: Continuation) {
        self.copied = Some(part);
    }

    /// Returns whether the bytes of this part are in place already, and forgets it. Called when its
    /// frame is accepted.
    pub(crate) fn take_copied(&mut self, part: Continuation) -> bool {
        self.copied.take_if(|copied| *copied == part).is_some()
    }
}
