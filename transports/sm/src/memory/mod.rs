//! Memory that is registered, here or by a peer: what each side publishes and maps. No lane is
//! known here.

pub(crate) mod announced;
pub(crate) mod chunks;
pub(crate) mod imports;
pub(crate) mod lingering;
pub(crate) mod of_peer;
pub(crate) mod registry;
pub(crate) mod segment;
