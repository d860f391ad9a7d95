//! Events: got and returned.

use crate::status::{Refusal, refused};
use crate::{guard, handles};
use cci::PollError;
use cci::raw::{self, EndpointCell, EventCell};
use std::ffi::c_int;
use std::ptr::NonNull;

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
        return unsafe { show(endpoint, event, || raw::get_event(endpoint)) };
    };
    // Nothing in it can panic, so that it needs no guard.
    if let Some(slot) = entered.pop() {
        // SAFETY: not NULL, so writable by the contract above; a C pointer variable is aligned.
        unsafe { event.write(slot) };
        return 0;
    }
    // SAFETY: as above.
    unsafe { show(endpoint, event, || Ok(entered.look_for_event()?.map(NonNull::from))) }
}

/// Shows the program what `next` gives. Apart from what it is called by, which needs fewer registers without it.
///
/// # Safety
///
/// `event` is writable.
#[inline(never)]
unsafe fn show(
    endpoint: &'static EndpointCell,
    event: *mut *const EventCell,
    next: impl FnOnce() -> Result<Option<NonNull<EventCell>>, PollError>,
) -> c_int {
    guard::on(Some(endpoint), || {
        let next = next();
        let slot = next.as_ref().ok().copied().flatten().map_or(std::ptr::null(), |slot| slot.as_ptr().cast_const());
        // SAFETY: by the contract above; a C pointer variable is aligned.
        unsafe { event.write(slot) };
        next?.map(drop).ok_or(Refusal::Nothing)
    })
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
