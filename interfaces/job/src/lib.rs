//! The ranks of a parallel job.
//!
//! A *job* is a set of processes that were started together, by `cci run` or another launcher. Each
//! has a *rank*. [`Job::join`] tells a process its rank, and carries small values between the ranks
//! before any connection exists: [`Job::publish`], [`Job::look_up`], and [`Job::exchange`], a
//! barrier with data. `docs/design/jobs.md` has the design, the protocol and what can fail.
//!
//! With the feature `cci`, on by default, a rank opens an endpoint that others connect to by
//! `job:RANK`: [`Job::open`].
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
#[cfg(feature = "cci")]
mod endpoint;
mod error;
#[cfg(test)]
mod forks;
#[doc(hidden)]
pub mod fuzzing;
mod job;
mod joining;
mod listener;
mod names;
#[cfg(feature = "cci")]
mod open_failed;
mod place;
mod pmi;
mod pmix;
mod seal;
mod secret;
mod server;
mod source;
mod store;
mod store_client;
#[cfg(test)]
mod strangers;
mod stream;
mod sys;
#[cfg(test)]
mod tests;
mod wire;

#[cfg(feature = "cci")]
pub use endpoint::URI;
pub use error::JobError;
pub use job::{Job, Join};
#[cfg(feature = "cci")]
pub use open_failed::{OpenCode, OpenFailed};
pub use place::Local;
pub use pmi::server::{ManagerEvent, ProcessManager, Seat};
pub use secret::Secret;
pub use server::Server;
pub use source::{DESCRIPTOR, LONGEST_VALUE, SOCKET};
