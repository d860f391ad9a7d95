//! The transport `sim`, and the engine in simulated worlds.

#![forbid(unsafe_code)]

mod conformance;
mod goodput;
mod multicast;
mod path;
mod peer;
mod recovery;
mod seeds;
