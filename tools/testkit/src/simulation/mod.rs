//! The proof harness: worlds of nodes that run the protocol engine over a virtual network, and what
//! every run must keep.
//!
//! A seed determines everything: a [`Plan`] of network, engines, connections and traffic, which a
//! [`World`] runs in virtual time, while oracles watch every delivery, every byte of memory and
//! every end of an operation. [`run`] says what came of it: the trace hash, or the [`Rule`] that
//! was broken.
//!
//! [`flows`], [`recovery`] and [`many_peers`] are what tests and the table of performance measure
//! in virtual time.

mod attacker;
mod course;
pub mod fixture;
pub mod flows;
pub mod many_peers;
mod messages;
mod path;
mod pattern;
mod plan;
mod program;
pub mod recovery;
mod reports;
mod rest;
mod seeds;
mod side;
mod tamper;
#[cfg(test)]
mod tests;
mod transfers;
mod violation;
mod world;

pub use plan::{End, MESSAGES, NODES, Plan, Planned, TRANSFERS};
pub use seeds::{Outcome, kept, run, run_plan};
pub use tamper::Tamper;
pub use violation::{Rule, Violation};
pub use world::{Totals, World};
