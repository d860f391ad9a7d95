//! What bindings and tools need, and programs do not: the operations on cells of the slabs, without
//! handle objects and with the same checks. No part of the API: it changes with the library.
//!
//! A cell leads to everything behind the endpoint's lock. So it is reached through `unsafe`
//! functions only ([`crate::__binding::cell`], [`crate::__binding::into_cell`]), whose callers
//! promise this: no event that an [`crate::Event`] holds is given back through a slot, and no
//! endpoint is closed through its cell, while Rust code may still read the payload of one of its
//! events.

mod batch;
mod connections;
mod events;
mod large;
mod options;
mod registrations;
mod requests;
mod rooms;
mod sleeping;
mod waiting;

use crate::errors::{BlockingError, CloseError};
use cci_proto::{Atomic, OptionError, RmaError, SendError, Unusable};
use cci_transport::{Connection, Endpoint, Posted, Slot, keep_copies};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

pub use cci_mem::arena::{allocate, free};
pub use cci_mem::barrier::prepare;
pub use cci_mem::cancellation::Uncancelled;
pub use cci_mem::fork::PerProcess;
pub use cci_mem::guarded::{Guard, Guarded, Sleepers, Threading};
pub use cci_mem::slab::Slab;
pub use cci_mem::source::{Source, Sources};
pub use cci_mem::sync::{AtomicU64, Ordering};
pub use cci_proto::{Access, Flags};
pub use cci_transport::{
    Connect, Connection as ConnectionCell, ConnectionState, Endpoint as EndpointCell, Entered, Imported, Message,
    Outside, Popped, Rma, Slot as EventCell, Timeout,
};

pub use batch::poll;
pub use connections::{connect, disconnect, pause, report, resume};
pub use events::{get_event, give_back, put_back, refill, return_event};
pub use large::{send_large, send_large_blocking, set_large_limit};
pub use options::{OptionValue, connection_option, endpoint_option, set_connection_option, set_endpoint_option};
pub use registrations::{ALL, NotDeregistered, Served, deregister, import, register, rights_are_open};
pub(crate) use registrations::{deregister_owned, drop_owned, register_owned, retire_dropped};
pub use requests::{accept, accept_on, peer, reason, reject};
pub use rooms::{cancel, commit, commit_blocking, reserve};
pub use sleeping::missed_wakeups;
pub use waiting::{begin_wait, end_wait, wait_any, waiting, wake};

/// `Slot::mark` of a request that was answered.
pub const ANSWERED: u32 = 1;

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
fn open_for(live: Option<&'static Connection>, len: usize, flags: Flags) -> Result<&'static Connection, SendError> {
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
fn check_flags(connection: &Connection, flags: Flags) -> Result<(), SendError> {
    let is_ordered = connection.attribute() == cci_proto::Attribute::ReliableOrdered;
    if flags.has(Flags::NO_COPY | Flags::SILENT) && !is_ordered { Err(SendError::BadFlags) } else { Ok(()) }
}

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

fn posted(flags: Flags, context: u64) -> Posted {
    if flags.has(Flags::SILENT) { Posted::Silent(context) } else { Posted::Event(context) }
}

/// Waits for the end of an operation of [`Posted::Waited`], if it is still open.
fn wait_for_end<E: From<Unusable>>(endpoint: &Endpoint, open: Option<&'static Slot>) -> Result<(), BlockingError<E>> {
    let Some(slot) = open else { return Ok(()) };
    sleeping::wait(endpoint, slot).map_err(|why| BlockingError::Refused(why.into()))?.map_err(BlockingError::Failed)
}

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

/// Arms the endpoint's handle now, if it was handed out: ends adaptive spin and spinning.
///
/// # Errors
///
/// The endpoint cannot be used here.
pub fn arm(endpoint: &Endpoint) -> Result<(), Unusable> {
    endpoint.with(|core, transport| {
        if core.is_handle_in_use() {
            transport.arm(core);
        }
    })
}

/// Makes progress, and arms a descriptor that is readable when a call could move something; events
/// that wait do not count. None: there is something to do already, or no descriptor is left.
///
/// # Errors
///
/// The endpoint cannot be used here.
#[cfg(feature = "tokio")]
pub(crate) fn progress_and_arm(endpoint: &Endpoint) -> Result<Option<std::sync::Arc<std::os::fd::OwnedFd>>, Unusable> {
    endpoint.with(|core, transport| {
        transport.progress(core);
        transport.arm_in_call(core)
    })
}

/// The endpoint's handle itself, for a binding: open as long as the endpoint. From now on the
/// endpoint arms it.
///
/// # Errors
///
/// The endpoint cannot be used here.
pub fn handle(endpoint: &Endpoint) -> Result<RawFd, Unusable> {
    endpoint.with(|core, transport| {
        core.set_handle_in_use();
        transport.handle().as_raw_fd()
    })
}
