//! Events as CCI has them.

use crate::connection::RawConnection;
use crate::errors::{Refusal, error};
use crate::message::Message;
use crate::opened::{Gauge, Held, Payload};
use cci::{DetachedEvent, Endpoint, EventKind, RequestError, Status, Unanswered};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, PoisonError};

/// What an `Endpoint` reports.
///
/// A message holds its receive buffer as long as `message` or a view of it lives. A request that is
/// neither accepted nor rejected is rejected when the event goes.
#[pyclass(frozen, module = "cci")]
pub(crate) struct Event {
    kind: EventKind,
    context: u64,
    connection: Option<RawConnection>,
    failure: Option<(Status, String)>,
    message: Option<Py<Message>>,
    request: Mutex<Option<(DetachedEvent, Arc<Endpoint>)>>,
    attribute: Option<&'static str>,
    payload: Vec<u8>,
}

impl Event {
    /// Takes an event over.
    pub(crate) fn new(
        py: Python<'_>,
        event: cci::Event<'_>,
        endpoint: &Arc<Endpoint>,
        gauge: &Arc<Gauge>,
    ) -> PyResult<Self> {
        let reason = || event.reason();
        let failure = event.outcome().err().map(|why| (why.status(), reason().unwrap_or_else(|| why.to_string())));
        let mut taken = Self {
            kind: event.kind(),
            context: event.context(),
            connection: event.connection().map(RawConnection),
            failure,
            message: None,
            request: Mutex::new(None),
            attribute: event.request().map(|request| request.attribute().name()),
            payload: event.request().map(cci::Request::payload).unwrap_or_default(),
        };
        match event {
            event @ cci::Event::Received(_) => {
                let held = Held::new(event).counted(gauge);
                taken.message = Some(Py::new(py, Message::new(Payload::InPlace(held)))?);
            }
            event @ cci::Event::Request(_) => {
                taken.request = Mutex::new(Some((event.detach(), Arc::clone(endpoint))));
            }
            _ => {}
        }
        Ok(taken)
    }

    fn answer(&self, py: Python<'_>, act: impl FnOnce(cci::Request<'_>) -> Result<(), Unanswered<'_>>) -> PyResult<()> {
        let mut request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
        let (event, endpoint) = request.take().ok_or_else(|| match self.kind {
            EventKind::ConnectRequest => RequestError::AlreadyAnswered.raise(py),
            _ => RequestError::NotARequest.raise(py),
        })?;
        let Some(asked) = event.attach(&endpoint).ok().and_then(cci::Event::into_request) else { return Ok(()) };
        let Err(Unanswered { request: asked, why }) = act(asked) else { return Ok(()) };
        let back = cci::Event::Request(asked).detach();
        *request = Some((back, Arc::clone(&endpoint)));
        Err(why.raise(py))
    }
}

#[pymethods]
impl Event {
    /// What it reports: "recv", "send", "connect", "request", "accept", "keepalive", "disconnect",
    /// "import ended" or "failed".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.kind {
            EventKind::Recv => "recv",
            EventKind::Send => "send",
            EventKind::Connect => "connect",
            EventKind::ConnectRequest => "request",
            EventKind::Accept => "accept",
            EventKind::KeepaliveTimedOut => "keepalive",
            EventKind::Disconnect => "disconnect",
            EventKind::ImportEnded => "import ended",
            _ => "failed",
        }
    }

    /// The number given to the operation that has ended; 0 for events without one.
    #[getter]
    fn context(&self) -> u64 {
        self.context
    }

    /// The connection that the event is about, if it has one.
    #[getter]
    fn connection(&self) -> Option<RawConnection> {
        self.connection
    }

    /// Why the operation failed, as an `Error` to be raised; None when it succeeded.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<PyErr> {
        self.failure.as_ref().map(|(status, sentence)| error(py, *status, sentence))
    }

    /// The message of "recv".
    #[getter]
    fn message(&self, py: Python<'_>) -> Option<Py<Message>> {
        self.message.as_ref().map(|message| message.clone_ref(py))
    }

    /// What the client of a "request" has sent with it.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.payload)
    }

    /// What the client of a "request" asks the connection to promise, as RO.
    #[getter]
    fn attribute(&self) -> Option<&'static str> {
        self.attribute
    }

    /// Accepts a "request". An "accept" with this context follows.
    #[pyo3(signature = (context=0))]
    fn accept(&self, py: Python<'_>, context: u64) -> PyResult<()> {
        self.answer(py, |request| request.accept(context))
    }

    /// Rejects a "request".
    fn reject(&self, py: Python<'_>) -> PyResult<()> {
        self.answer(py, |request| request.reject())
    }

    fn __repr__(&self) -> String {
        let failure = self.failure.as_ref().map_or(String::new(), |(_, sentence)| format!(": {sentence}"));
        format!("<cci.Event {} {}{failure}>", self.kind(), self.context)
    }
}
