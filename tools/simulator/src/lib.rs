//! Programs of many nodes over the virtual network of `transports/sim`, with the real protocol
//! engine on every node. `docs/design/model-simulation.md` has the picture.

#![forbid(unsafe_code)]

mod machine;
mod node;
pub mod plan;
pub mod programs;
mod simulation;
mod world;

pub use machine::{Machine, Passage, Route};
pub use simulation::{MOST_CONNECTIONS, Outcome, Setting, SimulationError, simulate};
pub use world::{Happening, World};
