//! Several events by one call, and events of several endpoints.

use crate::arguments::{MISSING, present};
use crate::handles::Handle;
use crate::status::{Refusal, refused};
use crate::{connection, guard};
use cci::__binding::{self as raw, EndpointCell, EventCell};
use cci::__binding::{In, Out};
use cci::PollError;
use std::ffi::{c_int, c_void};

/// # Safety
///
/// `events` is NULL or writable for `most` pointers.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_get_events(
    endpoint: Handle<EndpointCell>,
    events: *mut *const EventCell,
    most: u32,
    count: Out<'_, u32>,
) -> c_int {
    guard::on_cell(endpoint.get(), |cell| {
        present(events)?;
        let count = count.variable(MISSING)?;
        check_most(most)?;
        let mut place = events;
        let found = cell.next_events(most as usize, |slot| {
            // SAFETY: not NULL, so writable for `most` pointers, and there are no more events; a C
            // pointer variable is aligned.
            unsafe { place.write(slot) };
            place = place.wrapping_add(1);
        });
        count.put(u32::try_from(*found.as_ref().unwrap_or(&0)).unwrap_or(most));
        Ok(code_of(found))
    })
}

/// `ccix_handler_t`.
type Handler = unsafe extern "C" fn(arg: *mut c_void, event: *const EventCell) -> c_int;

/// # Safety
///
/// `handler` is NULL or a function that may be called with `arg` and an event.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_poll(
    endpoint: Handle<EndpointCell>,
    most: u32,
    handler: Option<Handler>,
    arg: *mut c_void,
    count: Out<'_, u32>,
) -> c_int {
    let mut total = 0;
    let code = guard::on_cell(endpoint.get(), |cell| {
        let handler = handler.ok_or(Refusal::Argument("the handler is NULL"))?;
        check_most(most)?;
        // SAFETY: not NULL, so it may be called with `arg` and an event, by the contract above.
        let found = hand_over(cell, most as usize, |slot| unsafe { handler(arg, slot) == 0 });
        total = *found.as_ref().unwrap_or(&0);
        Ok(code_of(found))
    });
    if let Some(count) = count.asked() {
        count.put(u32::try_from(total).unwrap_or(most));
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
/// `endpoints` is NULL, or readable for `count` pointers, which nobody writes during the call.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_wait(
    endpoints: *const Handle<EndpointCell>,
    count: u32,
    timeout: In<'_, libc::timeval>,
    event: Out<'_, *const EventCell>,
    which: Out<'_, u32>,
) -> c_int {
    let mut code = libc::EAGAIN;
    let waited = guard::call(|| {
        let event = event.variable(MISSING)?;
        event.put(std::ptr::null());
        if endpoints.is_null() || count == 0 {
            return Err(Refusal::Argument("there is no endpoint to wait for"));
        }
        // SAFETY: not NULL, so readable for `count` pointers, by the contract above; nobody writes
        // them during the call.
        let handles = unsafe { std::slice::from_raw_parts(endpoints, count as usize) };
        let cells: Vec<&'static EndpointCell> =
            handles.iter().map(Handle::<EndpointCell>::get).collect::<Result<_, _>>()?;
        let limit = timeout.get().map(|time| connection::duration(&time)).transpose()?;
        let Some((at, slot)) = raw::wait_any(cells.len(), |at| cells[at], limit)? else { return Ok(()) };
        event.put(slot);
        if let Some(which) = which.asked() {
            which.put(u32::try_from(at).unwrap_or(0));
        }
        code = 0;
        Ok(())
    });
    if waited == 0 { code } else { waited }
}

#[unsafe(no_mangle)]
extern "C" fn ccix_wake(endpoint: Handle<EndpointCell>) -> c_int {
    guard::on_endpoint(endpoint.get(), |cell| {
        let life = cell.generation();
        Ok(raw::wake(cell, life, &*raw::waiting(cell)?)?)
    })
}
