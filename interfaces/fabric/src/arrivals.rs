//! Unexpected messages.

use cci_rendezvous::Body;

/// An unexpected message, but for its match bits.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) partner: u32,
    /// The link that it came by.
    pub(crate) link: u32,
    pub(crate) length: u64,
    /// Granules.
    pub(crate) cost: u32,
    /// Of an offer: the sender's number, until its bytes are read. Of a send of this endpoint to
    /// itself: that send.
    pub(crate) number: u32,
    pub(crate) data: Option<u64>,
    pub(crate) body: Body,
}

/// The bytes of a message that is kept.
pub(crate) fn bytes(body: &Body, len: usize) -> &[u8] {
    let bytes: &[u8] = match body {
        Body::Short(bytes) => bytes,
        Body::Long(bytes) => bytes,
        Body::Offered(_) | Body::Own => &[],
    };
    bytes.get(..len).unwrap_or_default()
}
