//! Myrinet Express over CCI: messages that receives match by 64 bits.
//!
//! An [`Endpoint`] sends to the [`Address`] of another one. A receive names bits and a mask
//! ([`Match`]); the first posted receive that matches takes a message, and a message without one
//! waits. Each operation is a [`Request`] until it has been tested with success.
//! `docs/design/mx.md` has the figure, the messages, and what can fail.
//!
//! ```
//! use cci_mx::{Code, Endpoint, Match, Options, Place, buffer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = cci::Context::new()?;
//! let open = || Endpoint::open(Place::by_rule(context.default_device()?, None)?, 7, &Options::new());
//! let (server, client) = (open()?, open()?);
//! let (nic, id) = (server.address().nic(), server.address().id());
//!
//! let (here, there) = std::thread::scope(|scope| {
//!     let there = scope.spawn(|| {
//!         let memory = buffer(vec![0; 5]);
//!         let receive = server.receive(memory.clone(), Match { bits: 0x500, mask: 0xf00 }, 0)?;
//!         let status = server.wait(receive, None)?;
//!         let mut bytes = [0; 5];
//!         Ok::<_, cci_mx::Error>((status, memory.copy_out(0, &mut bytes).then_some(bytes)))
//!     });
//!     let server = client.connect((nic, id), 7, None)?;
//!     let send = client.send_sync(buffer(b"hello".to_vec()), server, 0x5ab, 42)?;
//!     Ok::<_, cci_mx::Error>((client.wait(send, None)?, there.join().map_err(|_| cci_mx::Error::Failure)??))
//! })?;
//! assert_eq!(here.map(|status| (status.code, status.context)), Some((Code::Success, 42)));
//! assert_eq!((there.0.map(|status| status.bits), there.1), (Some(0x5ab), Some(*b"hello")));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod arrivals;
mod at_once;
mod endpoint;
mod errors;
#[doc(hidden)]
pub mod fuzzing;
mod handler;
mod incoming;
mod large;
#[cfg(test)]
mod liars;
mod options;
mod partner;
mod place;
mod receive;
mod requests;
mod send;
mod state;
mod types;
mod waiting;
mod wire;

pub use endpoint::Endpoint;
pub use errors::{Code, Error};
pub use handler::{Answer, Unexpected};
pub use options::Options;
pub use place::{NotOpened, Place, endpoint_options};
pub use requests::Request;
pub use state::Counts;
pub use types::{Address, Buffer, MAX_ENDPOINT_ID, MAX_SEGMENTS, Match, Segments, Status, buffer};
