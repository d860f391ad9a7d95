//! Arguments of calls, checked: what is wrong names the argument, its value and what to give.

use cci::{Attribute, RmaHandle};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString};
use std::time::Duration;

/// The first number of seconds that no duration holds. Whoever gives more sets no limit.
const ENDLESS: f64 = 1.8e19;

/// What a program gives as seconds, or None.
pub(crate) type Seconds<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Seconds as a number, from 0 on; `None`: no limit.
pub(crate) fn number(name: &str, value: Seconds<'_, '_>) -> PyResult<Option<f64>> {
    let Some(value) = value else { return Ok(None) };
    match value.cast_exact::<PyFloat>().map(|value| value.value()) {
        Ok(usual) if (0.0..ENDLESS).contains(&usual) => Ok(Some(usual)),
        _ => unusual(name, value),
    }
}

/// The same of what is no float, or no time.
#[cold]
fn unusual(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let seconds = match value.extract::<f64>() {
        Ok(seconds) => seconds,
        // A whole number beyond the range of a float.
        Err(why) if why.is_instance_of::<PyOverflowError>(value.py()) => {
            if value.lt(0)? {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        Err(_) => {
            let kind = value.get_type().name()?;
            return Err(PyTypeError::new_err(format!("{name} is a {kind}; give seconds as a number, or None")));
        }
    };
    if seconds >= ENDLESS {
        return Ok(None);
    }
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!("{name} is {seconds}; give seconds from 0 on, or None")));
    }
    Ok(Some(seconds))
}

/// Seconds as a time; `None`: no limit.
pub(crate) fn seconds(name: &str, value: Seconds<'_, '_>) -> PyResult<Option<Duration>> {
    Ok(number(name, value)?.and_then(duration))
}

/// A number of seconds that was checked.
pub(crate) fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// Checks seconds for the Python half of the package, which waits by itself. None: no limit.
#[pyfunction(name = "seconds")]
#[pyo3(signature = (name, value))]
pub(crate) fn checked_seconds(name: &str, value: Seconds<'_, '_>) -> PyResult<Option<f64>> {
    number(name, value)
}

/// An address to open an endpoint at; `None`: for processes of this host.
pub(crate) fn address<'a>(value: Option<&'a Bound<'_, PyAny>>) -> PyResult<Option<&'a str>> {
    let Some(value) = value else { return Ok(None) };
    match value.cast::<PyString>() {
        Ok(text) => text.to_str().map(Some),
        Err(_) if value.is_exact_instance_of::<PyInt>() => Err(PyTypeError::new_err(format!(
            "address is the number {value}; give a port as \":{value}\", or as \"TRANSPORT://:{value}\""
        ))),
        Err(_) => {
            let kind = value.get_type().name()?;
            Err(PyTypeError::new_err(format!(
                "address is a {kind}; give a port as \":5000\" or \"TRANSPORT://:5000\", cci.job(), or None for this host"
            )))
        }
    }
}

/// The URI of a server.
#[pyfunction]
pub(crate) fn checked_uri<'py>(uri: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    uri.cast::<PyString>().cloned().map_err(|_| {
        let kind = uri.get_type().name().map_or_else(|_| "object".to_owned(), |kind| kind.to_string());
        PyTypeError::new_err(format!("uri is a {kind}; give the string that the server has as its uri"))
    })
}

/// A count from `least` on.
pub(crate) fn count(name: &str, value: Option<i64>, least: u32) -> PyResult<Option<u32>> {
    let Some(value) = value else { return Ok(None) };
    let count = u32::try_from(value).ok().filter(|count| *count >= least).map(Some);
    count.ok_or_else(|| PyValueError::new_err(format!("{name} is {value}; give a number from {least} to {}", u32::MAX)))
}

/// A number of bytes or a place in memory.
pub(crate) fn bytes(name: &str, value: i64) -> PyResult<u64> {
    u64::try_from(value).map_err(|_| PyValueError::new_err(format!("{name} is {value}; give 0 or more bytes")))
}

/// An attribute by its short name.
pub(crate) fn attribute(name: &str) -> PyResult<Attribute> {
    (0..5)
        .filter_map(Attribute::from_u32)
        .find(|attribute| attribute.name() == name)
        .ok_or_else(|| PyValueError::new_err(format!("attribute is {name:?}; give one of RO, RU, UU, MC_TX and MC_RX")))
}

/// The handle of a peer's memory.
pub(crate) fn handle(bytes: &[u8]) -> PyResult<RmaHandle> {
    RmaHandle::from_bytes(bytes).ok_or_else(|| {
        let len = bytes.len();
        PyValueError::new_err(format!("remote has {len} bytes; give the 32 bytes of a peer's Registration.handle"))
    })
}
