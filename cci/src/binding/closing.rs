//! The end of an endpoint.

use crate::errors::CloseError;
use cci_proto::Unusable;
use cci_transport::{Endpoint, keep_copies};
use std::time::Duration;

/// Closes an endpoint: what is published stays delivered, waiting at most 100 ms for it; what is
/// open ends without event.
///
/// # Errors
///
/// Closed already, or it cannot be used here. [`CloseError::Busy`]: closed, but a peer still
/// copies.
///
/// # Safety
///
/// No [`crate::Event`] of the endpoint is left.
#[expect(unsafe_code, reason = "the memory of payloads ends with the endpoint")]
pub unsafe fn close(endpoint: &'static Endpoint) -> Result<(), CloseError> {
    let body = endpoint.close()?;
    let closed = shut(body);
    endpoint.recycle();
    closed
}

/// As [`close`], of this life of an endpoint, whatever thread it belongs to: that thread's later
/// calls are refused.
///
/// # Errors
///
/// As [`close`].
///
/// # Safety
///
/// As [`close`].
#[expect(unsafe_code, reason = "the memory of payloads ends with the endpoint")]
pub unsafe fn close_for_owner(endpoint: &'static Endpoint, life: u32) -> Result<(), CloseError> {
    if endpoint.generation() != life {
        return Err(Unusable::Closed.into());
    }
    // SAFETY: by the contract above.
    match unsafe { close(endpoint) } {
        Err(CloseError::Unusable(Unusable::WrongThread)) => {}
        result => return result,
    }
    // The cell has no further life: the thread that it belonged to may still be at its door.
    shut(endpoint.seize(life)?)
}

fn shut(mut body: cci_transport::Body) -> Result<(), CloseError> {
    cci_transport::log_span!(_span, "close");
    body.transport.close(&mut body.core, Duration::from_millis(100));
    let copies = body.core.take_unfinished();
    let busy = copies.first().map(|copy| CloseError::Busy(copy.peer()));
    keep_copies(copies, body.core.take_owned_memory());
    busy.map_or(Ok(()), Err)
}

/// Closes an endpoint in whose call a panic was caught: it says farewell to its peers, and every
/// later call is refused. Cannot panic.
pub fn abandon(endpoint: &'static Endpoint) {
    endpoint.abandon();
}
