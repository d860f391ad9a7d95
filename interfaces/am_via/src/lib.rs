//! Active Messages over the VI Architecture: [`ViaMapping`], a mapping of `cci-am` over the
//! provider `cci-via`, in the four ways that [`Variant`] names.
//!
//! `docs/design/am-over-via.md` has the figures, and what each way costs and teaches.
//!
//! ```
//! use cci_am::{Endpoint, Handlers, Options, Reply, Request, TAG_ALL};
//! use cci_am_via::{Variant, ViaMapping};
//!
//! const ADD: u8 = 1;
//! const SUM: u8 = 2;
//!
//! fn add(_: &mut u32, request: Request<'_>) {
//!     let sum = request.arguments().iter().sum();
//!     request.reply(SUM, &[sum]).expect("one argument");
//! }
//!
//! fn sum(sums: &mut u32, reply: Reply<'_>) {
//!     *sums += reply.arguments()[0];
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = cci::Context::new()?.default_device()?.clone();
//! let open = || {
//!     let mapping = ViaMapping::open(&device, &cci_am_via::Options::new(Variant::V3))?;
//!     Endpoint::over(mapping, &Options::new(), Handlers::new().request(ADD, add).reply(SUM, sum), 0)
//! };
//! let (mut server, mut client) = (open()?, open()?);
//! let peer = client.map(&server.name().to_owned(), TAG_ALL)?;
//! // Both ends are in one thread here, so that the client may not wait for the server.
//! while client.now().request(peer, ADD, &[20, 22]).is_err() {
//!     server.poll()?;
//!     client.poll()?;
//! }
//! while *client.state() == 0 {
//!     server.poll()?;
//!     client.poll()?;
//! }
//! assert_eq!(*client.state(), 42);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod bulk;
mod channel;
mod door;
mod flow;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod hypotheses;
mod mapping;
mod opening;
mod options;
mod pipe;
mod polling;
mod regions;
mod space;
mod table;
mod transfers;
mod watch;

pub use channel::ViaChannel;
pub use mapping::{ViaAsking, ViaMapping, ViaRoom};
pub use options::{Buffers, Options, Variant};
pub use regions::ViaRegion;
pub use watch::{Unwatched, Watch};

/// The NIC behind a mapping.
pub(crate) type Core = cci_via::engine::Core<pipe::Token>;
