//! Room for messages that a program writes before it sends them.

use super::ends::{posted, wait_for_end};
use super::sends::open_for;
use crate::errors::BlockingError;
use cci_proto::{Flags, SendError, Unusable};
use cci_transport::{Connection, Core, Endpoint, Held, Message, Origin, Posted, Room, Slot, Transport};

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
        let held = core.rooms().take(room).ok_or(SendError::NoRoom)?;
        let sent = send(core, transport, live(), &held, len, posted, flags);
        match sent {
            Ok(_) => core.rooms().free(room, held),
            Err(_) => core.rooms().put_back(room, held),
        }
        sent
    })?
}

/// Sends the first `len` bytes of a room that is taken out meanwhile.
fn send(
    core: &mut Core,
    transport: &mut dyn Transport,
    live: Option<&'static Connection>,
    held: &Held,
    len: usize,
    posted: Posted,
    flags: Flags,
) -> Result<Option<&'static Slot>, SendError> {
    let connection = open_for(live, len, flags)?;
    if !held.is_for(connection) {
        return Err(SendError::NoRoom);
    }
    if len > held.len {
        return Err(SendError::TooLong);
    }
    let memory = match &held.origin {
        Origin::Transport(name) => return transport.commit(core, connection, (*name, len), posted),
        Origin::Endpoint(memory) => memory,
    };
    let bytes = memory.source(len).ok_or(SendError::TooLong)?;
    match posted {
        Posted::Event(context) | Posted::Silent(context) if flags.are_plain() => {
            transport.post(bytes, context, connection, core, flags).map(|()| None)
        }
        _ => transport.send(core, connection, Message::One(bytes), posted),
    }
}

/// Gives a room back without a message.
///
/// # Errors
///
/// There is none with this number, or the endpoint cannot be used here.
pub fn cancel(endpoint: &Endpoint, room: u64) -> Result<(), SendError> {
    let cancelled: Result<Result<(), SendError>, Unusable> = endpoint.with(|core, transport| {
        let held = core.rooms().take(room).ok_or(SendError::NoRoom)?;
        if let Origin::Transport(name) = held.origin {
            transport.cancel(core, name);
        }
        core.rooms().free(room, held);
        Ok(())
    });
    cancelled?
}
