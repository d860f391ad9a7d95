//! What needs no system: the vocabulary that every layer of CCI shares, with the numeric values
//! that programs compiled against CCI 2.2 rely on; the wire format; and the reliability engine.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod address;
mod alignment;
mod attr;
mod decimal;
pub mod engine;
mod error;
mod event;
mod flags;
mod gather;
mod handle;
mod places;
mod registration;
mod status;
mod time;
pub mod wire;

pub use access::{Access, Atomic};
pub use address::Address;
pub use alignment::Alignment;
pub use attr::Attribute;
pub use decimal::decimal;
pub use error::{
    ConnectError, Failure, ImportError, OptionError, PauseError, PollError, RegisterError, RequestError, RmaError,
    SendError, Unusable,
};
pub use event::EventKind;
pub use flags::Flags;
pub use gather::{Cursor, Gather};
pub use handle::{Rights, RmaHandle};
pub use places::Places;
pub use registration::Registration;
pub use status::Status;
pub use time::Time;

/// The longest payload of a connection request, in bytes (`CCI_CONN_REQ_LEN`).
pub const CONN_REQ_LEN: usize = 1024;

/// The header that a transport over others puts before the payload of a connection request, bytes.
pub const REQUEST_HEAD: usize = 32;

/// What such a header begins with: that of a plain connect, and of one that proves a secret.
pub const REQUEST_MAGICS: [[u8; 8]; 2] = [*b"cci-ways", *b"cci-prov"];

/// The target, in such a header of a plain connect, that stands for whoever listens at the address
/// to which the request is sent. No endpoint has this identity.
pub const WHOEVER_LISTENS: u64 = 0;

/// The longest payload of a CONNECT frame, bytes.
pub const MAX_REQUEST: usize = CONN_REQ_LEN + REQUEST_HEAD;
