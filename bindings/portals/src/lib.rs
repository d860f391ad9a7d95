//! The C library `libportals3`: the calls of Portals 3.3 over `cci-portals`.
//!
//! `docs/design/portals.md` has the picture. Handles are numbers, so that one that is stale or
//! invented is refused. A panic never leaves.

mod answer;
mod exports;
mod layout;
mod names;
mod objects;
mod queues;
mod registry;
mod runtime;
mod transfers;
