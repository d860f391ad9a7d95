//! Events: got and returned.

use crate::status::{Refusal, refused};
use crate::{guard, handles};
use cci::PollError;
use cci::raw::{self, EndpointCell, Entered, EventCell};
use std::ffi::c_int;

/// # Safety
///
/// `endpoint` is NULL or was an endpoint once; `event` is NULL or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_get_event(endpoint: *const EndpointCell, event: *mut *const EventCell) -> c_int {
    if event.is_null() {
        return refuse(Refusal::Argument("the place for the result is NULL"));
    }
    // SAFETY: by the contract above.
    let Ok(endpoint) = (unsafe { handles::endpoint(endpoint) }) else {
        // SAFETY: not NULL, so writable by the contract above.
        unsafe { event.write(std::ptr::null()) };
        return refuse(Refusal::Argument("the endpoint is NULL"));
    };
    let Some(mut entered) = endpoint.enter_at_once() else {
        // SAFETY: not NULL, so writable by the contract above.
        return unsafe { get_by_lock(endpoint, event) };
    };
    // Nothing in it can panic, so that it needs no guard.
    if let Some(slot) = entered.pop() {
        // SAFETY: not NULL, so writable by the contract above; a C pointer variable is aligned.
        unsafe { event.write(slot) };
        return 0;
    }
    // SAFETY: as above.
    unsafe { look(endpoint, event, entered) }
}

/// Apart from `cci_get_event`, which needs fewer registers without it.
///
/// # Safety
///
/// `event` is writable.
#[inline(never)]
unsafe fn look(endpoint: &'static EndpointCell, event: *mut *const EventCell, entered: Entered<'static>) -> c_int {
    // SAFETY: by the contract above.
    guard::catch(Some(endpoint), || unsafe { show(event, entered.look_for_event()) })
}

/// Likewise.
///
/// # Safety
///
/// `event` is writable.
#[inline(never)]
unsafe fn get_by_lock(endpoint: &'static EndpointCell, event: *mut *const EventCell) -> c_int {
    // SAFETY: by the contract above.
    guard::catch(Some(endpoint), || unsafe { show(event, endpoint.next_event()) })
}

/// Shows the program what was found.
///
/// # Safety
///
/// `event` is writable.
#[inline(always)]
unsafe fn show(event: *mut *const EventCell, found: Result<Option<&'static EventCell>, PollError>) -> c_int {
    let (slot, code) = match found {
        Ok(Some(slot)) => (std::ptr::from_ref(slot), 0),
        Ok(None) => (std::ptr::null(), libc::EAGAIN),
        Err(error) => (std::ptr::null(), refuse(error.into())),
    };
    // SAFETY: by the contract above; a C pointer variable is aligned.
    unsafe { event.write(slot) };
    code
}

/// # Safety
///
/// `event` is NULL or was an event once.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_return_event(event: *const EventCell) -> c_int {
    // SAFETY: by the contract above.
    let given = unsafe { handles::event(event) }.and_then(|slot| Ok((slot, raw::give_back(slot)?)));
    match given {
        Ok((_, false)) => 0,
        Ok((slot, true)) => refill(slot),
        Err(refusal) => refused(refusal),
    }
}

/// Apart from the fast path, which needs no stack without it.
#[cold]
#[inline(never)]
fn refuse(refusal: Refusal) -> c_int {
    refused(refusal)
}

#[cold]
fn refill(slot: &'static EventCell) -> c_int {
    guard::on(slot.owner.get(), || {
        raw::refill(slot);
        Ok(())
    })
}
