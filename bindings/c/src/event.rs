//! Events: got and returned.

use crate::status::Refusal;
use crate::{guard, handles};
use cci::raw::{self, EndpointCell, EventCell};
use std::ffi::c_int;

/// # Safety
///
/// `endpoint` is NULL or was an endpoint once; `event` is NULL or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_get_event(endpoint: *const EndpointCell, event: *mut *const EventCell) -> c_int {
    if event.is_null() {
        return guard::call(|| handles::present(event));
    }
    let mut found = std::ptr::null();
    // SAFETY: by the contract above.
    let code = guard::on_endpoint(unsafe { handles::endpoint(endpoint) }, |cell| match raw::get_event(cell) {
        Ok(Some(slot)) => {
            found = slot.as_ptr();
            Ok(())
        }
        Ok(None) => Err(Refusal::Nothing),
        Err(error) => Err(error.into()),
    });
    // SAFETY: not NULL, so writable by the contract above; a C pointer variable is aligned.
    unsafe { event.write(found) };
    code
}

/// # Safety
///
/// `event` is NULL or was an event once.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_return_event(event: *const EventCell) -> c_int {
    // SAFETY: by the contract above.
    let slot = unsafe { handles::event(event) };
    guard::on(slot.ok().and_then(|slot| slot.owner.get()), || Ok(raw::return_event(slot?)?))
}
