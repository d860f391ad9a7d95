//! Unexpected messages.

use cci_rendezvous::Body;

/// An unexpected message, but for its match bits.
pub(crate) struct Arrival {
    /// The number of the partner, and its session.
    pub(crate) peer: u32,
    pub(crate) session: u32,
    /// The link that it came by.
    pub(crate) link: u32,
    pub(crate) length: u32,
    /// Granules.
    pub(crate) cost: u32,
    /// The sender's request, if it waits for the end.
    pub(crate) number: Option<u64>,
    pub(crate) body: Body,
}
