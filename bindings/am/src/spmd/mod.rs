//! Parallel programs: their start, what all workers do together, and their end.
//!
//! A process has one job. `docs/design/libam.md` has the states.

mod collective;
mod ending;
mod environment;
mod exports;
mod master;
mod program;
mod start;

pub(crate) use collective::lost;
pub(crate) use ending::leave_if_asked;
pub(crate) use program::{device, longest_sleep, publish, rank, uri_of};
