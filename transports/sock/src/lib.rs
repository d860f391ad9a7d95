//! UDP: frames between hosts, in few system calls. `docs/design/sock.md` describes how.

#![deny(unsafe_code)]

mod address;
mod driver;
#[doc(hidden)]
pub mod fuzzing;
mod groups;
mod link;
mod open;
mod proof;
mod ready;
mod resolve;
mod socket;
mod sockets;
#[allow(unsafe_code)]
mod sys;

pub use driver::DRIVER;
pub use link::Sock;
pub use socket::MAX_FRAME;
pub use sockets::Counters;
