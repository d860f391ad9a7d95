//! An engine in a process of its own, which several programs share: an experiment, of which
//! `docs/design/portals.md` has the figure, who owns what, and what can fail.
//!
//! A program hands commands to the engine, and gets events from it, through two rings in memory
//! that both map. The engine has an endpoint of CCI, match lists and all objects for each program.
//!
//! ```no_run
//! use cci_portals::shared::{Client, Engine};
//! use cci_portals::{Place, Described};
//!
//! // The process of the engine.
//! let device = cci::Context::new()?.default_device()?.clone();
//! let mut engine = Engine::open("an engine", move |pid| Place::by_rule(&device, pid))?;
//! engine.serve()?;
//!
//! // A program.
//! let mut program = Client::join("an engine", None, 4096)?;
//! let queue = program.queue(16)?;
//! let memory = program.bind(Described { length: 8, queue, ..Described::default() }, Default::default())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod engine;
pub(crate) mod frames;
pub(crate) mod fuzzing;
#[cfg(test)]
mod liars;
pub(crate) mod rings;
mod serving;
mod socket;

pub use client::{Client, NotJoined};
pub use engine::Engine;
