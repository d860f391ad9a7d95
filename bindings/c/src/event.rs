//! Events: got and returned.

use crate::status::{Refusal, refused};
use crate::{guard, handles};
use cci::__binding::{self as raw, EndpointCell, Entered, EventCell, Outside, Popped};
use cci::{PollError, RequestError};
use std::ffi::c_int;

/// # Safety
///
/// `endpoint` is NULL or was an endpoint once; `event` is NULL or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_get_event(endpoint: *const EndpointCell, event: *mut *const EventCell) -> c_int {
    if event.is_null() {
        return refuse_argument("the place for the result is NULL");
    }
    // SAFETY: by the contract above.
    let Ok(endpoint) = (unsafe { handles::endpoint(endpoint) }) else {
        // SAFETY: not NULL, so writable by the contract above.
        unsafe { event.write(std::ptr::null()) };
        return refuse_argument("the endpoint is NULL");
    };
    let mut entered = match endpoint.enter_at_once() {
        Ok(entered) => entered,
        // SAFETY: not NULL, so writable by the contract above.
        Err(outside) => return unsafe { get_by_lock(endpoint, event, outside) },
    };
    // Nothing in it can panic, so that it needs no guard.
    match entered.pop() {
        Popped::Event(slot) => {
            // SAFETY: not NULL, so writable by the contract above; a C pointer variable is aligned.
            unsafe { event.write(slot) };
            0
        }
        // SAFETY: as above.
        Popped::Nothing => unsafe { poll(endpoint, event, entered) },
        // SAFETY: as above.
        Popped::Unknown => unsafe { look(endpoint, event, entered) },
    }
}

/// Apart from `cci_get_event`, which needs fewer registers without it.
///
/// # Safety
///
/// `event` is writable.
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "called from this crate only; it does not unwind")]
unsafe extern "C" fn poll(
    endpoint: &'static EndpointCell,
    event: *mut *const EventCell,
    entered: Entered<'static>,
) -> c_int {
    // SAFETY: by the contract above.
    guard::catch(Some(endpoint), || unsafe { show(event, entered.poll()) })
}

/// Likewise.
///
/// # Safety
///
/// `event` is writable.
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "called from this crate only; it does not unwind")]
unsafe extern "C" fn look(
    endpoint: &'static EndpointCell,
    event: *mut *const EventCell,
    entered: Entered<'static>,
) -> c_int {
    // SAFETY: by the contract above.
    guard::catch(Some(endpoint), || unsafe { show(event, entered.look_for_event()) })
}

/// Likewise.
///
/// # Safety
///
/// `event` is writable.
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "called from this crate only; it does not unwind")]
unsafe extern "C" fn get_by_lock(
    endpoint: &'static EndpointCell,
    event: *mut *const EventCell,
    outside: Outside<'static>,
) -> c_int {
    // SAFETY: by the contract above.
    guard::catch(Some(endpoint), || unsafe { show(event, endpoint.enter_for_event(outside)) })
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
    let Ok(slot) = (unsafe { handles::event(event) }) else { return refuse_argument("the event is NULL") };
    // SAFETY: the program promises that it is done with the event.
    match unsafe { raw::give_back(slot) } {
        Ok(false) => 0,
        Ok(true) => refill(slot),
        Err(error) => refuse_return(error),
    }
}

/// Likewise.
#[cold]
#[inline(never)]
fn refuse_return(error: RequestError) -> c_int {
    refused(error.into())
}

/// Apart from the fast path, which needs no stack without it.
#[cold]
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "called from this crate only; it does not unwind")]
extern "C" fn refuse_argument(sentence: &'static str) -> c_int {
    refused(Refusal::Argument(sentence))
}

/// Likewise.
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
