//! Events as programs hold them.

use crate::connection::Connection;
use crate::raw;
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, EventKind, Failure, RequestError, Status};
use cci_transport::Slot;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// An event, borrowed from its endpoint until it is dropped or returned: in any order, from any thread.
///
/// A connection request must be accepted or rejected before; dropping one unanswered rejects it.
pub struct Event<'e> {
    pub(crate) slot: &'static Slot,
    endpoint: PhantomData<&'e crate::Endpoint>,
}

/// A received message.
pub struct Received<'a>(&'a Slot);

/// A connection request.
pub struct Request<'a>(&'a Slot);

impl Event<'_> {
    pub(crate) fn new(slot: &'static Slot) -> Self {
        Self { slot, endpoint: PhantomData }
    }

    /// What it reports.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        EventKind::from_u32(self.slot.kind()).unwrap_or(EventKind::DeviceFailed)
    }

    /// How the operation ended: of SEND, CONNECT and ACCEPT events; success for the others.
    ///
    /// # Errors
    ///
    /// The operation failed.
    pub fn outcome(&self) -> Result<(), Failure> {
        if !matches!(self.kind(), EventKind::Send | EventKind::Connect | EventKind::Accept) {
            return Ok(());
        }
        let status = Status::from_u32(self.slot.detail()).unwrap_or(Status::Error);
        Failure::from_status(status).map_or(Ok(()), Err)
    }

    /// Why a connect failed, as a sentence, where more is known than its status says: the peer's own words when it refused
    /// the handshake, for one. None for other events.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        raw::reason(self.slot)
    }

    /// The context of the operation: of SEND, CONNECT and ACCEPT events; 0 for the others.
    #[must_use]
    pub fn context(&self) -> u64 {
        let [second, third] = self.slot.words();
        match self.kind() {
            EventKind::Send => third,
            EventKind::Connect | EventKind::Accept => second,
            _ => 0,
        }
    }

    /// The connection it is about; none for requests and for connects and accepts that failed.
    #[must_use]
    pub fn connection(&self) -> Option<Connection> {
        self.slot.connection.get().map(|cell| Connection::of_life(cell, self.slot.mark.load(Ordering::Relaxed)))
    }

    /// The message, of a RECV event.
    #[must_use]
    pub fn received(&self) -> Option<Received<'_>> {
        (self.kind() == EventKind::Recv).then_some(Received(self.slot))
    }

    /// The request, of a CONNECT_REQUEST event.
    #[must_use]
    pub fn request(&self) -> Option<Request<'_>> {
        (self.kind() == EventKind::ConnectRequest).then_some(Request(self.slot))
    }

    /// Gives the event back. Dropping it does the same but for unanswered requests.
    ///
    /// # Errors
    ///
    /// The request has not been answered; the event is handed back.
    pub fn give_back(self) -> Result<(), (Self, RequestError)> {
        match raw::return_event(self.slot) {
            Ok(()) => {
                std::mem::forget(self);
                Ok(())
            }
            Err(error) => Err((self, error)),
        }
    }

    /// The pointer that a binding's program holds until it returns the event by [`raw::return_event`].
    #[must_use]
    pub fn into_raw(self) -> NonNull<Slot> {
        let slot = NonNull::from(self.slot);
        std::mem::forget(self);
        slot
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        if raw::return_event(self.slot) == Err(RequestError::NotAnswered) {
            // Without an answer the client would wait for ever. Only a request whose peer or endpoint is gone cannot be
            // rejected, and nobody waits for that.
            let _ = raw::reject(self.slot);
            let _ = raw::return_event(self.slot);
        }
    }
}

impl std::fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event")
            .field("kind", &self.kind())
            .field("outcome", &self.outcome())
            .field("connection", &self.connection())
            .finish_non_exhaustive()
    }
}

impl Received<'_> {
    /// Bytes of the message.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.detail() as usize
    }

    /// Whether the message has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the first bytes of the message into `target` and says how many.
    pub fn copy_to(&self, target: &mut [u8]) -> usize {
        self.0.copy_payload(target)
    }

    /// A copy of the message.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.copy_to(&mut bytes);
        bytes
    }
}

impl Request<'_> {
    /// What the client asks for.
    #[must_use]
    pub fn attribute(&self) -> Attribute {
        let [_, attribute] = self.0.words();
        u32::try_from(attribute).ok().and_then(Attribute::from_u32).unwrap_or(Attribute::ReliableOrdered)
    }

    /// A copy of the payload.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.detail() as usize];
        let _ = self.0.copy_payload(&mut bytes);
        bytes
    }
}
