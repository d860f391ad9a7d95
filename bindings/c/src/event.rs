//! Events: got and returned.

use crate::guard;
use crate::handles::Handle;
use crate::status::{Refusal, refused};
use cci::__binding::{self as raw, EndpointCell, Entered, EventCell, Outside, Popped};
use cci::__binding::{Out, Variable};
use cci::{PollError, RequestError};
use std::ffi::c_int;

#[unsafe(no_mangle)]
extern "C" fn cci_get_event(endpoint: Handle<EndpointCell>, event: Out<'_, *const EventCell>) -> c_int {
    let Some(event) = event.asked() else { return refuse_argument("the place for the result is NULL") };
    let Ok(endpoint) = endpoint.get() else {
        event.put(std::ptr::null());
        return refuse_argument("the endpoint is NULL");
    };
    let mut entered = match endpoint.enter_at_once() {
        Ok(entered) => entered,
        Err(outside) => return get_by_lock(endpoint, event, outside),
    };
    // Nothing in it can panic, so that it needs no guard.
    match entered.pop() {
        Popped::Event(slot) => {
            event.put(slot);
            0
        }
        Popped::Nothing => poll(endpoint, event, entered),
        Popped::Unknown => look(endpoint, event, entered),
    }
}

/// Apart from `cci_get_event`, which needs fewer registers without it.
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "called from this crate only; it does not unwind")]
extern "C" fn poll(
    endpoint: &'static EndpointCell,
    event: Variable<'_, *const EventCell>,
    entered: Entered<'static>,
) -> c_int {
    guard::catch(Some(endpoint), || show(&event, entered.poll()))
}

/// Likewise.
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "called from this crate only; it does not unwind")]
extern "C" fn look(
    endpoint: &'static EndpointCell,
    event: Variable<'_, *const EventCell>,
    entered: Entered<'static>,
) -> c_int {
    guard::catch(Some(endpoint), || show(&event, entered.look_for_event()))
}

/// Likewise.
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "called from this crate only; it does not unwind")]
extern "C" fn get_by_lock(
    endpoint: &'static EndpointCell,
    event: Variable<'_, *const EventCell>,
    outside: Outside<'static>,
) -> c_int {
    guard::catch(Some(endpoint), || show(&event, endpoint.enter_for_event(outside)))
}

/// Shows the program what was found.
#[inline(always)]
fn show(event: &Variable<'_, *const EventCell>, found: Result<Option<&'static EventCell>, PollError>) -> c_int {
    let (slot, code) = match found {
        Ok(Some(slot)) => (std::ptr::from_ref(slot), 0),
        Ok(None) => (std::ptr::null(), libc::EAGAIN),
        Err(error) => (std::ptr::null(), refuse(error.into())),
    };
    event.put(slot);
    code
}

/// # Safety
///
/// The program is done with the event.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_return_event(event: Handle<EventCell>) -> c_int {
    let Ok(slot) = event.get() else { return refuse_argument("the event is NULL") };
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
