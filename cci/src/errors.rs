//! Errors of calls that wait, and of requests that were not answered.

use crate::event::Request;
use cci_proto::{Failure, RequestError, RmaError, SendError, Status};
use std::error::Error;
use std::fmt;

/// Why a call that waits for its operation did not succeed: refused, or failed later.
///
/// # Example
///
/// ```
/// use cci::{BlockingError, Failure, SendError};
///
/// fn advice(error: BlockingError<SendError>) -> &'static str {
///     match error {
///         BlockingError::Refused(SendError::NoBuffers) => "nothing was sent; take events and send again",
///         BlockingError::Refused(_) => "nothing was sent",
///         BlockingError::Failed(Failure::TimedOut) => "it may have arrived; the connection is broken",
///         BlockingError::Failed(_) => "it may have arrived",
///     }
/// }
/// assert_eq!(advice(SendError::TooLong.into()), "nothing was sent");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockingError<E> {
    /// The call was refused: nothing happened.
    Refused(E),
    /// The operation began and failed: part of it may have happened.
    Failed(Failure),
}

impl<E: fmt::Display> fmt::Display for BlockingError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => why.fmt(f),
            Self::Failed(why) => why.fmt(f),
        }
    }
}

impl<E: Error> Error for BlockingError<E> {}

impl<E> From<E> for BlockingError<E> {
    #[inline]
    fn from(why: E) -> Self {
        Self::Refused(why)
    }
}

impl BlockingError<SendError> {
    /// Returns the status that a C program sees.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Refused(why) => why.status(),
            Self::Failed(why) => why.status(),
        }
    }
}

impl BlockingError<RmaError> {
    /// Returns the status that a C program sees.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Refused(why) => why.status(),
            Self::Failed(why) => why.status(),
        }
    }
}

/// A connection request whose answer was refused, and why. The request can be answered again; dropping it rejects it.
///
/// Converts into `Box<dyn Error>`, so that `?` on an answer rejects the request and ends the function.
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
