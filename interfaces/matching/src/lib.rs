//! Matching of messages with what waits for them, as Portals, MX and MPI have it. Nothing here
//! sends, waits or knows of CCI: these are data structures for one thread, or under the lock of
//! their interface.
//!
//! | structure | holds | asked with |
//! |---|---|---|
//! | [`Posted`] | receives, oldest first | the envelope of a message: the oldest receive that matches |
//! | [`Unexpected`] | messages without a receive, oldest first | the pattern of a receive: the oldest message that matches |
//! | [`Ordered`] | a match list, in the program's order | an envelope: the first entry that matches and accepts |
//!
//! A lookup costs a hash for each *class* of patterns, which is a pair of masks, and not a step for
//! each entry: programs have few such pairs and many entries. `docs/design/matching.md` has the
//! figure.
//!
//! ```
//! use cci_matching::{Envelope, Pattern, Posted, Unexpected};
//!
//! let (mut posted, mut unexpected) = (Posted::new(), Unexpected::new());
//! posted.post(Pattern::exact(1, 7), "from 1")?;
//! posted.post(Pattern::new(0, 0, 7, !0), "from anybody")?;
//!
//! let message = Envelope { source: 2, bits: 7 };
//! assert_eq!(posted.take(&message), Some("from anybody"));
//! if posted.take(&message).is_none() {
//!     unexpected.insert(message, "payload")?;
//! }
//! assert_eq!(unexpected.take(&Pattern::any()), Some((message, "payload")));
//! # Ok::<(), cci_matching::NoMemory<&str>>(())
//! ```
#![forbid(unsafe_code)]

mod classes;
mod lists;
mod nodes;
mod ordered;
mod pattern;
mod posted;
mod unexpected;

pub use ordered::Ordered;
pub use pattern::{Envelope, Offer, Pattern};
pub use posted::Posted;
pub use unexpected::Unexpected;

/// Names an entry of one structure, and no later one in its place. Entries that are gone are
/// answered with `None`.
///
/// # Example
///
/// ```
/// use cci_matching::{Pattern, Posted};
///
/// let mut posted = Posted::new();
/// let ticket = posted.post(Pattern::any(), 'a')?;
/// assert_eq!((posted.cancel(ticket), posted.cancel(ticket)), (Some('a'), None));
/// # Ok::<(), cci_matching::NoMemory<char>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    index: u32,
    life: u32,
}

/// There is no memory for another entry. It gives the item back, and nothing has changed.
///
/// # Example
///
/// ```
/// let refused = cci_matching::NoMemory("item");
/// assert!(refused.to_string().contains("no memory"));
/// assert_eq!(refused.0, "item");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory<T>(pub T);

impl<T> std::fmt::Display for NoMemory<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("no memory for another entry to match; take or cancel some first")
    }
}

impl<T: std::fmt::Debug> std::error::Error for NoMemory<T> {}
