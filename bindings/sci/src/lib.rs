//! The C library `libsisci`: the calls of SISCI over `cci-sci`.
//!
//! `docs/design/sci.md` has the picture. Handles are numbers in the shape of pointers, so that one
//! that is stale or invented is refused. A panic never leaves.

mod answer;
mod callbacks;
mod devices;
mod exports;
mod far;
mod flags;
mod interrupts;
mod maps;
mod objects;
mod queues;
mod registry;
mod segments;
