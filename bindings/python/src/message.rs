//! Received messages.

use crate::export::{Export, fill};
use crate::opened::Payload;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::c_int;

/// A received message: an object with the buffer protocol, read-only.
///
/// `bytes(message)` copies it; `memoryview(message)` shows it where it arrived, without a copy. The
/// message may hold a receive buffer of its endpoint until it and all its views are gone, on any
/// thread. Views stay valid after the connection and the endpoint are closed.
#[pyclass(frozen, module = "cci")]
pub(crate) struct Message(Payload);

impl Message {
    pub(crate) fn new(payload: Payload) -> Self {
        Self(payload)
    }

    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, self.__len__(), |target| {
            self.0.copy_to(target);
            Ok(())
        })
    }
}

#[pymethods]
impl Message {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.copy(py)
    }

    /// Compares with the bytes of another message, or of anything with the buffer protocol.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        if Export::of(other, "other", false).is_err() {
            return Ok(false);
        }
        let other = py.get_type::<PyBytes>().call1((other,))?;
        self.copy(py)?.as_any().eq(other)
    }

    fn __repr__(&self) -> String {
        format!("<cci.Message of {} bytes>", self.__len__())
    }

    #[allow(unsafe_code, reason = "the buffer protocol")]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let Some((address, len)) = slf.get().0.place() else {
            return Err(PyBufferError::new_err("the message has no bytes to show"));
        };
        // An empty message may have no address.
        let start = if len == 0 { std::ptr::NonNull::dangling().as_ptr() } else { address.cast_mut() };
        // SAFETY: called by Python with its view. The payload stays where it is, and readable,
        // until the event is given back or the copy is freed, which is not before this object goes.
        unsafe { fill(view, flags, slf.as_any(), start, len) }
    }
}
