//! The transport `tcp`: streams of the kernel's TCP, one for each pair of endpoints and direction
//! of dialing, with all connections on it (`docs/design/tcp.md`).
//!
//! | folder or file | what |
//! |---|---|
//! | `driver`, `open` | the record by which the facade finds the transport; opening an endpoint |
//! | `frame` | what travels: headers, bodies, HELLO |
//! | `sys` | the system calls that need `unsafe` |
//! | `inbox` | receive slots: what arrives becomes an event |
//! | `lane` | a stream: sending, receiving, grants, its connections and operations |
//! | `rma` | RMA and large messages, at the side that begins and at the side that serves |
//! | `seal` | sealed streams: the handshake, records |
//! | `streams` | further streams of a lane, and RMA in parts over all of them |
//! | `setup` | dialing, listening, connect and accept, closing |
//! | `endpoint` | the trait, progress, the OS handle, timers |

#![deny(unsafe_code)]

mod driver;
mod endpoint;
#[cfg(test)]
mod fixture;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod inbox;
mod lane;
mod open;
mod rma;
#[cfg(test)]
mod scripted;
mod seal;
mod settings;
mod setup;
mod streams;
#[allow(unsafe_code)]
mod sys;

pub use driver::DRIVER;
