//! A hub: an endpoint whose events are sorted by what waits for them. The awaitable and the
//! synchronous connections of the package stand on it.

mod calls;
mod inner;
mod methods;
mod pauses;
mod serving;
mod state;
mod unread;
mod waits;

pub(crate) use calls::{Span, register};
pub(crate) use inner::Hub;
