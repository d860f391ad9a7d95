//! The bytes that continue an RMA; see `copy_verify.rs`.

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
