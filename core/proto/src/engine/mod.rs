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

mod ack;
mod admission;
mod answers;
mod api;
mod assembly;
mod congestion;
mod conn;
mod continuation;
mod copy_verify;
mod ending;
mod farewell;
mod fast_path;
mod flow;
mod frame;
mod frame_pool;
mod handshake;
mod host;
mod ids;
mod in_flight;
mod limits;
mod message;
mod mtu;
mod network_reports;
mod new_frame;
mod offer;
mod opening;
mod parts;
mod pieces;
mod probing;
mod queue;
mod random;
mod reassemble;
mod receive;
mod records;
mod recv_ctx;
mod recv_rma;
mod refill;
mod refusals;
mod reorder;
mod reply;
mod reply_limit;
mod requests;
mod rma_state;
mod rtt;
mod schedule;
mod send;
mod send_rma;
mod slices;
mod slicing;
mod state;
mod strays;
mod table;
mod timeout;
mod timer;
mod transmit;
mod waits;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;

pub use api::{Config, Open, Post, Report, Rma, Stats, Transmit};
pub use host::{Event, Host, Index, MessageBuffer, Op, Source, Target};
pub use state::Engine;
pub use waits::{Wait, WaitsFor};
