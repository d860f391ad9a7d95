//! Messages up to the connection's maximum.

use super::ends::{posted, wait_for_end};
use crate::errors::BlockingError;
use cci_proto::{Flags, OptionError, SendError};
use cci_transport::{Connection, ConnectionState, Endpoint, Message, Posted, Slot};

/// Sends a message. `flags`: SILENT, NO_COPY, or none.
///
/// # Errors
///
/// Refused: nothing was sent.
#[inline]
pub fn send(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    message: Message<'_>,
    context: u64,
    flags: Flags,
) -> Result<(), SendError> {
    if flags.are_plain()
        && let Ok(entered) = endpoint.enter_at_once()
        && let Some(connection) = live().filter(|connection| connection.takes(message.len()))
    {
        return match message {
            Message::One(bytes) => entered.post(connection, bytes, context, flags),
            Message::Many(..) => {
                check_flags(connection, flags)?;
                entered.post_gathered(connection, message, posted(flags, context))
            }
        };
    }
    send_any(endpoint, live, message, posted(flags, context), flags).map(drop)
}

/// Sends a message and waits until it is sent. `flags`: what else is set.
///
/// # Errors
///
/// Refused: nothing was sent. Or failed: it may have arrived.
pub fn send_blocking(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    message: Message<'_>,
    flags: Flags,
) -> Result<(), BlockingError<SendError>> {
    let open = send_any(endpoint, live, message, Posted::Waited, flags)?;
    wait_for_end(endpoint, open)
}

/// Sets send buffers aside for answers.
///
/// # Errors
///
/// So many leave none for other sends, or the endpoint cannot be used here.
pub fn set_answer_buffers(endpoint: &Endpoint, count: u32) -> Result<(), OptionError> {
    endpoint.with(|core, transport| {
        core.set_answer_count(usize::try_from(count).unwrap_or(usize::MAX))?;
        transport.answers_reserved(core);
        Ok(())
    })?
}

/// Sends a message with what the endpoint has set aside for answers. `flags`: SILENT, NO_COPY, or
/// none.
///
/// # Errors
///
/// As [`send`].
pub fn send_answer(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    message: Message<'_>,
    context: u64,
    flags: Flags,
) -> Result<(), SendError> {
    let posted = posted(flags, context);
    endpoint.with(|core, transport| {
        let connection = open_for(live(), message.len(), flags)?;
        transport.answer(core, connection, message, posted).map(drop)
    })?
}

/// Apart from the way of most messages, which needs fewer registers without it.
#[inline(never)]
fn send_any(
    endpoint: &Endpoint,
    live: impl Fn() -> Option<&'static Connection>,
    message: Message<'_>,
    posted: Posted,
    flags: Flags,
) -> Result<Option<&'static Slot>, SendError> {
    endpoint.with(|core, transport| {
        let connection = open_for(live(), message.len(), flags)?;
        transport.send(core, connection, message, posted)
    })?
}

/// The connection, if it takes such a message.
#[inline(always)]
pub(super) fn open_for(
    live: Option<&'static Connection>,
    len: usize,
    flags: Flags,
) -> Result<&'static Connection, SendError> {
    let connection = live.ok_or(SendError::Disconnected)?;
    if !connection.takes(len) {
        let is_open = connection.state() == ConnectionState::Open;
        return Err(if is_open { SendError::TooLong } else { SendError::Disconnected });
    }
    check_flags(connection, flags)?;
    Ok(connection)
}

/// Refuses flags that this connection does not know.
#[inline(always)]
pub(super) fn check_flags(connection: &Connection, flags: Flags) -> Result<(), SendError> {
    let is_ordered = connection.attribute() == cci_proto::Attribute::ReliableOrdered;
    if flags.has(Flags::NO_COPY | Flags::SILENT) && !is_ordered { Err(SendError::BadFlags) } else { Ok(()) }
}
