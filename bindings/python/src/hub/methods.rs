//! The methods of a hub, as the Python half of the package calls them.

use super::calls::{End, NO_ROOM, Span, register};
use super::inner::{BATCH, Hub};
use super::serving;
use super::state::{Changes, Keep, Operation};
use crate::arguments::Seconds;
use crate::devices::{Options, open_at, open_for};
use crate::errors::{OrRaise, error};
use crate::message::Message;
use crate::registration::Registration;
use crate::{arguments, job};
use cci::{Atomic, Connect};
use pyo3::prelude::*;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

#[pymethods]
impl Hub {
    /// Opens an endpoint: at an address, for a URI, or of a job. `waits`: for calls that wait;
    /// those of this thread serve it too while they wait for others.
    #[new]
    #[pyo3(signature = (address=None, *, uri=None, of_job=None, recv_buffers=None, send_buffers=None,
                        max_message=1 << 30, keepalive=None, send_timeout=None, spin=None, waits=false))]
    #[expect(clippy::too_many_arguments, reason = "one for each keyword")]
    fn new(
        py: Python<'_>,
        address: Option<&Bound<'_, PyAny>>,
        uri: Option<&str>,
        of_job: Option<&job::Job>,
        recv_buffers: Option<i64>,
        send_buffers: Option<i64>,
        max_message: i64,
        keepalive: Seconds<'_, '_>,
        send_timeout: Seconds<'_, '_>,
        spin: Seconds<'_, '_>,
        waits: bool,
    ) -> PyResult<Self> {
        let options = Options::new(recv_buffers, send_buffers, max_message, keepalive, send_timeout)?;
        let spin = arguments::seconds("spin", spin)?;
        let endpoint = match (of_job, uri) {
            (Some(job), _) => job.open(py, &options)?,
            (None, Some(uri)) => open_for(py, uri, &options)?,
            (None, None) => open_at(py, arguments::address(address)?, &options)?,
        };
        let hub = Self::over(endpoint, uri.is_none(), spin)?;
        if waits {
            serving::enter(&hub.0);
        }
        Ok(hub)
    }

    #[getter]
    fn uri(&self) -> &str {
        &self.opened.uri
    }

    #[getter]
    fn closed(&self) -> bool {
        self.opened.share().is_none()
    }

    /// The descriptor that is readable when `progress` should be called.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        Ok(self.opened.get(py)?.as_fd().as_raw_fd())
    }

    /// Closes the endpoint with all its connections, and ends all waits.
    fn close(&self, py: Python<'_>) {
        self.state().forget_all();
        self.opened.close(py);
        self.sleepers.wake();
    }

    /// Takes events that have come. Returns the numbers of connections and operations that they
    /// changed; 0 for a connection that was accepted.
    fn progress(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let endpoint = self.opened.get(py)?;
        let mut changes = Changes::default();
        // No further look: an acknowledgement is to wait for the answer that the program may give,
        // and the descriptor stays readable until a look finds nothing.
        let found = {
            let mut state = self.state();
            endpoint.poll(BATCH, |event| state.handle(&endpoint, event, &mut changes))
        };
        self.looked(py, &endpoint, found.map(|number| number > 0), &mut changes)?;
        if !changes.keys.is_empty() {
            self.sleepers.wake();
        }
        Ok(std::mem::take(&mut changes.keys))
    }

    /// The next message of a connection, or None now. Raises once the connection is lost. With
    /// `spin` it looks for so many seconds, which blocks the thread, or until something has changed
    /// for others; `changed` tells what.
    #[pyo3(signature = (peer, spin=0.0))]
    fn try_recv(&self, py: Python<'_>, peer: u64, spin: f64) -> PyResult<Option<Message>> {
        let message = self.take_message(py, peer)?;
        if message.is_some() || spin <= 0.0 {
            return Ok(message);
        }
        // Checked where the program has given it.
        let time = Duration::try_from_secs_f64(spin).unwrap_or_default();
        let endpoint = self.opened.get(py)?;
        let mut changes = Changes::default();
        if !self.spin(py, &endpoint, time, &mut changes) {
            return Ok(None);
        }
        self.sleepers.wake();
        changes.keys.retain(|key| *key != peer);
        if changes.keys.is_empty() {
            return self.take_message(py, peer);
        }
        self.state().untold.append(&mut changes.keys);
        Ok(None)
    }

    /// What `try_recv` has changed for others than its caller, as `progress` returns it.
    fn changed(&self) -> Vec<u64> {
        std::mem::take(&mut self.state().untold)
    }

    /// Waits for the next message of a connection; None: the time is over.
    fn recv(&self, py: Python<'_>, peer: u64, timeout: Seconds<'_, '_>) -> PyResult<Option<Message>> {
        let limit = arguments::seconds("timeout", timeout)?;
        self.wait(py, limit, || self.take_message(py, peer))
    }

    /// The number of an accepted connection, or None now.
    fn try_accept(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.opened.get(py)?;
        Ok(self.state().accepted.pop_front())
    }

    /// Waits for an accepted connection; None: the time is over.
    fn accept(&self, py: Python<'_>, timeout: Seconds<'_, '_>) -> PyResult<Option<u64>> {
        let limit = arguments::seconds("timeout", timeout)?;
        self.wait(py, limit, || self.try_accept(py))
    }

    /// Asks for a connection. Returns its number, which is also that of the operation.
    fn connect(
        &self,
        py: Python<'_>,
        uri: &Bound<'_, PyAny>,
        attribute: &str,
        payload: &[u8],
        timeout: Seconds<'_, '_>,
    ) -> PyResult<u64> {
        let attribute = arguments::attribute(attribute)?;
        let timeout = arguments::seconds("timeout", timeout)?;
        let uri = arguments::checked_uri(uri)?;
        let endpoint = self.opened.get(py)?;
        let peer = self.number();
        {
            let mut state = self.state();
            state.connecting(peer);
            state.resume_all(&endpoint);
        }
        let connect = Connect::to(uri.to_str()?).attribute(attribute).payload(payload).timeout(timeout).context(peer);
        endpoint.connect(&connect).or_raise(py).inspect_err(|_| {
            let mut state = self.state();
            state.operations.remove(&peer);
            state.peers.remove(&peer);
        })?;
        Ok(peer)
    }

    /// Closes a connection. Its unread messages are gone; its operations end with an error.
    fn disconnect(&self, py: Python<'_>, peer: u64) {
        let connection = self.state().forget(peer);
        if let (Some(connection), Some(endpoint)) = (connection, self.opened.share()) {
            // It may have ended by itself.
            let _ = py.detach(|| endpoint.disconnect(connection));
        }
        self.sleepers.wake();
    }

    /// How an operation has ended: None when it has not, True, or the old value of an atomic one.
    fn ended<'py>(&self, py: Python<'py>, operation: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let ended = {
            let mut state = self.state();
            match state.operations.get(&operation) {
                Some(open) if open.outcome.is_none() => return Ok(None),
                Some(_) => state.operations.remove(&operation),
                None => None,
            }
        };
        let Some(Operation { keep, outcome, .. }) = ended else { return Err(self.unknown(py)) };
        if let Some(Err((status, sentence))) = outcome {
            return Err(error(py, status, &sentence));
        }
        if let Keep::Word(word) = keep {
            let bytes = word.to_vec(0, 8).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
            return Ok(Some(u64::from_ne_bytes(bytes).into_pyobject(py)?.into_any()));
        }
        Ok(Some(true.into_pyobject(py)?.to_owned().into_any()))
    }

    /// Waits for the end of an operation: True or the old value; None: the time is over.
    fn wait_end<'py>(
        &self,
        py: Python<'py>,
        operation: u64,
        timeout: Seconds<'_, '_>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let limit = arguments::seconds("timeout", timeout)?;
        self.wait(py, limit, || self.ended(py, operation))
    }

    /// Repeats a call that begins an operation until there is room. Returns the operation; 0: the
    /// time is over.
    fn wait_begin(&self, py: Python<'_>, begin: &Bound<'_, PyAny>, timeout: Seconds<'_, '_>) -> PyResult<u64> {
        let limit = arguments::seconds("timeout", timeout)?;
        let begun = self.wait(py, limit, || {
            let operation: u64 = begin.call0()?.extract()?;
            Ok(Some(operation).filter(|operation| *operation != NO_ROOM))
        })?;
        Ok(begun.unwrap_or(NO_ROOM))
    }

    /// Nobody will ask for the end of this operation.
    fn forget(&self, operation: u64) {
        let mut state = self.state();
        let Some(open) = state.operations.get_mut(&operation) else { return };
        open.is_awaited = false;
        let ended = if open.outcome.is_some() { state.operations.remove(&operation) } else { None };
        drop(state);
        drop(ended);
    }

    /// Begins to send a message. Returns the operation; 0: no room now.
    fn send(&self, py: Python<'_>, peer: u64, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.begin_send(py, peer, data, End::Awaited)
    }

    /// Sends a message whose end is told only if it fails, by a later call. False: no room now.
    fn post(&self, py: Python<'_>, peer: u64, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.begin_send(py, peer, data, End::Posted)? != NO_ROOM)
    }

    /// Sends a message and waits until it is delivered. False: the time is over.
    fn send_wait(
        &self,
        py: Python<'_>,
        peer: u64,
        data: &Bound<'_, PyAny>,
        timeout: Seconds<'_, '_>,
    ) -> PyResult<bool> {
        let limit = arguments::seconds("timeout", timeout)?;
        let mut operation = NO_ROOM;
        let ended = self.wait(py, limit, || {
            if operation == NO_ROOM {
                operation = self.begin_send(py, peer, data, End::Awaited)?;
                // The peer answers before its acknowledgement is there to be seen.
                return Ok(None);
            }
            self.ended(py, operation)
        });
        if !matches!(ended, Ok(Some(_))) {
            self.forget(operation);
        }
        Ok(ended?.is_some())
    }

    /// Sends a message as `post`, and waits for room. False: the time is over.
    fn post_wait(
        &self,
        py: Python<'_>,
        peer: u64,
        data: &Bound<'_, PyAny>,
        timeout: Seconds<'_, '_>,
    ) -> PyResult<bool> {
        let limit = arguments::number("timeout", timeout)?;
        if self.post(py, peer, data)? {
            return Ok(true);
        }
        let limit = limit.and_then(arguments::duration);
        let sent = self.wait(py, limit, || Ok(self.post(py, peer, data)?.then_some(())))?;
        Ok(sent.is_some())
    }

    /// Registers memory of a Python object.
    fn register(&self, py: Python<'_>, memory: &Bound<'_, PyAny>, read: bool, write: bool) -> PyResult<Registration> {
        register(py, &*self.opened.get(py)?, memory, read, write)
    }

    /// Begins an RMA of `len` bytes between a registration and the peer's memory. Returns the
    /// operation; 0: no room now.
    #[expect(clippy::too_many_arguments, reason = "what an RMA consists of")]
    fn rma(
        &self,
        py: Python<'_>,
        peer: u64,
        is_write: bool,
        local: &Bound<'_, Registration>,
        remote: &[u8],
        offset: i64,
        local_offset: i64,
        len: Option<i64>,
    ) -> PyResult<u64> {
        let span = Span::new(local.get(), remote, offset, local_offset, len)?;
        local.get().check_direction(is_write)?;
        let keep = Keep::Local { _registration: local.clone().unbind() };
        let name = *local.get().name();
        self.begin_rma(py, peer, keep, |endpoint, connection, operation| {
            let rma = span.rma(&name);
            match is_write {
                true => endpoint.write(connection, &rma, operation),
                false => endpoint.read(connection, &rma, operation),
            }
        })
    }

    /// Begins to add to a word of 8 bytes of the peer. Returns the operation; 0: no room now.
    fn fetch_add(&self, py: Python<'_>, peer: u64, remote: &[u8], value: u64, offset: i64) -> PyResult<u64> {
        self.begin_atomic(py, peer, remote, offset, Atomic::FetchAdd(value))
    }

    /// Begins to replace a word of 8 bytes of the peer. Returns the operation; 0: no room now.
    fn compare_swap(
        &self,
        py: Python<'_>,
        peer: u64,
        remote: &[u8],
        expected: u64,
        desired: u64,
        offset: i64,
    ) -> PyResult<u64> {
        self.begin_atomic(py, peer, remote, offset, Atomic::CompareSwap { expected, desired })
    }

    /// What a connection is: its largest short message and its attribute; None once it has ended.
    fn about(&self, peer: u64) -> Option<(u32, &'static str)> {
        let connection = self.state().peers.get(&peer)?.connection?;
        Some((connection.max_send_size()?, connection.attribute()?.name()))
    }
}
