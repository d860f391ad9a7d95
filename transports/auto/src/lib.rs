//! One endpoint and one URI over several transports, which the facade gives
//! (`docs/design/auto.md`).
//!
//! ```text
//! driver   the record: keys, opening the ways
//! uri      what a URI has, and which ways of it this endpoint can go
//! auto     the ways and the core; operations of the trait Transport
//! poll     which way is polled when
//! port     endpoints by host and port
//! handle   the OS handle
//! accept   requests and accepts that have not ended
//! broker   clients that are sent from one endpoint to another
//! connect  connects and requests over all ways
//! known    the identities of requests that were seen
//! memory   registrations that are valid over all ways
//! route    which ways and addresses lead to a URI
//! secret   what peers prove
//! ```

#![forbid(unsafe_code)]

mod accept;
mod auto;
mod broker;
mod connect;
mod driver;
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod host;
mod known;
mod memory;
mod poll;
mod port;
mod route;
mod secret;
mod transport;
mod uri;

pub use driver::DRIVER;
