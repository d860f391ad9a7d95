//! Connections as CCI has them.

use pyo3::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A connection of an `Endpoint`: a name that owns nothing, to be copied and kept.
///
/// It is stale once the connection has ended; every call with it is refused then.
#[pyclass(frozen, module = "cci")]
#[derive(Clone, Copy)]
pub(crate) struct RawConnection(pub(crate) cci::Connection);

#[pymethods]
impl RawConnection {
    /// The size of the largest message, bytes; None when the connection has ended.
    #[getter]
    fn max_send_size(&self) -> Option<u32> {
        self.0.max_send_size()
    }

    /// What the connection promises, as RO or UU; None when it has ended.
    #[getter]
    fn attribute(&self) -> Option<&'static str> {
        self.0.attribute().map(cci::Attribute::name)
    }

    /// The number given to connect or accept; None when the connection has ended.
    #[getter]
    fn context(&self) -> Option<u64> {
        self.0.context()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut state = DefaultHasher::new();
        self.0.hash(&mut state);
        state.finish()
    }

    fn __repr__(&self) -> String {
        format!("<cci.RawConnection {:?}>", self.0)
    }
}
