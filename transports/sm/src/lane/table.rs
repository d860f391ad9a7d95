//! What a lane keeps of connections that are being opened.

use crate::format::address::Address;
use cci_proto::Attribute;
use cci_transport::{Connection, ConnectionTable, Slot};

/// The connections of a lane.
pub(crate) type Table = ConnectionTable<PendingConnect>;

/// How often a connect is tried on another lane because the peer has closed the one that it met.
pub(crate) const RETRIES: u8 = 8;

/// A connect that waits for its answer.
pub(crate) struct PendingConnect {
    /// Reserved for the CONNECT event.
    pub(crate) slot: &'static Slot,
    pub(crate) context: u64,
    /// Milliseconds of the endpoint's clock.
    pub(crate) deadline: Option<u64>,
    /// What was asked, should the client be sent elsewhere or the lane close before the answer.
    pub(crate) payload: Box<[u8]>,
    pub(crate) token: u64,
    /// How often it may still be tried on another lane.
    pub(crate) retries: u8,
}

/// A request that waits for the program's answer.
pub(crate) struct PendingRequest {
    /// The client's number.
    pub(crate) number: u32,
    pub(crate) attribute: Attribute,
    pub(crate) max_send_size: u32,
}

/// A client that was sent to another endpoint.
pub(crate) struct Redirected {
    pub(crate) cell: &'static Connection,
    pub(crate) pending: PendingConnect,
    pub(crate) address: Address,
}
