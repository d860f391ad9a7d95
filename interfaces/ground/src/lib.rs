//! What interfaces on CCI are built on.
//!
//! An interface is one [`Endpoint`](cci::Endpoint) and a state that its threads share. [`Driven`]
//! has both: the lock, who sleeps, and who wakes. An interface that implements [`Drive`] can wait.
//! `docs/design/ground.md` has the figure, and what a new interface writes.

#![forbid(unsafe_code)]

mod codes;
mod drive;
mod driven;
mod sleep;
mod spin;

pub use drive::{BATCH, Drive, ROUNDS};
pub use driven::{Changing, Driven, Entered, Held};
pub use sleep::{readable, sleep_until_ready};
pub use spin::{SPIN, may_spin};
