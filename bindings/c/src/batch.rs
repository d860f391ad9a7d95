//! Several events by one call, and events of several endpoints.

use crate::status::{Refusal, refused};
use crate::{connection, guard, handles};
use cci::__binding::{self as raw, EndpointCell, EventCell};
use cci::PollError;
use std::ffi::{c_int, c_void};

/// # Safety
///
/// `endpoint` is NULL or was an endpoint once; `events` is NULL or writable for `most` pointers;
/// `count` is NULL or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_get_events(
    endpoint: *const EndpointCell,
    events: *mut *const EventCell,
    most: u32,
    count: *mut u32,
) -> c_int {
    // SAFETY: by the contract above.
    let cell = unsafe { handles::endpoint(endpoint) };
    guard::on_cell(cell, |cell| {
        handles::present(events)?;
        handles::present(count)?;
        check_most(most)?;
        let mut place = events;
        let found = cell.next_events(most as usize, |slot| {
            // SAFETY: there are at most `most` of them; a C pointer variable is aligned.
            unsafe { place.write(slot) };
            place = place.wrapping_add(1);
        });
        // SAFETY: not NULL, so writable by the contract above.
        unsafe { count.write(u32::try_from(*found.as_ref().unwrap_or(&0)).unwrap_or(most)) };
        Ok(code_of(found))
    })
}

/// `ccix_handler_t`.
type Handler = unsafe extern "C" fn(arg: *mut c_void, event: *const EventCell) -> c_int;

/// # Safety
///
/// `endpoint` is NULL or was an endpoint once; `handler` is NULL or a function that may be called
/// with `arg` and an event; `count` is NULL or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_poll(
    endpoint: *const EndpointCell,
    most: u32,
    handler: Option<Handler>,
    arg: *mut c_void,
    count: *mut u32,
) -> c_int {
    // SAFETY: by the contract above.
    let cell = unsafe { handles::endpoint(endpoint) };
    let mut total = 0;
    let code = guard::on_cell(cell, |cell| {
        let handler = handler.ok_or(Refusal::Argument("the handler is NULL"))?;
        check_most(most)?;
        // SAFETY: a function that may be called so, by the contract above.
        let found = hand_over(cell, most as usize, |slot| unsafe { handler(arg, slot) == 0 });
        total = *found.as_ref().unwrap_or(&0);
        Ok(code_of(found))
    });
    if !count.is_null() {
        // SAFETY: writable by the contract above.
        unsafe { count.write(u32::try_from(total).unwrap_or(most)) };
    }
    code
}

/// Passes events to `handler` and returns those with which it says it has done.
fn hand_over(
    cell: &'static EndpointCell,
    most: usize,
    handler: impl Fn(&'static EventCell) -> bool,
) -> Result<usize, PollError> {
    let life = cell.generation();
    raw::poll(cell, most, |slot| {
        let is_done = handler(slot);
        // Else it has destroyed the endpoint, against the contract: this event is not the program's
        // any more.
        let is_open = cell.generation() == life;
        if is_open && is_done {
            // SAFETY: the program says that it is done with the event.
            unsafe { raw::put_back(slot) };
        }
        is_open
    })
}

fn check_most(most: u32) -> Result<(), Refusal> {
    if most == 0 { Err(Refusal::Argument("ask for at least one event")) } else { Ok(()) }
}

fn code_of(found: Result<usize, PollError>) -> c_int {
    match found {
        Ok(0) => libc::EAGAIN,
        Ok(_) => 0,
        Err(error) => refused(error.into()),
    }
}

/// # Safety
///
/// `endpoints` is NULL, or readable for `count` pointers that were endpoints once; `timeout` is
/// NULL or readable; `event` is NULL or writable, and so is `which`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_wait(
    endpoints: *const *const EndpointCell,
    count: u32,
    timeout: *const libc::timeval,
    event: *mut *const EventCell,
    which: *mut u32,
) -> c_int {
    let mut code = libc::EAGAIN;
    let waited = guard::call(|| {
        handles::present(event)?;
        // SAFETY: not NULL, so writable by the contract above; a C pointer variable is aligned.
        unsafe { event.write(std::ptr::null()) };
        if endpoints.is_null() || count == 0 {
            return Err(Refusal::Argument("there is no endpoint to wait for"));
        }
        // SAFETY: readable by the contract above; nobody writes them meanwhile.
        let pointers = unsafe { std::slice::from_raw_parts(endpoints, count as usize) };
        // SAFETY: by the contract above.
        let cells = pointers.iter().map(|pointer| unsafe { handles::endpoint(*pointer) });
        let cells: Vec<&'static EndpointCell> = cells.collect::<Result<_, _>>()?;
        // SAFETY: by the contract above.
        let limit = unsafe { timeout.as_ref() }.map(connection::duration).transpose()?;
        let Some((at, slot)) = raw::wait_any(cells.len(), |at| cells[at], limit)? else { return Ok(()) };
        // SAFETY: as above.
        unsafe { event.write(slot) };
        if !which.is_null() {
            // SAFETY: writable by the contract above.
            unsafe { which.write(u32::try_from(at).unwrap_or(0)) };
        }
        code = 0;
        Ok(())
    });
    if waited == 0 { code } else { waited }
}

/// # Safety
///
/// `endpoint` is NULL or was an endpoint once.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_wake(endpoint: *const EndpointCell) -> c_int {
    // SAFETY: by the contract above.
    guard::on_endpoint(unsafe { handles::endpoint(endpoint) }, |cell| {
        let life = cell.generation();
        Ok(raw::wake(cell, life, &*raw::waiting(cell)?)?)
    })
}
