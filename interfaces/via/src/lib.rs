//! The VI Architecture over CCI: descriptors, work queues, completion queues, RDMA between
//! registered memories.
//!
//! A [`Nic`] is an endpoint of CCI. A [`Vi`] is one end of a connection, with a send and a receive
//! queue. A program posts [`Work`] and takes it back, in order, in [`Done`]. A message needs a
//! receive that is posted before it arrives: what becomes of it otherwise is the choice of its
//! [`Reliability`].
//!
//! ```
//! use cci_via::{Access, Address, Nic, Vi, ViAttributes, Work};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = cci::Context::new()?.default_device()?.clone();
//! let server = std::thread::spawn({
//!     let device = device.clone();
//!     move || -> Result<Vec<u8>, cci_via::Error> {
//!         let nic = Nic::open(&device).map_err(|_| cci_via::Error::NotSupported)?;
//!         let tag = nic.protection()?;
//!         let mut vi = Vi::new(&nic, &ViAttributes { tag, ..ViAttributes::default() }, None, None)?;
//!         let region = nic.register(vec![0; 64], tag, Access::default())?;
//!         vi.post_receive(Work::of(region)).map_err(|refused| refused.1)?;
//!         let limit = Some(Duration::from_secs(10));
//!         let mut vi = nic.listen(&Address::new(nic.host(), b"documentation"), limit)?.accept(vi).map_err(|refused| refused.1)?;
//!         let done = vi.wait_received(limit)?;
//!         Ok(done.work.regions()[0].to_vec(0, done.length as usize).unwrap_or_default())
//!     }
//! });
//! let nic = Nic::open(&device)?;
//! let tag = nic.protection()?;
//! let (local, remote) = (Address::new(nic.host(), b"client"), Address::new(nic.host(), b"documentation"));
//! let mut idle = Vi::new(&nic, &ViAttributes { tag, ..ViAttributes::default() }, None, None)?;
//! let mut vi = loop {
//!     match idle.request(&local, &remote, Duration::from_secs(10)) {
//!         Ok(vi) => break vi,
//!         // The server does not wait yet.
//!         Err((vi, cci_via::Error::NoMatch)) => idle = vi,
//!         Err((_, why)) => return Err(why.into()),
//!     }
//! };
//! let region = nic.register(b"hello".to_vec(), tag, Access::default())?;
//! vi.post_send(Work::of(region)).map_err(|refused| refused.1)?;
//! assert!(!vi.wait_sent(Some(Duration::from_secs(10)))?.status.is_error());
//! assert_eq!(server.join().map_err(|_| "the server failed")??, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! *Threads*: a [`Nic`] and what is made of it may be used by any thread. Progress is made in
//! calls; those that wait sleep.
//!
//! `docs/design/via.md` has the figure, the states, and what can fail.

#![forbid(unsafe_code)]

mod attributes;
mod clients;
mod connect;
pub mod engine;
mod errors;
mod fast_path;
#[cfg(test)]
mod few_descriptors;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod hang_ups;
mod incoming;
#[cfg(test)]
mod liars;
mod nic;
mod part;
mod peer;
mod pending;
mod question;
mod receive;
mod region;
mod rendezvous;
mod ring;
mod send;
#[cfg(test)]
mod silent_ports;
mod state;
mod tables;
mod task;
mod vi;
mod wire;

pub use attributes::{
    Access, MAX_DESCRIPTORS, MAX_DISCRIMINATOR, MAX_OBJECTS, MAX_QUEUE_ENTRIES, MAX_SEGMENTS, MAX_TRANSFER,
    Reliability, Tag, ViAttributes,
};
pub use errors::{Error, Fault, FaultCode, Status};
pub use incoming::Incoming;
pub use nic::{Nic, Queue};
pub use part::Part;
pub use region::{Region, Work};
pub use rendezvous::{Address, Asking};
pub use state::ViState;
pub use task::{Completion, Op, Remote, Segment, Task};
pub use vi::{Connected, Done, Idle, Pending, Vi};
