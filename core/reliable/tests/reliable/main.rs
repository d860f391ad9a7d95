//! `Reliable` over a link in memory: what an engine and a link make of each other.

#![forbid(unsafe_code)]

mod connections;
mod edges;
mod memory_link;
mod messages;
mod progress_thread;
mod rma;
mod sealed;
mod strangers;
mod world;
