//! A connect that waits for its answer.

use crate::setup::addresses::OtherAddresses;
use cci_proto::Time;
use cci_transport::Slot;

/// A connect that waits for its answer.
pub(crate) struct PendingConnect {
    /// Reserved for the CONNECT event.
    pub(crate) slot: &'static Slot,
    pub(crate) context: u64,
    /// When the program has asked for it, and how long it may take.
    pub(crate) since: Time,
    pub(crate) deadline: Time,
    /// What was asked, should the client be sent elsewhere or asked to come again.
    pub(crate) payload: Box<[u8]>,
    pub(crate) token: u64,
    /// CONNECT has left on this stream.
    pub(crate) is_asked: bool,
    /// The peer's last answer was that it has no room for the request.
    pub(crate) was_busy: bool,
    /// When it is to be asked again.
    pub(crate) ask_at: Option<Time>,
    /// Where it asks if the peer of its lane does not answer.
    pub(crate) others: OtherAddresses,
}

impl PendingConnect {
    /// When it asks at another address: before CONNECT has left, because a request is made once.
    pub(crate) fn elsewhere_at(&self) -> Option<Time> {
        self.others.next_at().filter(|_| !self.is_asked)
    }

    pub(crate) fn new(slot: &'static Slot, context: u64, (since, deadline): (Time, Time), payload: Box<[u8]>) -> Self {
        Self {
            slot,
            context,
            since,
            deadline,
            payload,
            token: 0,
            is_asked: false,
            was_busy: false,
            ask_at: None,
            others: OtherAddresses::default(),
        }
    }
}
