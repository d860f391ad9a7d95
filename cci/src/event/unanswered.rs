//! Requests that were not answered.

use super::Request;
use cci_proto::RequestError;
use std::error::Error;
use std::fmt;

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
