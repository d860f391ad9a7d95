//! Broadcast groups: segments of several nodes that one store reaches (`docs/design/sci.md`,
//! Broadcast). All members of a host share memory; other hosts get what has changed.

mod casts;
mod group;
mod join;
mod transfer;

pub(crate) use group::{Commons, Group};
pub(crate) use join::{connect, create};
