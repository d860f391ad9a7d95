//! Tests with a peer that speaks the frames by hand, and wrongly.

mod grants;
mod rma;
mod setup;
