//! Active Messages over CCI: a request names a handler, which runs at its target and may reply.
//!
//! An [`Endpoint`] owns a state and a table of [`Handlers`] over it. A *short* request has up to 16
//! arguments of 32 bits; a *medium* one has bytes too, which its handler reads in place; a *bulk*
//! one has bytes that lie in the target's segment before its handler runs. A handler of requests
//! may reply once; a handler of replies may not send anything. Neither can reach the endpoint, so
//! that these rules hold by type.
//!
//! Every request ends once: by its reply, without one, or by coming back with a [`Status`].
//! `docs/design/am.md` says why endpoints never wait for each other in a circle.
//!
//! *Order*: requests to one peer run their handlers in the order in which they were sent. Do not
//! build on more: bulk replies may overtake others.
//!
//! *Threads*: an endpoint is used by one thread at a time, and may be moved to another one.

#![forbid(unsafe_code)]

mod bundle;
mod cci_mapping;
mod credits;
mod draft;
mod endpoint;
mod engine;
mod errors;
mod forms;
#[doc(hidden)]
pub mod fuzzing;
mod handlers;
mod mapping;
mod message;
mod options;
mod outbox;
mod peers;
mod records;
mod reply_buffers;
mod sort;
mod staging;
mod waker;
mod wire;

pub use bundle::{Bundle, Member};
pub use cci_mapping::CciMapping;
pub use draft::Draft;
pub use endpoint::{Endpoint, TAG_ALL, TAG_NONE};
pub use errors::{MapError, ReplyError, RequestError, Status};
pub use forms::Immediate;
pub use handlers::Handlers;
pub use mapping::{Arrived, Asking, Incoming, Mapping, Outcome, Refused, Room, Transfer};
pub use message::{Payload, Reply, Request, Returned};
pub use options::Options;
pub use peers::Peer;
pub use sort::Sort;
pub use waker::Waker;
