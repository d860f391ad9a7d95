//! The transport over the C interface of Portals 3.3, loaded at run time
//! (`docs/design/over-portals.md`).
//!
//! | file | part |
//! |---|---|
//! | `driver` | the record by which the facade finds the transport, and opening |
//! | `sys` | the library: types, calls, memory that it was given |
//! | `network` | the interface that the endpoints of a process share |
//! | `net` | puts and gets under way, and the memory of messages |
//! | `blocks` | receive memory |
//! | `watcher`, `handle` | the OS handle, and the thread that waits for it |
//! | `wire` | match bits, header data, payloads |
//! | `setup` | connect, accept, reject, redirect, disconnect, close |
//! | `side` | one end of a connection: operations, credits, timeouts |
//! | `arrivals` | what comes from peers |
//! | `registrations` | registered memory |
//! | `transport` | the trait, and progress |

#![deny(unsafe_code)]

mod arrivals;
mod blocks;
mod driver;
mod handle;
mod inbox;
mod net;
mod network;
mod registrations;
mod setup;
mod side;
mod sides;
mod sys;
mod transport;
mod watcher;
mod wire;

pub use driver::DRIVER;

use blocks::Blocks;
use cci_proto::Time;
use cci_transport::{ExpectedClients, PendingEvents, PollSet, Readiness};
use inbox::Inbox;
use net::Net;
use network::Lease;
use registrations::Registrations;
use sides::Sides;
use std::collections::VecDeque;
use std::sync::Arc;
use sys::Bound;
use watcher::Watcher;
use wire::Verb;

/// An endpoint. The endpoint's lock protects it: only the watcher's part is another thread's.
struct Portals {
    /// `None`: it is closed.
    lease: Option<Lease>,
    uri: String,
    net: Net,
    handle: Arc<PollSet>,
    watcher: Watcher,
    readiness: Readiness,
    inbox: Inbox,
    sides: Sides,
    reliable: Blocks,
    unreliable: Blocks,
    setup: Blocks,
    /// The entries that are always there.
    fixed: Vec<Bound>,
    registrations: Registrations,
    /// Clients that another endpoint redirects here.
    expected: ExpectedClients<Time>,
    /// Events that found no free slot: they must not be lost.
    pending_events: PendingEvents,
    /// Connections that wait for room in the interface.
    stalled: VecDeque<u32>,
    /// Control messages that found no room there.
    owed: VecDeque<(u32, Verb)>,
    /// Puts for connections that do not exist, or that no connection understands.
    strays: u64,
    max_send_size: u32,
    /// Blocks wait to be attached.
    is_short: bool,
    /// When the clock was read last, and when something is due.
    now: Time,
    alarm: Option<Time>,
    scratch: Vec<u8>,
}
