//! Room for messages that a program writes before it sends them.

use super::{open_for, posted, wait_for_end};
use crate::errors::BlockingError;
use cci_proto::{Flags, SendError, Unusable};
use cci_transport::{Connection, Endpoint, Message, Origin, Posted, Room, Slot};

/// Gives room for a message of `len` bytes on a connection.
///
/// # Errors
///
/// The connection takes no such message, or the program has as many rooms as send buffers.
pub fn reserve(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    len: usize,
) -> Result<Room, SendError> {
    endpoint.with(|core, transport| {
        let connection = open_for(live(), len, Flags::NONE)?;
        if core.rooms().count() >= core.send_count().0 {
            return Err(SendError::NoBuffers);
        }
        match transport.reserve(core, connection, len) {
            Some(named) => Ok(core.rooms().enter(connection, len, named)),
            None => core.rooms().make(connection, len),
        }
    })?
}

/// Sends the first `len` bytes of a room. `flags`: SILENT, NO_COPY, or none.
///
/// # Errors
///
/// Refused: the room is still the program's, unless there is none.
pub fn commit(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    (room, len): (u64, usize),
    context: u64,
    flags: Flags,
) -> Result<(), SendError> {
    start(endpoint, live, (room, len), posted(flags, context), flags).map(drop)
}

/// As [`commit`], and waits for the end.
///
/// # Errors
///
/// Refused: the room is still the program's, unless there is none. Or failed later.
pub fn commit_blocking(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    (room, len): (u64, usize),
    flags: Flags,
) -> Result<(), BlockingError<SendError>> {
    let open = start(endpoint, live, (room, len), Posted::Waited, flags)?;
    wait_for_end(endpoint, open)
}

fn start(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    (room, len): (u64, usize),
    posted: Posted,
    flags: Flags,
) -> Result<Option<&'static Slot>, SendError> {
    endpoint.with(|core, transport| {
        let held = core.rooms().get(room).ok_or(SendError::NoRoom)?;
        let connection = open_for(live(), len, flags)?;
        if !held.is_for(connection) {
            return Err(SendError::NoRoom);
        }
        if len > held.len {
            return Err(SendError::TooLong);
        }
        let sent = match &held.origin {
            Origin::Transport(name) => transport.commit(core, connection, (*name, len), posted)?,
            Origin::Endpoint(bytes) => {
                let memory = cci_mem::memory::Memory::of_bytes(bytes);
                let bytes = memory.source(len).ok_or(SendError::TooLong)?;
                transport.send(core, connection, Message::One(bytes), posted)?
            }
        };
        core.rooms().remove(room);
        Ok(sent)
    })?
}

/// Gives a room back without a message.
///
/// # Errors
///
/// There is none with this number, or the endpoint cannot be used here.
pub fn cancel(endpoint: &Endpoint, room: u64) -> Result<(), SendError> {
    let cancelled: Result<Result<(), SendError>, Unusable> = endpoint.with(|core, transport| {
        let held = core.rooms().remove(room).ok_or(SendError::NoRoom)?;
        if let Origin::Transport(name) = held.origin {
            transport.cancel(core, name);
        }
        Ok(())
    });
    cancelled?
}
