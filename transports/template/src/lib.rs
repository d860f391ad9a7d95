//! The transport to start a new one from: endpoints of one process, queues in memory.
//!
//! Each file has one part that every transport needs, and states why the part is there:
//!
//! | file | part |
//! |---|---|
//! | `driver` | the record by which the facade finds the transport |
//! | `mailbox` | the network: where an endpoint's frames arrive, and how peers find it |
//! | `handle` | the OS handle: a program sleeps on it |
//! | `setup` | connect, accept, reject, redirect, expect, disconnect, close |
//! | `side` | one end of a connection: operations in order, their ends, their timeouts |
//! | `inbox` | receive slots: messages and requests become events |
//! | `rma` | registered memory, and copies from one registration to another |
//! | `transport` | the trait, and progress |
//!
//! The code prefers clarity to speed. It allocates for each message and visits every connection in
//! each call. A transport for programs does neither (`docs/design/transports.md`).

#![forbid(unsafe_code)]

mod driver;
mod handle;
mod inbox;
mod mailbox;
mod rma;
mod setup;
mod side;
mod transport;

pub use driver::DRIVER;

use cci_proto::Time;
use cci_transport::{ExpectedClients, PendingEvents, Readiness};
use inbox::Inbox;
use mailbox::Mailbox;
use side::Side;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An endpoint. The endpoint's lock protects it: only the mailbox is shared with peers.
struct Template {
    mailbox: Arc<Mailbox>,
    readiness: Readiness,
    inbox: Inbox,
    /// Connections by this side's number. A number is not reused, so that a late frame finds no
    /// other connection.
    sides: BTreeMap<u32, Side>,
    last_number: u32,
    /// Clients that another endpoint redirects here.
    expected: ExpectedClients<Time>,
    /// Events that found no free slot: they must not be lost.
    pending_events: PendingEvents,
    max_send_size: u32,
}
