//! Arguments of calls, checked: what is wrong names the argument, its value and what to give.

use cci::{Attribute, RmaHandle};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;

/// Seconds as a time; `None`: no limit.
pub(crate) fn seconds(name: &str, value: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(value) = value else { return Ok(None) };
    if value == f64::INFINITY {
        return Ok(None);
    }
    let time = Duration::try_from_secs_f64(value).map(Some);
    time.map_err(|_| PyValueError::new_err(format!("{name} is {value}; give seconds from 0 on, or None")))
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
