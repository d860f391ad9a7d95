//! Connections: their state, their identifiers, their round trips and their timers.

pub(super) mod conn;
pub(super) mod exchange;
pub(super) mod ids;
pub(super) mod moved;
mod other_addresses;
mod replay;
pub(super) mod rtt;
pub(super) mod sealed;
pub(super) mod table;
pub(super) mod timer;
pub(super) mod unreachable;
