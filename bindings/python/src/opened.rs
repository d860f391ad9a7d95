//! An open endpoint, and how many of its receive buffers are held.

use crate::errors::Refusal;
use cci::__binding::{AtomicU64, Ordering};
use cci::{DetachedEvent, Endpoint, Event, Unusable};
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

/// An endpoint until it is closed. Calls take a share of it, so that a close in one thread does not
/// take it away from a call in another.
pub(crate) struct Opened {
    endpoint: Mutex<Option<Arc<Endpoint>>>,
    pub(crate) uri: String,
    pub(crate) gauge: Arc<Gauge>,
}

impl Opened {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        let slots = endpoint.recv_buffers().unwrap_or(u32::MAX);
        let gauge = Arc::new(Gauge { held: AtomicU64::new(0), warned: AtomicU64::new(0), slots: u64::from(slots) });
        Self { uri: endpoint.uri().to_owned(), endpoint: Mutex::new(Some(Arc::new(endpoint))), gauge }
    }

    /// A share of the endpoint.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Arc<Endpoint>> {
        self.share().ok_or_else(|| Unusable::Closed.raise(py))
    }

    pub(crate) fn share(&self) -> Option<Arc<Endpoint>> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes it, or leaves that to the call in another thread that ends last. False: it was closed
    /// before.
    pub(crate) fn close(&self, py: Python<'_>) -> bool {
        let endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).take();
        let was_open = endpoint.is_some();
        // It waits for what was sent.
        py.detach(|| drop(endpoint));
        was_open
    }
}

/// How many receive buffers the program holds by messages that it has received. Relaxed throughout:
/// a count for a warning publishes nothing.
pub(crate) struct Gauge {
    held: AtomicU64,
    warned: AtomicU64,
    slots: u64,
}

impl Gauge {
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// The receive buffers of the endpoint.
    pub(crate) fn slots(&self) -> usize {
        usize::try_from(self.slots).unwrap_or(usize::MAX)
    }

    pub(crate) fn are_all_held(&self) -> bool {
        self.held() >= self.slots
    }

    /// Warns once when the program gets a message by which it holds half of the buffers. Raises
    /// where the program has warnings raise.
    pub(crate) fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let (held, slots) = (self.held() + 1, self.slots);
        if held * 2 < slots || self.warned.swap(1, Ordering::Relaxed) != 0 {
            return Ok(());
        }
        let text = format!(
            "{held} of {slots} receive buffers are held by messages; drop messages and views that are not needed, \
             copy them with bytes(), or raise recv_buffers"
        );
        let text = CString::new(text).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &text, 1)
    }
}

/// A received message that holds its buffer, and keeps its endpoint's memory, until it is dropped;
/// on any thread.
pub(crate) struct Held {
    event: DetachedEvent,
    /// Where it is counted, once the program has it.
    gauge: Option<Arc<Gauge>>,
}

impl Held {
    /// Takes over a received event.
    pub(crate) fn new(event: Event<'_>) -> Self {
        Self { event: event.detach(), gauge: None }
    }

    /// Counts it as the program's.
    pub(crate) fn counted(mut self, gauge: &Arc<Gauge>) -> Self {
        gauge.held.fetch_add(1, Ordering::Relaxed);
        self.gauge = Some(Arc::clone(gauge));
        self
    }

    pub(crate) fn received(&self) -> Option<&cci::Received<'static>> {
        self.event.received()
    }
}

/// A received message: where it arrived, or a copy that holds no buffer.
pub(crate) enum Payload {
    InPlace(Held),
    Copied(Box<[u8]>),
}

impl Payload {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::InPlace(held) => held.received().map_or(0, cci::Received::len),
            Self::Copied(bytes) => bytes.len(),
        }
    }

    /// Copies its bytes to a buffer of its length.
    pub(crate) fn copy_to(&self, target: &mut [u8]) {
        match self {
            Self::InPlace(held) => {
                if let Some(received) = held.received() {
                    received.copy_to(target);
                }
            }
            Self::Copied(bytes) => target.copy_from_slice(bytes),
        }
    }

    /// Where its bytes lie as long as it lives; `None`: there are none to show.
    pub(crate) fn place(&self) -> Option<(*const u8, usize)> {
        match self {
            Self::InPlace(held) => held.received().map(|received| {
                let view = received.view();
                (view.address(), view.len())
            }),
            Self::Copied(bytes) => Some((bytes.as_ptr(), bytes.len())),
        }
    }

    /// Counts a buffer that it holds as the program's.
    pub(crate) fn counted(self, gauge: &Arc<Gauge>) -> Self {
        match self {
            Self::InPlace(held) => Self::InPlace(held.counted(gauge)),
            copied @ Self::Copied(_) => copied,
        }
    }

    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace(_))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(gauge) = &self.gauge {
            gauge.held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
