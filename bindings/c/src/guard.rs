//! The boundary: no panic crosses it.
//!
//! A panic inside is a mistake of the library. The call returns `CCI_ERROR`; the endpoint it was
//! working on may be half-way through something, so it says farewell to its peers and is closed.
//! Without a panic the guard costs nothing.

use crate::handles::Named;
use crate::status::{Refusal, refused};
use cci::__binding::{EndpointCell, Uncancelled, abandon};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call that works on no endpoint. No thread is cancelled in it.
#[inline(always)]
pub(crate) fn call(act: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    at_length(None, act)
}

/// Runs a call off the fast path that works on this endpoint, if on any. No thread is cancelled in
/// it.
#[inline(always)]
pub(crate) fn at_length(endpoint: Option<&'static EndpointCell>, act: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    let _uncancelled = Uncancelled::new();
    on(endpoint, act)
}

/// Runs a call off the fast path on an endpoint. No thread is cancelled in it.
#[inline(always)]
pub(crate) fn on_endpoint(
    endpoint: Result<&'static EndpointCell, Refusal>,
    act: impl FnOnce(&'static EndpointCell) -> Result<(), Refusal>,
) -> c_int {
    match endpoint {
        Ok(endpoint) => at_length(Some(endpoint), || act(endpoint)),
        Err(refusal) => refused(refusal),
    }
}

/// Runs a call on an endpoint that has its code already.
#[inline(always)]
pub(crate) fn on_cell(
    endpoint: Result<&'static EndpointCell, Refusal>,
    act: impl FnOnce(&'static EndpointCell) -> Result<c_int, Refusal>,
) -> c_int {
    match endpoint {
        Ok(endpoint) => catch(Some(endpoint), || act(endpoint).unwrap_or_else(refused)),
        Err(refusal) => refused(refusal),
    }
}

/// Runs a call on a connection.
#[inline(always)]
pub(crate) fn on_connection(
    connection: Result<Named, Refusal>,
    act: impl FnOnce(Named) -> Result<(), Refusal>,
) -> c_int {
    match connection {
        Ok(connection) => on(Some(connection.endpoint), || act(connection)),
        Err(refusal) => refused(refusal),
    }
}

/// As [`on_connection`], off the fast path. No thread is cancelled in it.
#[inline(always)]
pub(crate) fn on_connection_at_length(
    connection: Result<Named, Refusal>,
    act: impl FnOnce(Named) -> Result<(), Refusal>,
) -> c_int {
    let _uncancelled = Uncancelled::new();
    on_connection(connection, act)
}

/// Runs a call that works on this endpoint, if on any.
#[inline(always)]
pub(crate) fn on(endpoint: Option<&'static EndpointCell>, act: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    catch(endpoint, || match act() {
        Ok(()) => 0,
        Err(refusal) => refused(refusal),
    })
}

/// Runs what has its code already, on this endpoint, if on any.
#[inline(always)]
pub(crate) fn catch(endpoint: Option<&'static EndpointCell>, act: impl FnOnce() -> c_int) -> c_int {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(code) => code,
        Err(payload) => panicked(payload, endpoint),
    }
}

#[cold]
fn panicked(payload: Box<dyn std::any::Any + Send>, endpoint: Option<&'static EndpointCell>) -> c_int {
    // Its destructor could panic in turn.
    std::mem::forget(payload);
    if let Some(endpoint) = endpoint {
        abandon(endpoint);
    }
    refused(Refusal::Panic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::code;
    use cci::{Context, Endpoint, EndpointOptions, Status, Unusable};

    #[test]
    fn a_panic_becomes_an_error() {
        assert_eq!(call(|| panic!("on purpose")), code(Status::Error));
        assert_eq!(call(|| Ok(())), 0);
    }

    #[test]
    fn a_panic_on_an_endpoint_closes_it() {
        let context = Context::new().expect("devices");
        let device = context.default_device().expect("a device");
        let cell = Endpoint::open(device, &EndpointOptions::new()).expect("an endpoint");
        // SAFETY: the endpoint has no events.
        let cell = unsafe { cci::__binding::into_cell(cell) };
        let panicked = on_endpoint(Ok(cell), |cell| Ok(cell.with(|_, _| panic!("on purpose, with the lock held"))?));
        assert_eq!(panicked, code(Status::Error));
        assert_eq!(cell.with(|_, _| ()), Err(Unusable::Failed));
    }
}
