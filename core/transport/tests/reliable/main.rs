//! `Reliable` over a link in memory: what an engine and a link make of each other.

#![forbid(unsafe_code)]

mod away;
mod connections;
mod memory_link;
mod messages;
mod rma;
mod strangers;
mod world;
