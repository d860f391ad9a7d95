//! Tests with a peer that speaks the frames by hand, and wrongly.

mod addresses;
mod calls;
mod grants;
mod hot;
mod memory;
mod rma;
mod sealed;
mod setup;
mod sizes;
mod streams;
