//! The C library `libvipl`: the calls of VIPL 1.0 over `cci-via`.
//!
//! `docs/design/via.md` has the picture. What C programs hold are numbers in the shape of pointers,
//! which the library never follows: one that is stale or invented is refused. A panic never leaves.

mod answer;
mod connections;
mod descriptor;
mod exports;
mod handles;
mod inherited;
mod layout;
mod memory;
mod names;
mod nic;
mod nics;
mod notify;
mod orders;
mod queues;
mod table;
mod vis;
