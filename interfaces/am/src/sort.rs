//! What a program tells messages apart by.

/// The sorts of messages.
///
/// # Example
///
/// ```
/// use cci_am::{Payload, Sort};
///
/// assert_eq!(Payload::of_bytes(b"").sort(), Sort::Medium);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "Active Messages has these three")]
pub enum Sort {
    /// Arguments alone.
    Short,
    /// With bytes, perhaps none, that its handler reads in place.
    Medium,
    /// With bytes in the segment.
    Bulk,
}
