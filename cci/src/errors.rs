//! Errors of calls that wait, and of the close.

use cci_proto::{Failure, RmaError, SendError, Status, Unusable};
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

/// Why an endpoint was not closed, or what is left after it was.
///
/// # Example
///
/// ```
/// use cci::{CloseError, Endpoint};
/// use std::time::Duration;
///
/// /// Closes an endpoint whose registered memory is unmapped next.
/// fn close(endpoint: Endpoint) -> Result<(), CloseError> {
///     match endpoint.close() {
///         Err(CloseError::Busy(_)) => cci::wait_for_copies(Duration::from_secs(10)),
///         closed => closed,
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseError {
    /// It cannot be used here, and is not closed by this call.
    Unusable(Unusable),
    /// It is closed, but this peer is in the midst of an RMA and does not go on. Memory that was
    /// registered by its address must stay mapped until [`crate::wait_for_copies`] succeeds; the
    /// library keeps memory that a [`crate::Registration`] owns.
    Busy(String),
    /// So many detached events keep it open. It closes when the last of them is dropped.
    Detached(u32),
}

impl From<Unusable> for CloseError {
    fn from(why: Unusable) -> Self {
        Self::Unusable(why)
    }
}

impl fmt::Display for CloseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => why.fmt(f),
            Self::Busy(peer) => write!(
                f,
                "the endpoint is closed, but {peer} is in the midst of an RMA and does not go on; keep registered memory mapped \
                 until it goes on or ends"
            ),
            Self::Detached(count) => {
                write!(f, "{count} detached events keep the endpoint open; drop them to close it")
            }
        }
    }
}

impl Error for CloseError {}
