//! Connection requests, and those whose answer was refused.

use super::held::Held;
use crate::binding;
use crate::endpoint::EndpointFor;
use cci_proto::{Attribute, RequestError};
use cci_transport::Peer;
use std::error::Error;
use std::fmt;

/// A connection request: see [`crate::Event::Request`]. Answering it consumes it; dropping it
/// rejects it.
///
/// # Example
///
/// ```
/// fn answer(request: cci::Request<'_>) -> Result<(), cci::RequestError> {
///     if request.payload() == b"the password" { request.accept(1)? } else { request.reject()? }
///     Ok(())
/// }
/// ```
///
/// No request is answered twice:
///
/// ```compile_fail,E0382
/// fn answer(request: cci::Request<'_>) {
///     request.accept(1);
///     request.reject();
/// }
/// ```
pub struct Request<'e>(pub(super) Held<'e>);

impl<'e> Request<'e> {
    /// Returns what the client asks the connection to promise.
    #[must_use]
    pub fn attribute(&self) -> Attribute {
        let [_, attribute] = self.0.slot.words();
        u32::try_from(attribute).ok().and_then(Attribute::from_u32).unwrap_or(Attribute::ReliableOrdered)
    }

    /// Copies the payload that the client sent with its request: at most 1,024 bytes.
    #[must_use]
    #[expect(unsafe_code, reason = "the bytes are read where the library has put them")]
    pub fn payload(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.slot.detail() as usize];
        // SAFETY: the slot is given back only when this value is dropped, and is not filled before;
        // programs reach the payload through this type only, which does not write it.
        let _ = unsafe { self.0.slot.copy_payload(&mut bytes) };
        bytes
    }

    /// Returns who asks, as far as the system tells; `None` when the client is gone meanwhile.
    #[must_use]
    pub fn peer(&self) -> Option<Peer> {
        binding::peer(self.0.slot).ok().flatten()
    }

    /// Accepts the request. One event, [`crate::Event::Accepted`] or
    /// [`crate::Event::AcceptFailed`], follows with `context`.
    ///
    /// # Errors
    ///
    /// No free send buffer, no memory, or the peer is gone; the request comes back and can be
    /// answered again.
    pub fn accept(self, context: u64) -> Result<(), Unanswered<'e>> {
        self.answered(|slot| binding::accept(slot, context))
    }

    /// Accepts the request on another endpoint of this process and of the same device: the client
    /// is sent there, and the event that follows comes there.
    ///
    /// # Errors
    ///
    /// As [`Request::accept`], or an endpoint of another device.
    pub fn accept_on<T>(self, worker: &EndpointFor<T>, context: u64) -> Result<(), Unanswered<'e>> {
        self.answered(|slot| binding::accept_on(slot, worker.cell, context))
    }

    /// Rejects the request: the client's connect fails with [`cci_proto::Failure::Refused`].
    ///
    /// # Errors
    ///
    /// As [`Request::accept`].
    pub fn reject(self) -> Result<(), Unanswered<'e>> {
        self.answered(binding::reject)
    }

    fn answered(
        self,
        act: impl FnOnce(&'static cci_transport::Slot) -> Result<(), RequestError>,
    ) -> Result<(), Unanswered<'e>> {
        act(self.0.slot).map_err(|why| Unanswered { request: self, why })
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({}, {} bytes)", self.attribute().name(), self.0.slot.detail())
    }
}

/// A connection request whose answer was refused, and why. The request can be answered again;
/// dropping it rejects it.
///
/// Converts into `Box<dyn Error>`, so that `?` on an answer rejects the request and ends the
/// function.
///
/// # Example
///
/// ```
/// use cci::{Event, RequestError, Unanswered};
///
/// /// Accepts a request, or keeps it for later where send buffers are short.
/// fn accept<'e>(request: cci::Request<'e>, later: &mut Vec<cci::Request<'e>>) -> Result<(), RequestError> {
///     match request.accept(1) {
///         Err(Unanswered { request, why: RequestError::NoBuffers }) => later.push(request),
///         answered => answered?,
///     }
///     Ok(())
/// }
/// ```
#[must_use = "dropping it rejects the request"]
#[derive(Debug)]
pub struct Unanswered<'e> {
    /// The request.
    pub request: Request<'e>,
    /// Why the answer was refused.
    pub why: RequestError,
}

impl fmt::Display for Unanswered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl From<Unanswered<'_>> for RequestError {
    fn from(unanswered: Unanswered<'_>) -> Self {
        unanswered.why
    }
}

impl From<Unanswered<'_>> for Box<dyn Error> {
    fn from(unanswered: Unanswered<'_>) -> Self {
        unanswered.why.into()
    }
}

impl From<Unanswered<'_>> for Box<dyn Error + Send + Sync> {
    fn from(unanswered: Unanswered<'_>) -> Self {
        unanswered.why.into()
    }
}
