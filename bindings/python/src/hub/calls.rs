//! What a hub is asked for: connections, messages, RMA.

use super::inner::Hub;
use super::state::{Keep, Operation, POSTED};
use crate::arguments;
use crate::errors::OrRaise;
use crate::export::Export;
use crate::registration::Registration;
use cci::{Atomic, Connection, Notify, Rights, Rma, RmaError, SendError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The operation of a call that found no room: nothing has begun, and the call is repeated later.
pub(super) const NO_ROOM: u64 = 0;

/// How the end of a message is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Awaited,
    Posted,
}

impl Hub {
    /// Begins to send; the operation, or [`NO_ROOM`].
    #[allow(unsafe_code, reason = "memory is sent by its address")]
    pub(super) fn begin_send(&self, py: Python<'_>, peer: u64, data: &Bound<'_, PyAny>, end: End) -> PyResult<u64> {
        let connection = self.connection(py, peer)?;
        let endpoint = self.opened.get(py)?;
        let export = match data.cast::<PyBytes>() {
            Ok(bytes) if is_short(connection, bytes.as_bytes().len() as u64) => {
                let operation = self.operation(peer, Keep::Nothing, end);
                let sent = endpoint.send(connection, bytes.as_bytes(), notify(operation, end));
                return self.begun(py, operation, sent);
            }
            _ => Export::of(data, "data", false)?,
        };
        // SAFETY: the export lives until the operation has ended: in `Keep`, or, for a short
        // message, which is copied, until the call returns.
        let memory = unsafe { export.memory() };
        if is_short(connection, export.len()) {
            let operation = self.operation(peer, Keep::Nothing, end);
            let sent = endpoint.send_large(connection, &memory, notify(operation, end));
            drop(export);
            return self.begun(py, operation, sent);
        }
        // Somebody must free the memory at the end, so that the end is told in any case.
        let keep = Keep::Bytes { _export: export };
        let operation = {
            let mut state = self.state();
            let number = state.number();
            let open = Operation { keep, peer, outcome: None, is_awaited: end == End::Awaited };
            state.operations.insert(number, open);
            state.resume(&endpoint, peer);
            number
        };
        let sent = endpoint.send_large(connection, &memory, operation);
        self.begun(py, operation, sent)
    }

    pub(super) fn number(&self) -> u64 {
        self.state().number()
    }

    /// The number of an operation that begins; [`POSTED`] for those that nobody waits for.
    fn operation(&self, peer: u64, keep: Keep, end: End) -> u64 {
        if end == End::Posted {
            return POSTED;
        }
        let mut state = self.state();
        let number = state.number();
        state.operations.insert(number, Operation { keep, peer, outcome: None, is_awaited: true });
        number
    }

    /// What a call that sends returns.
    fn begun(&self, py: Python<'_>, operation: u64, sent: Result<(), SendError>) -> PyResult<u64> {
        match sent {
            // A posted one has no number of its own: any but that of no room.
            Ok(()) => Ok(operation.max(1)),
            Err(why) => {
                let refused = self.state().operations.remove(&operation);
                drop(refused);
                if why == SendError::NoBuffers { Ok(NO_ROOM) } else { Err(why).or_raise(py) }
            }
        }
    }

    /// Begins an RMA with what keeps its local memory.
    pub(super) fn begin_rma(
        &self,
        py: Python<'_>,
        peer: u64,
        keep: Keep,
        begin: impl FnOnce(&cci::Endpoint, Connection, u64) -> Result<(), RmaError>,
    ) -> PyResult<u64> {
        let connection = self.connection(py, peer)?;
        let endpoint = self.opened.get(py)?;
        let operation = self.operation(peer, keep, End::Awaited);
        self.state().resume(&endpoint, peer);
        match begin(&endpoint, connection, operation) {
            Ok(()) => Ok(operation),
            Err(why) => {
                let refused = self.state().operations.remove(&operation);
                drop(refused);
                if why == RmaError::NoBuffers { Ok(NO_ROOM) } else { Err(why).or_raise(py) }
            }
        }
    }

    /// Begins an atomic operation on a word of the peer.
    pub(super) fn begin_atomic(
        &self,
        py: Python<'_>,
        peer: u64,
        remote: &[u8],
        offset: i64,
        atomic: Atomic,
    ) -> PyResult<u64> {
        let remote = arguments::handle(remote)?;
        let offset = arguments::bytes("offset", offset)?;
        let word = self.opened.get(py)?.register(vec![0; 8], Rights::NONE).or_raise(py)?;
        let local = *word.handle();
        self.begin_rma(py, peer, Keep::Word(word), |endpoint, connection, operation| {
            let rma = Rma::new(&local, &remote, 8).remote_offset(offset).atomic(atomic);
            endpoint.atomic(connection, &rma, operation)
        })
    }
}

fn is_short(connection: Connection, len: u64) -> bool {
    connection.max_send_size().is_none_or(|most| len <= u64::from(most))
}

fn notify(operation: u64, end: End) -> Notify {
    match end {
        End::Awaited => Notify::Always(operation),
        End::Posted => Notify::OnFailure(operation),
    }
}

/// Registers memory for peers with these rights.
pub(crate) fn register(
    py: Python<'_>,
    endpoint: &cci::Endpoint,
    memory: &Bound<'_, PyAny>,
    read: bool,
    write: bool,
) -> PyResult<Registration> {
    let rights = match (read, write) {
        (true, true) => Rights::READ_WRITE,
        (true, false) => Rights::READ,
        (false, true) => Rights::WRITE,
        (false, false) => Rights::NONE,
    };
    Registration::new(py, endpoint, memory, rights)
}

/// The places of an RMA.
pub(crate) struct Span {
    remote: cci::RmaHandle,
    offset: u64,
    local_offset: u64,
    len: u64,
}

impl Span {
    pub(crate) fn new(
        local: &Registration,
        remote: &[u8],
        offset: i64,
        local_offset: i64,
        len: Option<i64>,
    ) -> PyResult<Self> {
        let local_offset = arguments::bytes("local_offset", local_offset)?;
        let len = match len {
            Some(len) => arguments::bytes("length", len)?,
            None => local.size().saturating_sub(local_offset),
        };
        if local_offset.checked_add(len).is_none_or(|end| end > local.size()) {
            let size = local.size();
            return Err(PyValueError::new_err(format!(
                "local_offset {local_offset} and length {len} lie outside of the {size} bytes of local; give less"
            )));
        }
        let offset = arguments::bytes("offset", offset)?;
        Ok(Self { remote: arguments::handle(remote)?, offset, local_offset, len })
    }

    pub(crate) fn rma<'a>(&'a self, local: &'a cci::RmaHandle) -> Rma<'a> {
        Rma::new(local, &self.remote, self.len).remote_offset(self.offset).local_offset(self.local_offset)
    }
}
