//! What two endpoints with matched messages need beneath their requests, as Myrinet Express and
//! libfabric have it. Names of requests, matching and statuses stay with the interface. These are
//! data structures for one thread, or under the lock of their interface.
//!
//! | structure | holds | of |
//! |---|---|---|
//! | [`Header`] | kind, flags, credit given back, a word and a long | a message |
//! | [`Windows`], [`Window`] | what partners may still send, and what is owed to them | an endpoint, a link |
//! | [`Credit`] | what this side may still send | a link |
//! | [`Source`], [`Buffers`], [`Body`] | the bytes of a message, and what is kept of one that no receive matches | an endpoint |
//! | [`Offers`] | memory that partners may read, until they have | an endpoint |
//! | [`Reads`] | reads of what partners offer, into memory of this side | an endpoint |
//! | [`Outbox`] | what waits for room, credit or a link | a partner |
//!
//! A *partner* is the other end of a link, which may break every rule: what it says is checked
//! here, and a method that answers false asks its caller to end the link. Requests are handles of
//! the caller's, which come back when what they wait for is over.
//! `docs/design/fabric.md` has the figure of a message.
#![forbid(unsafe_code)]

mod bodies;
mod header;
mod link;
mod offers;
mod outbox;
mod reads;
mod window;

pub use bodies::{Body, Buffers, MOST_KEPT, Remote, Source};
pub use header::Header;
pub use link::{Link, register};
pub use offers::Offers;
pub use outbox::{Flood, Outbox};
pub use reads::{Ended, NoRoom, Reads, Unread, locate};
pub use window::{Credit, GRANULE, Window, Windows, cost_of_bytes, longest_of_half};
