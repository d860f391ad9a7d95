//! The ranks of a parallel job.
//!
//! A *job* is a set of processes that were started together, by `cci run` or another launcher. Each
//! has a *rank*. [`Job::join`] tells a process its rank, and carries small values between the ranks
//! before any connection exists: [`Job::publish`], [`Job::look_up`], and [`Job::exchange`], a
//! barrier with data. `docs/design/jobs.md` has the design, the protocol and what can fail.
//!
//! A program that does not join opens nothing and starts nothing.
//!
//! ```no_run
//! # fn main() -> Result<(), cci_job::JobError> {
//! let job = cci_job::Job::join()?;
//! let greetings = job.exchange(format!("rank {} is here", job.rank()).as_bytes())?;
//! assert_eq!(greetings.len(), job.size() as usize);
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

mod addressed;
mod error;
mod job;
mod place;
mod pmi;
mod proof;
mod server;
mod source;
mod store;
mod store_client;
mod stream;
mod sys;
#[cfg(test)]
mod tests;
mod wire;

pub use error::JobError;
pub use job::{Job, Join};
pub use place::Local;
pub use proof::Secret;
pub use server::Server;
pub use source::{DESCRIPTOR, LONGEST_VALUE};
