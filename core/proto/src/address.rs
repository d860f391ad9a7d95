//! Where a frame comes from or goes to.

/// An address as its link understands it; the engine only compares and keeps it. 24 bytes, so that a connection can hold
/// its own: no table of peers has to grow with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub [u8; 24]);
