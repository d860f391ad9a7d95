//! Registered memory.

use crate::errors::{OrRaise, Refusal};
use crate::export::Export;
use cci::__binding::PerProcess;
use cci::{Memory, RegisterError, Rights, RmaHandle, StillRegistered, wait_for_copies};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Memory of a Python object that peers may read or write while it is registered.
///
/// `with endpoint.register(array) as memory:` ends the registration at the end of the block. The
/// object can be neither resized nor freed before. A peer needs `handle`, 32 bytes that the program
/// sends it.
#[pyclass(frozen, module = "cci")]
pub(crate) struct Registration {
    handle: RmaHandle,
    len: u64,
    is_writable: bool,
    held: Mutex<Option<Registered>>,
}

/// A registration, and the memory that must outlive it: dropped in this order.
struct Registered {
    registration: cci::Registration<Memory>,
    export: Export,
}

/// Registrations that the program has ended while a peer copied. They are kept until it does not.
/// A forked child keeps none of its parent's.
static KEPT: PerProcess<Mutex<Vec<Registered>>> = PerProcess::new();

/// `None`: there is no memory for the first one.
fn kept() -> Option<MutexGuard<'static, Vec<Registered>>> {
    let (_, kept) = KEPT.get(Mutex::default).ok()?;
    Some(kept.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps registrations that have not ended.
fn keep(busy: impl IntoIterator<Item = Registered>) {
    match kept() {
        Some(mut kept) => kept.extend(busy),
        // Peers copy: the memory stays.
        None => busy.into_iter().for_each(std::mem::forget),
    }
}

/// Ends kept registrations that no peer copies from or to any more.
fn free_kept() {
    // Without the lock: the end of an export may run code of the program.
    let all = kept().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
    let busy: Vec<Registered> = all.into_iter().filter_map(end).collect();
    keep(busy);
}

impl Registration {
    #[allow(unsafe_code, reason = "memory is registered by its address")]
    pub(crate) fn new(
        py: Python<'_>,
        endpoint: &cci::Endpoint,
        memory: &Bound<'_, PyAny>,
        rights: Rights,
    ) -> PyResult<Self> {
        free_kept();
        // What peers only read may be read-only; then this side does not read into it either.
        let (export, is_writable) = match Export::of(memory, "memory", true) {
            Ok(export) => (export, true),
            Err(_) if !rights.has(Rights::WRITE) => (Export::of(memory, "memory", false)?, false),
            Err(why) => return Err(why),
        };
        // SAFETY: the export lives until the registration has ended and no peer copies: `end`.
        let named = unsafe { export.memory() };
        let registration = endpoint.register(named, rights).or_raise(py)?;
        let (handle, len) = (*registration.handle(), export.len());
        Ok(Self { handle, len, is_writable, held: Mutex::new(Some(Registered { registration, export })) })
    }

    pub(crate) fn name(&self) -> &RmaHandle {
        &self.handle
    }

    pub(crate) fn size(&self) -> u64 {
        self.len
    }

    /// Refuses to read into memory that must not change.
    pub(crate) fn check_direction(&self, is_write: bool) -> PyResult<()> {
        if is_write || self.is_writable {
            return Ok(());
        }
        Err(PyValueError::new_err(
            "local is read-only memory; register a bytearray or a writable array to read into it",
        ))
    }

    fn take(&self) -> Option<Registered> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Ends a registration and frees its memory. Both come back where a peer copies.
fn end(held: Registered) -> Option<Registered> {
    let Registered { registration, export } = held;
    match registration.deregister() {
        Ok(_) => None,
        // With the endpoint its registrations have ended, but a copy may be under way.
        Err(still) if still.why != RegisterError::Busy && wait_for_copies(Duration::ZERO).is_ok() => None,
        Err(StillRegistered { registration, .. }) => Some(Registered { registration, export }),
    }
}

/// Ends a registration, or keeps it for later. False: it is kept.
fn end_or_keep(held: Registered) -> bool {
    let busy = end(held);
    let is_ended = busy.is_none();
    keep(busy);
    is_ended
}

#[pymethods]
impl Registration {
    /// The 32 bytes by which a peer names this memory.
    #[getter]
    fn handle<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.handle.to_bytes())
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.len).unwrap_or(usize::MAX)
    }

    /// Whether the registration has ended.
    #[getter]
    fn closed(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Ends the registration. Waits at most 100 ms for a peer that copies, then raises `Error`; the
    /// memory is kept until that copy is over.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let is_ended = self.take().is_none_or(|held| py.detach(|| end_or_keep(held)));
        if is_ended { Ok(()) } else { Err(RegisterError::Busy.raise(py)) }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { "ended" } else { "open" };
        format!("<cci.Registration of {} bytes, {state}>", self.len)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(held) = self.take() {
            end_or_keep(held);
        }
        free_kept();
    }
}
