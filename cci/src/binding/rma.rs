//! RMA.

use super::ends::{posted, wait_for_end};
use crate::errors::BlockingError;
use cci_mem::sync::Ordering;
use cci_proto::{Access, Atomic, Flags, RmaError};
use cci_transport::{Connection, ConnectionState, Endpoint, Posted, Rma, Slot};

/// Starts an RMA. `flags`: SILENT, or none of those that say how its end is reported.
///
/// # Errors
///
/// Refused: nothing was copied.
pub fn rma(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    rma: &Rma<'_>,
    context: u64,
    flags: Flags,
) -> Result<(), RmaError> {
    start_rma(endpoint, live, rma, posted(flags, context)).map(drop)
}

/// Starts an RMA and waits for its end.
///
/// # Errors
///
/// Refused: nothing was copied. Or failed: part of it may have been copied.
pub fn rma_blocking(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    rma: &Rma<'_>,
) -> Result<(), BlockingError<RmaError>> {
    let open = start_rma(endpoint, live, rma, Posted::Waited)?;
    wait_for_end(endpoint, open)
}

fn start_rma(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    rma: &Rma<'_>,
    posted: Posted,
) -> Result<Option<&'static Slot>, RmaError> {
    endpoint.with(|core, transport| {
        let connection = live().ok_or(RmaError::Disconnected)?;
        if !connection.attribute().is_reliable() {
            return Err(RmaError::Unreliable);
        }
        if rma.len == 0 {
            return Err(RmaError::ZeroLength);
        }
        if matches!(rma.access, Access::Atomic(_)) && !Atomic::is_word(rma.len) {
            return Err(RmaError::WordLength);
        }
        if rma.message.is_some_and(|message| message.len() > connection.max_send_size.load(Ordering::Relaxed) as usize)
        {
            return Err(RmaError::MessageTooLong);
        }
        if connection.state() != ConnectionState::Open {
            return Err(RmaError::Disconnected);
        }
        transport.rma(core, connection, rma, posted)
    })?
}
