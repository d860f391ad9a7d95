//! The Common Communication Interface.
//!
//! A [`Context`] knows the devices of this host. An [`Endpoint`], opened on one of them, owns all buffers and one queue of
//! events. A [`Connection`] leads to a peer's endpoint and costs about a hundred bytes. Messages up to the connection's maximum
//! are buffered by the library; bulk data moves by RMA between registered memories. [`Endpoint::get_event`] never blocks;
//! [`Endpoint::handle`] gives a descriptor to wait on.
//!
//! All times are given in the unit that the name says, all sizes in bytes. Everything here may be called from any thread at
//! any time, unless the endpoint was opened for one thread.

#![forbid(unsafe_code)]

mod config;
mod connection;
mod context;
mod device;
mod endpoint;
mod event;
mod options;
pub mod raw;
mod transports;

pub use cci_mem::arena::SharedMemory;
pub use cci_mem::guarded::Threading;
pub use cci_mem::memory::Memory;
pub use cci_mem::view::View;
pub use cci_proto::{
    Alignment, Attribute, CONN_REQ_LEN, ConnectError, ConnectionOption, EndpointOption, EventKind, Failure, Flags,
    OptionError, PollError, RegisterError, RequestError, Rights, RmaError, RmaHandle, SendError, Status, Unusable,
};
#[cfg(feature = "trace")]
pub use cci_transport::trace;
pub use cci_transport::{Condition, ConnectionReport, Discovered, Driver, Key, OpenError, Scope};
pub use cci_transport::{Snapshot, Unreadable, WaitFor, WaitShown};
pub use connection::Connection;
pub use context::Context;
pub use device::{Device, Pci};
pub use endpoint::{CloseError, Endpoint, EndpointOptions, Rma, wait_for_copies};
pub use event::{Event, Received, Request};
pub use transports::{driver, drivers};
