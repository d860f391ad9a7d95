//! The vocabulary that every layer of CCI shares.
//!
//! No I/O, no allocation, no `unsafe`: newtypes and enumerations only, with the numeric values that
//! programs compiled against CCI 2.2 rely on.

#![no_std]
#![forbid(unsafe_code)]

mod attr;
mod error;
mod event;
mod flags;
mod handle;
mod option;
mod status;

pub use attr::Attribute;
pub use error::{
    ConnectError, Failure, OptionError, PollError, RegisterError, RequestError, RmaError, SendError, Unusable,
};
pub use event::EventKind;
pub use flags::Flags;
pub use handle::{Rights, RmaHandle};
pub use option::{Alignment, ConnectionOption, EndpointOption};
pub use status::Status;

/// The longest payload of a connection request, in bytes (`CCI_CONN_REQ_LEN`).
pub const CONN_REQ_LEN: usize = 1024;
