//! The Common Communication Interface: messages and remote memory access between endpoints that are
//! named by URIs.
//!
//! ```
//! use cci::{Connect, Context, Endpoint, EndpointOptions, Event};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = Context::new()?;
//! let server = Endpoint::open(context.default_device()?, &EndpointOptions::new())?;
//! let client = Endpoint::open(context.device_for(server.uri())?, &EndpointOptions::new())?;
//! client.connect(&Connect::to(server.uri()).timeout(Duration::from_secs(10)))?;
//! loop {
//!     match server.get_event()? {
//!         Some(Event::Request(request)) => request.accept(0)?,
//!         Some(Event::Received(message)) => {
//!             assert_eq!(message.to_vec(), b"hello");
//!             return Ok(());
//!         }
//!         _ => {}
//!     }
//!     match client.get_event()? {
//!         Some(Event::Connected(connected)) => {
//!             client.send(connected.connection().ok_or("closed")?, b"hello", 0)?;
//!         }
//!         Some(event) => event.outcome()?,
//!         None => {}
//!     }
//! }
//! # }
//! ```
//!
//! A [`Context`] knows the devices of this host. An [`Endpoint`], opened on one of them, owns all
//! buffers and one queue of events. A [`Connection`] leads to a peer's endpoint and costs about a
//! hundred bytes. Messages up to the connection's maximum are buffered by the library; bulk data
//! moves by RMA between registered memories ([`Registration`]). [`EndpointFor::get_event`] makes
//! progress and never blocks; [`EndpointFor::wait`] sleeps; `AsFd` gives a descriptor for `poll`
//! and `epoll`; the feature `tokio` awaits.
//!
//! *Ownership*: an [`Event`] borrows a buffer of its endpoint; a [`DetachedEvent`] keeps the
//! endpoint open instead. A registration owns its memory. Bytes passed to a call are the caller's
//! again when it returns.
//!
//! *Threads*: everything here may be called from any thread at any time, but a [`LocalEndpoint`],
//! which stays on one.
//!
//! *Errors*: a call that is refused ([`SendError`] and the like, one byte each) has changed nothing
//! and no event follows. An operation that began and failed tells so by a [`Failure`] in its event;
//! a call that waits returns either ([`BlockingError`]). What could not be opened is an
//! [`OpenError`], whose sentence tells what to do.
//!
//! All sizes are in bytes. `docs/design/rust-api.md` has the reasons.

#![deny(unsafe_code)]

#[doc(hidden)]
pub mod __binding {
    pub use crate::binding::*;
    pub use crate::raw::*;
}
mod batch;
mod binding;
mod calls;
mod config;
mod connection;
mod context;
mod device;
mod endpoint;
mod endpoint_options;
mod environment;
mod errors;
mod event;
#[doc(hidden)]
pub mod fuzzing;
mod import;
mod names;
mod operations;
mod option_names;
mod options;
mod pause;
mod raw;
mod registration;
mod reserved;
#[cfg(feature = "tokio")]
pub mod tokio;
mod transports;
mod waiting;

pub use cci_mem::arena::SharedMemory;
pub use cci_mem::memory::{HeapBytes, Memory};
pub use cci_mem::view::View;
pub use cci_proto::{
    Alignment, Atomic, Attribute, CONN_REQ_LEN, ConnectError, EventKind, Failure, ImportError, OptionError, PauseError,
    PollError, RegisterError, RequestError, Rights, RmaError, RmaHandle, SendError, Status, Unusable,
};
#[cfg(feature = "trace")]
pub use cci_transport::trace;
pub use cci_transport::{Condition, ConnectionReport, Discovered, Driver, Key, OpenError, Peer, Scope};
pub use cci_transport::{Snapshot, Unreadable, WaitFor, WaitShown, is_oversubscribed, set_oversubscribed};
pub use connection::Connection;
pub use context::Context;
pub use device::{Device, Pci};
pub use endpoint::{Endpoint, EndpointFor, LocalEndpoint, ManyThreads, OneThread, wait_for_copies};
pub use endpoint_options::EndpointOptions;
pub use environment::unknown_variables;
pub use errors::{BlockingError, CloseError};
pub use event::detached::DetachedEvent;
pub use event::{
    AcceptFailed, Accepted, Completed, ConnectFailed, Connected, Disconnected, EndpointFailed, Event, ImportEnded,
    Keepalive, Received, Request, Unanswered,
};
pub use import::Import;
pub use names::{Names, SharedNames};
pub use operations::{AtomicRma, Connect, Notify, Rma};
pub use option_names::{ConnectionOption, EndpointOption};
pub use registration::{Region, Registration, StillRegistered};
pub use reserved::{Reserved, Unsent};
pub use transports::{driver, driver_for_scheme, drivers};
pub use waiting::{Sleeper, Waker, wait_any};
