//! The C library `libam`: the calls of Active Messages II in three dialects, over `cci-am`.
//!
//! `docs/design/libam.md` has the picture. What C programs hold are addresses of the library's own
//! cells: bundles, endpoints, and the token of each endpoint. Cells are never unmapped, so that one
//! that was freed is refused by its state. A panic never leaves.

mod answer;
mod boundary;
mod calls;
mod dialect;
mod endpoint;
mod exports;
mod handlers;
mod messages;
mod names;
mod refusal;
mod registry;
mod resolve;
mod spmd;
mod statistics;
mod status;
mod token;
mod translations;
