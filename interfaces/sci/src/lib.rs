//! SCI over CCI: segments of memory that other processes map and store into.
//!
//! A [`Host`] creates segments ([`LocalSegment`]) and connects to those of others
//! ([`RemoteSegment`]). A [`Window`] maps a range of either: a load or store costs what memory
//! costs, and calls nobody. A [`Sequence`] finds that stores no more arrive. Interrupts, with bytes
//! or without, wake the other side; a [`DmaQueue`] moves what is long.
//! `docs/design/sci.md` has the figure, the states, and what can fail.
//!
//! ```
//! use cci_sci::{Access, Host, Options, SequenceStatus};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let id = std::process::id() ^ 0x4000_0000;
//! let server = Host::open(&Options::new())?;
//! let segment = server.create(id, 4096)?;
//! segment.prepare()?;
//! segment.publish()?;
//! let bell = server.interrupt(None)?;
//!
//! let client = Host::open(&Options::new())?;
//! let far = client.connect(server.node(), id, None)?;
//! let window = far.map(0..4096, Access::ReadWrite)?;
//! let sequence = window.sequence();
//! window.write(8, b"hello")?;
//! assert_eq!(sequence.check(), SequenceStatus::Ok);
//! client.connect_interrupt(server.node(), bell.number(), None)?.trigger()?;
//!
//! bell.wait(None)?;
//! let mut bytes = [0; 5];
//! segment.map(0..4096, Access::Read)?.read(8, &mut bytes)?;
//! assert_eq!(bytes, *b"hello");
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]

mod broadcast;
mod callbacks;
mod calls;
mod claims;
mod connect;
mod device_memory;
mod dma;
mod driving;
mod errors;
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod interrupts;
#[cfg(test)]
mod liars;
mod links;
mod lookups;
mod mapped;
mod mirror;
mod names;
mod nodes;
mod notices;
mod objects;
mod operation;
mod options;
mod partner;
mod question;
mod queue;
mod remote;
mod segment;
mod serve;
mod shared;
mod state;
#[allow(unsafe_code)]
mod sys;
mod thread;
mod transfers;
mod types;
mod waits;
mod window;
mod wire;

pub use connect::Connecting;
pub use dma::{Direction, DmaQueue, MOST_PARTS, Part};
pub use errors::{Error, NotOpened};
pub use host::Host;
pub use interrupts::{DataInterrupt, Interrupt, RemoteDataInterrupt, RemoteInterrupt};
pub use nodes::{EVERY_NODE, Nodes};
pub use options::Options;
pub use queue::QueueState;
pub use remote::RemoteSegment;
pub use segment::LocalSegment;
pub use sys::Word;
pub use types::{Access, Kind, Reason, SegmentEvent, Then, Withdraw};
pub use window::{Sequence, SequenceStatus, Window};
