//! The name of a connection between an engine and its driver.

/// Index of a connection in the engine's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub u32);
