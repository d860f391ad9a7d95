//! The engine of the provider of libfabric: RDM endpoints over CCI, without the layouts of C, which
//! are `bindings/fabric`'s.
//!
//! | | |
//! |---|---|
//! | [`Domain`], [`Region`] | what everything belongs to; memory that peers may access, by keys |
//! | [`AddressVector`], [`Record`] | the numbers by which a program names peers, and their addresses |
//! | [`Queue`], [`Counter`] | how operations have ended |
//! | [`Endpoint`] | messages, tagged messages, remote memory |
//!
//! `docs/design/fabric.md` has the figure, the messages, and what can fail.
#![forbid(unsafe_code)]

mod access;
mod arrivals;
pub mod bits;
mod closing;
mod code;
mod core;
mod counter;
mod domain;
mod driver;
mod endpoint;
#[doc(hidden)]
pub mod fuzzing;
mod incoming;
mod large;
#[cfg(test)]
mod liars;
mod links;
mod operations;
mod partner;
mod queue;
mod receive;
mod record;
mod remote;
mod requests;
mod segments;
mod send;
mod state;
mod strangers;
mod vector;
mod watch;
mod who;
mod wire;

pub use code::Code;
pub use counter::Counter;
pub use domain::{Domain, Region};
pub use endpoint::Endpoint;
pub use operations::{EndpointOptions, Receive, Remote, Send, What};
pub use queue::{Entry, Failed, Queue, QueueOptions};
pub use record::{RECORD, Record};
pub use requests::Space;
pub use segments::{MAX_SEGMENTS, Segments};
pub use vector::AddressVector;

/// No address: any source of a receive, and a source that is in no address vector.
pub const NOT_AVAILABLE: u64 = u64::MAX;
/// Bytes that a call copies at most.
pub const INJECT_SIZE: usize = wire::MOST_INLINE;
