//! Endpoints as CCI has them.

use crate::arguments::{self, Seconds};
use crate::connection::RawConnection;
use crate::devices::{Options, open_at};
use crate::errors::{OrRaise, Refusal};
use crate::event::Event;
use crate::export::Export;
use crate::hub::{Span, register};
use crate::opened::Opened;
use crate::registration::Registration;
use crate::waiting::{Deadline, SPIN, Sleepers, spin};
use cci::{Atomic, Connect, DetachedEvent, Notify};
use pyo3::prelude::*;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An endpoint of CCI: all buffers, and one queue of events.
///
/// `Endpoint()` opens the default device for processes of this host; `Endpoint(":5000")` listens to
/// the network at port 5000; `Endpoint("sock://:5000")` does so by one transport. Calls never block
/// but `wait` and `close`. Any thread may call.
///
/// max_message: messages longer than `max_send_size` that peers may have under way, bytes.
#[pyclass(frozen, module = "cci", weakref)]
pub(crate) struct Endpoint {
    opened: Opened,
    sleepers: Sleepers,
    /// A message that the program did not get because a warning was raised in its place.
    kept: Mutex<Option<DetachedEvent>>,
}

impl Endpoint {
    /// What a call returns for an event. Warns of many held buffers before.
    fn taken(&self, py: Python<'_>, event: cci::Event<'_>, endpoint: &Arc<cci::Endpoint>) -> PyResult<Event> {
        let gauge = &self.opened.gauge;
        if event.received().is_some()
            && let Err(raised) = gauge.warn(py)
        {
            *self.kept() = Some(event.detach());
            return Err(raised);
        }
        Event::new(py, event, endpoint, gauge)
    }

    fn kept(&self) -> MutexGuard<'_, Option<DetachedEvent>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next event: one that was kept, or that the endpoint has.
    fn next<'e>(&self, py: Python<'_>, endpoint: &'e cci::Endpoint) -> PyResult<Option<cci::Event<'e>>> {
        if let Some(event) = self.kept().take().and_then(|event| event.attach(endpoint).ok()) {
            return Ok(Some(event));
        }
        endpoint.get_event().or_raise(py)
    }
}

fn notify(context: u64, silent: bool) -> Notify {
    if silent { Notify::OnFailure(context) } else { Notify::Always(context) }
}

#[pymethods]
impl Endpoint {
    #[new]
    #[pyo3(signature = (address=None, *, recv_buffers=None, send_buffers=None, max_message=0, keepalive=None,
                        send_timeout=None, disconnect_events=true))]
    #[expect(clippy::too_many_arguments, reason = "one for each keyword")]
    fn new(
        py: Python<'_>,
        address: Option<&Bound<'_, PyAny>>,
        recv_buffers: Option<i64>,
        send_buffers: Option<i64>,
        max_message: i64,
        keepalive: Seconds<'_, '_>,
        send_timeout: Seconds<'_, '_>,
        disconnect_events: bool,
    ) -> PyResult<Self> {
        let options = Options::new(recv_buffers, send_buffers, max_message, keepalive, send_timeout)?;
        let endpoint = open_at(py, arguments::address(address)?, &Options { disconnect_events, ..options })?;
        Ok(Self { opened: Opened::new(endpoint), sleepers: Sleepers::default(), kept: Mutex::new(None) })
    }

    /// What others connect to.
    #[getter]
    fn uri(&self) -> &str {
        &self.opened.uri
    }

    /// Whether it has been closed.
    #[getter]
    fn closed(&self) -> bool {
        self.opened.share().is_none()
    }

    /// The number of receive buffers.
    #[getter]
    fn recv_buffers(&self, py: Python<'_>) -> PyResult<u32> {
        self.opened.get(py)?.recv_buffers().or_raise(py)
    }

    /// The number of receive buffers that messages hold.
    #[getter]
    fn held(&self) -> u64 {
        self.opened.gauge.held()
    }

    /// The descriptor that is readable when `get_event` should be called: for select, poll, epoll
    /// and event loops. It may be readable without an event.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        Ok(self.opened.get(py)?.as_fd().as_raw_fd())
    }

    /// The next event, or None now. Makes progress, and never blocks.
    fn get_event(&self, py: Python<'_>) -> PyResult<Option<Event>> {
        let endpoint = self.opened.get(py)?;
        let event = self.next(py, &endpoint)?;
        event.map(|event| self.taken(py, event, &endpoint)).transpose()
    }

    /// The next event; None: the time, in seconds, is over. Looks for 50 us, then sleeps, without
    /// the interpreter. Ctrl-C ends it.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Seconds<'_, '_>) -> PyResult<Option<Event>> {
        let mut deadline = Deadline::new(arguments::seconds("timeout", timeout)?);
        let mut time = SPIN;
        loop {
            let endpoint = self.opened.get(py)?;
            let left = deadline.left();
            time = left.map_or(time, |left| left.min(time));
            let found = match self.next(py, &endpoint)? {
                Some(event) => Some(event),
                None => spin(py, &self.sleepers, time, || endpoint.get_event()).or_raise(py)?,
            };
            if let Some(event) = found {
                return self.taken(py, event, &endpoint).map(Some);
            }
            py.check_signals()?;
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            time = Duration::ZERO;
            let sleeper = self.sleepers.announce(py, &endpoint)?;
            // A close before the announcement woke nobody, and no event did.
            self.opened.get(py)?;
            if let Some(event) = self.next(py, &endpoint)? {
                return self.taken(py, event, &endpoint).map(Some);
            }
            py.detach(|| sleeper.sleep(deadline.left(), &[]));
            py.check_signals()?;
        }
    }

    /// Asks the endpoint at a URI, or `job:RANK`, for a connection. A "connect" event follows.
    #[pyo3(signature = (uri, *, attribute="RO", payload=None, context=0, timeout=None))]
    fn connect(
        &self,
        py: Python<'_>,
        uri: &Bound<'_, PyAny>,
        attribute: &str,
        payload: Option<&[u8]>,
        context: u64,
        timeout: Seconds<'_, '_>,
    ) -> PyResult<()> {
        let attribute = arguments::attribute(attribute)?;
        let timeout = arguments::seconds("timeout", timeout)?;
        let uri = arguments::checked_uri(uri)?;
        let connect = Connect::to(uri.to_str()?)
            .attribute(attribute)
            .payload(payload.unwrap_or_default())
            .context(context)
            .timeout(timeout);
        self.opened.get(py)?.connect(&connect).or_raise(py)
    }

    /// Closes a connection. Its open operations end with an error.
    fn disconnect(&self, py: Python<'_>, connection: &RawConnection) -> PyResult<()> {
        self.opened.get(py)?.disconnect(connection.0).or_raise(py)
    }

    /// Sends a message of at most `connection.max_send_size` bytes, which are copied. A "send"
    /// event with this context follows; with `silent` only if it fails.
    #[pyo3(signature = (connection, data, *, context=0, silent=false))]
    #[allow(unsafe_code, reason = "memory is sent by its address")]
    fn send(
        &self,
        py: Python<'_>,
        connection: &RawConnection,
        data: &Bound<'_, PyAny>,
        context: u64,
        silent: bool,
    ) -> PyResult<()> {
        let endpoint = self.opened.get(py)?;
        let export = Export::of(data, "data", false)?;
        if connection.0.max_send_size().is_some_and(|most| export.len() > u64::from(most)) {
            return Err(cci::SendError::TooLong.raise(py));
        }
        // SAFETY: a message of at most the maximum is copied before the call returns, and the
        // export lives until then.
        let memory = unsafe { export.memory() };
        endpoint.send_large(connection.0, &memory, notify(context, silent)).or_raise(py)
    }

    /// Registers memory of an object: anything with the buffer protocol, or DLPack for memory of
    /// the host. `read` and `write` are the rights of peers.
    #[pyo3(signature = (memory, *, read=true, write=true))]
    fn register(&self, py: Python<'_>, memory: &Bound<'_, PyAny>, read: bool, write: bool) -> PyResult<Registration> {
        register(py, &*self.opened.get(py)?, memory, read, write)
    }

    /// Writes from `local` into the peer's memory that `remote` names. A "send" event follows.
    #[pyo3(signature = (connection, local, remote, *, offset=0, local_offset=0, length=None, context=0))]
    #[expect(clippy::too_many_arguments, reason = "what an RMA consists of")]
    fn write(
        &self,
        py: Python<'_>,
        connection: &RawConnection,
        local: &Registration,
        remote: &[u8],
        offset: i64,
        local_offset: i64,
        length: Option<i64>,
        context: u64,
    ) -> PyResult<()> {
        let span = Span::new(local, remote, offset, local_offset, length)?;
        self.opened.get(py)?.write(connection.0, &span.rma(local.name()), context).or_raise(py)
    }

    /// Reads from the peer's memory that `remote` names into `local`. A "send" event follows.
    #[pyo3(signature = (connection, local, remote, *, offset=0, local_offset=0, length=None, context=0))]
    #[expect(clippy::too_many_arguments, reason = "what an RMA consists of")]
    fn read(
        &self,
        py: Python<'_>,
        connection: &RawConnection,
        local: &Registration,
        remote: &[u8],
        offset: i64,
        local_offset: i64,
        length: Option<i64>,
        context: u64,
    ) -> PyResult<()> {
        let span = Span::new(local, remote, offset, local_offset, length)?;
        local.check_direction(false)?;
        self.opened.get(py)?.read(connection.0, &span.rma(local.name()), context).or_raise(py)
    }

    /// Adds to a word of 8 bytes of the peer; its old value comes to `local_offset` of `local`. A
    /// "send" event follows.
    #[pyo3(signature = (connection, local, remote, value, *, offset=0, local_offset=0, context=0))]
    #[expect(clippy::too_many_arguments, reason = "what an atomic operation consists of")]
    fn fetch_add(
        &self,
        py: Python<'_>,
        connection: &RawConnection,
        local: &Registration,
        remote: &[u8],
        value: u64,
        offset: i64,
        local_offset: i64,
        context: u64,
    ) -> PyResult<()> {
        let span = Span::new(local, remote, offset, local_offset, Some(8))?;
        local.check_direction(false)?;
        let rma = span.rma(local.name()).atomic(Atomic::FetchAdd(value));
        self.opened.get(py)?.atomic(connection.0, &rma, context).or_raise(py)
    }

    /// Closes the endpoint: waits at most 100 ms for what was sent. Waits in other threads end.
    fn close(&self, py: Python<'_>) {
        let kept = self.kept().take();
        drop(kept);
        self.opened.close(py);
        self.sleepers.wake();
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<cci.Endpoint {}>", self.opened.uri)
    }
}
