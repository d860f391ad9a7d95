//! Messages of any length.

use super::ends::{posted, wait_for_end};
use super::sends::check_flags;
use crate::errors::BlockingError;
use cci_mem::memory::Memory;
use cci_proto::{Flags, SendError, Unusable};
use cci_transport::{Connection, ConnectionState, Endpoint, Message, Posted, Slot};

/// Sends this memory as one message: as any other if the connection takes one as long, otherwise
/// after asking the peer for memory. `flags`: SILENT, NO_COPY, or none.
///
/// # Errors
///
/// Refused: nothing was sent.
pub fn send_large(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    memory: &Memory,
    context: u64,
    flags: Flags,
) -> Result<(), SendError> {
    start(endpoint, live, memory, posted(flags, context), flags).map(drop)
}

/// As [`send_large`], and waits for the end.
///
/// # Errors
///
/// Refused: nothing was sent. Or failed later.
pub fn send_large_blocking(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    memory: &Memory,
    flags: Flags,
) -> Result<(), BlockingError<SendError>> {
    let open = start(endpoint, live, memory, Posted::Waited, flags)?;
    wait_for_end(endpoint, open)
}

fn start(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    memory: &Memory,
    posted: Posted,
    flags: Flags,
) -> Result<Option<&'static Slot>, SendError> {
    endpoint.with(|core, transport| {
        let connection = live().ok_or(SendError::Disconnected)?;
        let len = usize::try_from(memory.len()).map_err(|_| SendError::TooLong)?;
        if connection.takes(len) {
            check_flags(connection, flags)?;
            let bytes = memory.source(len).ok_or(SendError::TooLong)?;
            return transport.send(core, connection, Message::One(bytes), posted);
        }
        if connection.state() != ConnectionState::Open {
            return Err(SendError::Disconnected);
        }
        // The length of an event has 32 bits, and one byte more is needed for the zero that ends
        // the payload.
        if !connection.attribute().is_reliable() || memory.len() >= u64::from(u32::MAX) {
            return Err(SendError::TooLong);
        }
        check_flags(connection, flags)?;
        transport.send_large(core, connection, memory.clone(), posted)
    })?
}

/// Allows peers to send messages beyond the connection's maximum: so many bytes for all that are on
/// their way here or with the program.
///
/// # Errors
///
/// The endpoint cannot be used here.
pub fn set_large_limit(endpoint: &Endpoint, limit: u64) -> Result<(), Unusable> {
    endpoint.with(|core, transport| {
        core.set_large_limit(limit);
        if core.landings().is_waiting() || core.way_count() > 1 {
            transport.refill(core);
        }
    })
}
