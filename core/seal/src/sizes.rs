//! Lengths that every file needs.

/// Bytes of a tag.
pub const TAG: usize = 16;

/// Bytes of a key and of each secret.
pub const KEY: usize = 32;
