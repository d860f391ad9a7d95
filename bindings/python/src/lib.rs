//! The Python package `cci`: its native half. `docs/design/python.md` has the design, and the
//! package's own files in `python/cci` the half that is written in Python.

#![deny(unsafe_code)]

mod arguments;
mod connection;
mod devices;
mod endpoint;
mod errors;
mod event;
mod export;
mod hub;
mod job;
mod message;
mod opened;
mod registration;
mod waiting;

use pyo3::prelude::*;

/// What the package imports.
#[pymodule(gil_used = false)]
fn _cci(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<connection::RawConnection>()?;
    module.add_class::<devices::Device>()?;
    module.add_class::<endpoint::Endpoint>()?;
    module.add_class::<event::Event>()?;
    module.add_class::<hub::Hub>()?;
    module.add_class::<job::Job>()?;
    module.add_class::<message::Message>()?;
    module.add_class::<registration::Registration>()?;
    module.add_function(wrap_pyfunction!(arguments::checked_seconds, module)?)?;
    module.add_function(wrap_pyfunction!(arguments::checked_uri, module)?)?;
    module.add_function(wrap_pyfunction!(devices::devices, module)?)?;
    module.add_function(wrap_pyfunction!(job::job, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
