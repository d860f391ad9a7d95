//! What bindings and tools need, and programs do not: the operations on cells of the slabs, without
//! handle objects and with the same checks. No part of the API: it changes with the library.
//!
//! A cell leads to everything behind the endpoint's lock. So it is reached through `unsafe`
//! functions only ([`crate::__binding::cell`], [`crate::__binding::into_cell`]), whose callers
//! promise this: no event that an [`crate::Event`] holds is given back through a slot, and no
//! endpoint is closed through its cell, while Rust code may still read the payload of one of its
//! events.

mod batch;
mod closing;
mod connections;
mod ends;
mod events;
mod handle;
mod large;
mod options;
mod registrations;
mod requests;
mod rma;
mod rooms;
mod sends;
mod sleeping;
mod waiting;

pub use cci_mem::arena::{allocate, free};
pub use cci_mem::arguments::{In, Out, Text, Variable};
pub use cci_mem::barrier::prepare;
pub use cci_mem::cancellation::Uncancelled;
pub use cci_mem::fork::PerProcess;
pub use cci_mem::guarded::{Guard, Guarded, Sleepers, Threading};
pub use cci_mem::slab::Slab;
pub use cci_mem::source::{Source, Sources};
pub use cci_mem::sync::{AtomicU64, Ordering};
pub use cci_proto::{Access, Flags};
#[cfg(feature = "tracing")]
pub use cci_transport::begin_log;
pub use cci_transport::{
    Connect, Connection as ConnectionCell, ConnectionState, Endpoint as EndpointCell, Entered, Imported, Message,
    Outside, Popped, Rma, Slot as EventCell, Timeout,
};

pub use batch::poll;
pub use closing::{abandon, close, close_for_owner};
pub use connections::{connect, disconnect, pause, report, resume};
pub use events::{get_event, give_back, put_back, refill, return_event};
#[cfg(feature = "tokio")]
pub(crate) use handle::progress_and_arm;
pub use handle::{arm, handle};
pub use large::{send_large, send_large_blocking, set_large_limit};
pub use options::{OptionValue, connection_option, endpoint_option, set_connection_option, set_endpoint_option};
pub use registrations::{ALL, NotDeregistered, Served, deregister, import, register, rights_are_open};
pub(crate) use registrations::{deregister_owned, drop_owned, register_owned, retire_dropped};
pub use requests::{ANSWERED, accept, accept_on, peer, reason, reject};
pub use rma::{rma, rma_blocking};
pub use rooms::{cancel, commit, commit_blocking, reserve};
pub use sends::{send, send_answer, send_blocking, set_answer_buffers};
pub use sleeping::missed_wakeups;
pub use waiting::{begin_wait, end_wait, wait_any, waiting, wake};
