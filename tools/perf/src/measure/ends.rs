//! What both ends of a run have: memory, and the loops chosen by the session.

use super::driver::{Asking, Driver, DriverError, Transfer};
use super::loops;
use super::loops::{Act, Lane, WINDOW, ping, pong, sink};
use crate::probe::buffer::Buffer;
use cci::{Attribute, Memory, RmaHandle, SharedMemory};
use cci_mem::meminfo;
use cci_report::names::{AttributeName, MemoryOrigin, Operation, Target};
use cci_report::session::Session;
use cci_report::sizes::show_size;
use cci_report::{UserError, while_doing};

/// Contexts, and payloads of connection requests, of the two connections of a run.
pub(crate) const CONTROL: u64 = 1;
/// As [`CONTROL`], for what is measured.
pub(crate) const OPERATIONS: u64 = 2;

/// The payload of the request for the connection with this context.
pub(crate) fn payload_of(context: u64) -> &'static [u8] {
    if context == CONTROL { b"control" } else { b"operations" }
}

/// The context of a connection request with this payload.
pub(crate) fn context_of(asking: &Asking<'_>) -> u64 {
    match asking.payload {
        b"control" => CONTROL,
        b"operations" => OPERATIONS,
        _ => 0,
    }
}

/// As the library names it.
pub fn attribute(name: AttributeName) -> Attribute {
    match name {
        AttributeName::Ro => Attribute::ReliableOrdered,
        AttributeName::Ru => Attribute::ReliableUnordered,
        AttributeName::Uu => Attribute::Unreliable,
    }
}

/// The part of the memory which is free that a run may take: a stranger may ask for it.
const SHARE: u64 = 4;

/// Refuses transfers for which this host has not enough memory to spare.
pub(crate) fn check_room(largest: u64) -> Result<(), UserError> {
    // All, where the kernel does not say.
    let free = meminfo::available().unwrap_or(u64::MAX);
    if largest > free / SHARE {
        return Err(UserError(format!(
            "transfers of {} need more than a quarter of the memory that the server's host has free ({}): measure \
             smaller ones",
            show_size(largest),
            show_size(free >> 20 << 20)
        )));
    }
    Ok(())
}

/// Memory for RMA. Outlives its registration: an end drops its endpoint first.
pub(crate) enum Area {
    Library(SharedMemory),
    Any(Buffer),
}

impl Area {
    /// Memory of this origin and size, every page of it touched.
    pub(crate) fn new(origin: MemoryOrigin, len: u64) -> Result<Self, UserError> {
        let len = usize::try_from(len.max(1)).map_err(while_doing("RMA memory is too large"))?;
        match origin {
            MemoryOrigin::Library => {
                let memory = SharedMemory::new(len).map_err(while_doing("no memory of the library for RMA"))?;
                let page = [0x5a_u8; 4096];
                for offset in (0..len).step_by(page.len()) {
                    memory.write(offset, &page[..page.len().min(len - offset)]);
                }
                Ok(Self::Library(memory))
            }
            MemoryOrigin::Any => Buffer::new(len).map(Self::Any).map_err(while_doing("no memory for RMA")),
        }
    }

    /// The range, to be registered.
    pub(crate) fn memory(&self) -> Memory {
        match self {
            Self::Library(memory) => memory.memory(),
            Self::Any(memory) => memory.memory(),
        }
    }

    /// Where another process finds it.
    pub(crate) fn address(&self) -> u64 {
        match self {
            Self::Library(memory) => memory.memory().start() as u64,
            Self::Any(memory) => memory.address(),
        }
    }
}

/// The handles of both memories, where the operation is an RMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handles {
    pub(crate) local: RmaHandle,
    pub(crate) remote: RmaHandle,
}

/// Whether the server takes no part in the operations of blocks: it has RMA done to its memory.
pub(crate) fn is_passive(session: &Session) -> bool {
    session.is_rma() && !session.measurement.is_exchange() && !session.bidirectional
}

/// Whether the server hears of no block: where it computes it is told of each.
pub(crate) fn hears_nothing(session: &Session) -> bool {
    is_passive(session) && session.target != Target::Computing
}

/// The operation of a session at one size.
pub(crate) fn act<'a>(
    session: &Session,
    message: &'a [u8],
    handles: Option<&'a Handles>,
    size: u64,
    tell: bool,
) -> Act<'a> {
    match handles {
        None => Act::Message(message),
        Some(handles) => Act::Transfer(Transfer {
            local: &handles.local,
            remote: &handles.remote,
            len: size,
            read: session.operation == Operation::Read,
            message: tell,
        }),
    }
}

/// The end of a ping-pong that begins, or the one that answers; how many SEND events are still to
/// come.
pub(crate) fn exchange<P: Driver>(
    lane: &Lane<'_, P>,
    act: &Act<'_>,
    count: u64,
    touch: bool,
    begins: bool,
) -> Result<u64, DriverError> {
    match (begins, touch) {
        (true, false) => ping::<P, false>(lane, act, count),
        (true, true) => ping::<P, true>(lane, act, count),
        (false, false) => pong::<P, false>(lane, act, count),
        (false, true) => pong::<P, true>(lane, act, count),
    }
}

/// Either end of a stream that goes both ways; how many SEND events are still to come. Each end
/// knows by what it receives that the other has finished: by as many messages, or by the one that
/// follows the last RMA.
pub(crate) fn duplex<P: Driver>(
    lane: &Lane<'_, P>,
    session: &Session,
    message: &[u8],
    handles: Option<&Handles>,
    size: u64,
    count: u64,
) -> Result<u64, DriverError> {
    let [plain, last] = [false, true].map(|tell| act(session, message, handles, size, tell));
    let (expected, window) = match handles {
        None => (count, session.window),
        Some(_) => (1, Some(session.window.unwrap_or(WINDOW))),
    };
    match session.touch {
        false => loops::duplex::<P, false>(lane, [&plain, &last], count, expected, window),
        true => loops::duplex::<P, true>(lane, [&plain, &last], count, expected, window),
    }
}

/// The end of a stream that receives.
pub(crate) fn collect<P: Driver>(
    lane: &Lane<'_, P>,
    count: u64,
    marker: Option<usize>,
    touch: bool,
) -> Result<u64, DriverError> {
    if touch { sink::<P, true>(lane, count, marker) } else { sink::<P, false>(lane, count, marker) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(payload: &[u8]) -> Asking<'_> {
        Asking { payload, origin: &|| cci_admission::Origin::Here }
    }

    #[test]
    fn a_request_is_known_by_its_payload() {
        for context in [CONTROL, OPERATIONS] {
            assert_eq!(context_of(&asking(payload_of(context))), context);
        }
        assert_eq!(context_of(&asking(b"")), 0);
    }

    #[test]
    fn memory_of_both_origins_has_the_size_of_the_largest_transfer() {
        for origin in [MemoryOrigin::Library, MemoryOrigin::Any] {
            let area = Area::new(origin, 10_000).unwrap();
            assert_eq!(area.memory().len(), 10_000, "{origin:?}");
            assert_ne!(area.address(), 0, "{origin:?}");
        }
    }
}
