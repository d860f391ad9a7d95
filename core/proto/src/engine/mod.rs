//! The reliability engine: frames in, frames out. It does no I/O, reads no clock and starts no
//! thread. Every call gets the time as `now`, and the driver owns sockets, slots and memory
//! ([`Host`]). So the same code runs over sockets, over raw Ethernet, and in a simulated network in
//! virtual time.
//!
//! Methods come in four kinds: application calls (`connect`, `send`, `rma`, ...), input
//! (`handle_*`), output (`poll_*`), and getters. After any of the first two, call `poll_transmit`
//! until it returns `None`, and `handle_timeout` at the time that `poll_timeout` returns.
//!
//! Who owns what: `docs/design/engine.md`. What travels: `docs/wire.md`.

mod api;
mod connection;
mod flow;
mod host;
mod random;
mod receive;
#[cfg(any(test, feature = "recording_host"))]
mod recording_host;
mod recovery;
mod sealer;
mod send;
mod serial;
mod setup;
mod state;
mod strangers;
mod teardown;
#[cfg(any(test, feature = "recording_host"))]
mod toy_sealer;
mod waits;

#[cfg(test)]
mod tests;

pub use api::{Config, Open, PathMtu, Post, Protection, Report, Rma, Stats, Transmit};
pub use connection::moved::Moved;
pub use flow::limits::MAX_LARGE;
pub use host::{Event, Host, Index, MessageBuffer, Op, Source, Target};
#[cfg(any(test, feature = "recording_host"))]
pub use recording_host::RecordingHost;
pub use sealer::{Phase, Seal, Sealer, Security};
pub use state::Engine;
#[cfg(any(test, feature = "recording_host"))]
pub use toy_sealer::{ToySealer, whole_frame};
pub use waits::{Wait, WaitsFor};
