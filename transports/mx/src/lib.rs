//! The transport over the C interface of Myrinet Express, loaded at run time
//! (`docs/design/over-mx.md`). What it has in common with others is in `cci-over`.
//!
//! | file | part |
//! |---|---|
//! | `driver` | the record by which the facade finds the transport, and opening |
//! | `sys` | the library: types, calls, memory that it was given |
//! | `process` | the libraries that the endpoints of a process share |
//! | `inbound` | what the unexpected handler leaves for calls of the program |
//! | `network` | what the shared part of the transport asks for |
//! | `requests` | sends and receives under way |
//! | `transfers` | RMA by matched messages |
//! | `wire` | addresses, match bits |

#![deny(unsafe_code)]

mod driver;
#[doc(hidden)]
pub mod fuzzing;
mod inbound;
mod network;
mod process;
mod requests;
mod sys;
mod transfers;
mod wire;

pub use driver::DRIVER;
