//! A network in memory and virtual time, and the transport `sim` over it. `docs/design/sim.md` has
//! the model.

#![forbid(unsafe_code)]

mod address;
mod clock;
mod driver;
mod keys;
mod link;
pub mod network;
mod random;
mod settings;
mod shared;

pub use clock::Clock;
pub use driver::DRIVER;
pub use link::SimLink;
pub use random::Random;
