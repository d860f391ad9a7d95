//! One endpoint and one URI over several transports, which the facade gives
//! (`docs/design/auto.md`).
//!
//! ```text
//! driver      the record: keys, opening the ways
//! uri         what a URI has, and which ways of it this endpoint can go
//! way         a transport of the endpoint
//! auto        the ways and the core; operations of the trait Transport
//! poll        which way is polled when
//! interval    how often the cold ways are looked at
//! port        endpoints by host and port
//! protection  which ways meet the security that is asked for
//! handle      the OS handle
//! call_set    what blocking calls sleep on
//! accept      requests and accepts over all ways
//! accepting   those that have not ended
//! broker      clients that are sent from one endpoint to another
//! connect     connects and requests over all ways
//! connecting  connects that have not ended
//! known       the identities of requests that were seen
//! memory      registrations that are valid over all ways
//! route       which ways and addresses lead to a URI
//! candidate   a way and an address that may
//! secret      what peers prove
//! ```

#![forbid(unsafe_code)]

mod accept;
mod accepting;
mod auto;
mod broker;
mod call_set;
mod candidate;
mod connect;
mod connecting;
mod driver;
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod host;
mod interval;
mod known;
mod memory;
mod poll;
mod port;
mod protection;
mod route;
mod secret;
mod transport;
mod uri;
mod way;

pub use driver::DRIVER;
