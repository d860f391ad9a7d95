//! Lengths of records.

use cci_seal::TAG;

/// Bytes of text in a record, at most.
pub(crate) const RECORD: usize = 64 << 10;
/// Bytes of the length before a record.
pub(super) const LEN: usize = 4;
/// Bytes of a record besides its text.
pub(super) const OVERHEAD: usize = LEN + TAG;
