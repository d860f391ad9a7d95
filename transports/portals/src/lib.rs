//! The transport over the C interface of Portals 3.3, loaded at run time
//! (`docs/design/over-portals.md`). What it has in common with others is in `cci-over`.
//!
//! | file | part |
//! |---|---|
//! | `driver` | the record by which the facade finds the transport, and opening |
//! | `sys` | the library: types, calls, memory that it was given |
//! | `network` | the interface that the endpoints of a process share |
//! | `portals` | what the shared part of the transport asks for |
//! | `net` | puts and gets under way, and the memory of messages |
//! | `blocks` | receive memory |
//! | `watcher` | the wait while the program sleeps |
//! | `wire` | addresses, match bits |

#![deny(unsafe_code)]

mod blocks;
mod driver;
#[doc(hidden)]
pub mod fuzzing;
mod net;
mod network;
mod portals;
mod sys;
mod watcher;
mod wire;

pub use driver::DRIVER;
