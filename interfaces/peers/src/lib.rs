//! Connections to peers by their names, opened on demand, one for each pair of processes.
//!
//! An interface knows its peers by ranks, by numbers from a table, by a host and a small number, or
//! by records ([`Name`]). A [`Directory`] gives their URIs. [`Peers`] connects when there is
//! something to send, keeps operations until the connection is open, and reports what becomes of
//! it.
//! `docs/design/peers-by-name.md` has the states, and why both sides may connect at once.
//!
//! ```
//! use cci::{Context, Endpoint, EndpointOptions};
//! use cci_peers::{Change, Deferred, Name, Options, Peers, Table};
//! use std::time::Instant;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Context::new()?.default_device()?.clone();
//! let options = EndpointOptions::new().disconnect_events(true);
//! let ends = [Endpoint::open(&device, &options)?, Endpoint::open(&device, &options)?];
//! let mut table = Table::new();
//! for (number, end) in (0..).zip(&ends) {
//!     table.insert(Name::Number(number), end.uri());
//! }
//! let mut sides: Vec<Peers<&str>> = Vec::new();
//! for number in 0..2 {
//!     sides.push(Peers::new(Name::Number(number), Box::new(table.clone()), &Options::new())?);
//! }
//!
//! // Side 0 has something for side 1; it waits until the connection is open.
//! let other = sides[0].peer(&Name::Number(1))?;
//! assert!(matches!(sides[0].defer(&ends[0], other, "hello", Instant::now()), Ok(Deferred::Waits)));
//! let mut got = None;
//! while got.is_none() {
//!     for (side, end) in sides.iter_mut().zip(&ends) {
//!         while let Some(event) = end.get_event()? {
//!             // What is not about opening and closing is the interface's.
//!             if let Some(cci::Event::Received(message)) = side.handle_event(end, event, Instant::now()) {
//!                 got = Some(message.to_vec());
//!             }
//!         }
//!         side.handle_timeout(end, Instant::now());
//!         while let Some(change) = side.poll_change() {
//!             if let Change::Up { connection, waiting, .. } = change {
//!                 for text in waiting {
//!                     end.send(connection, text.as_bytes(), 0)?;
//!                 }
//!             }
//!         }
//!     }
//! }
//! assert_eq!(got.as_deref(), Some(&b"hello"[..]));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod beneath;
mod change;
mod directory;
mod entry;
mod errors;
mod events;
#[doc(hidden)]
pub mod fuzzing;
mod hello;
mod hosts;
mod name;
mod options;
mod peers;

pub use beneath::{NoDevice, device_beneath};
pub use change::{Change, Counts, Deferred, Peer};
pub use directory::{Directory, Found, Ranks, Services, Table};
pub use errors::{Lost, Refused, Unreached, Why};
pub use hosts::{HostNumbers, Hosts, OpenedNumber, host_of};
pub use name::{Name, NoName, RECORD};
pub use options::Options;
pub use peers::Peers;
