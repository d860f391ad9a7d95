//! Tests with a peer that speaks the frames by hand, and wrongly.

mod addresses;
mod calls;
mod grants;
mod hot;
mod memory;
mod patience;
mod rma;
mod sealed;
mod sealed_streams;
mod setup;
mod sizes;
mod streams;
