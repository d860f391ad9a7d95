//! Options of endpoints and connections.

use crate::handles::{self, Named};
use crate::status::Refusal;
use crate::{guard, status};
use cci::__binding::{ConnectionCell, EndpointCell};
use cci::{Alignment, ConnectionOption, EndpointOption, OptionError};
use cci_mem::sync::{AtomicU32, Ordering};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// What an option belongs to, by its number.
enum Name {
    Endpoint(EndpointOption),
    Connection(ConnectionOption),
}

fn name(number: c_uint) -> Option<Name> {
    Some(match number {
        0 => Name::Endpoint(EndpointOption::SendTimeout),
        1 => Name::Endpoint(EndpointOption::RecvBufCount),
        2 => Name::Endpoint(EndpointOption::SendBufCount),
        3 => Name::Endpoint(EndpointOption::KeepaliveTimeout),
        4 => Name::Endpoint(EndpointOption::Uri),
        5 => Name::Endpoint(EndpointOption::RmaAlign),
        6 => Name::Connection(ConnectionOption::SendTimeout),
        7 => Name::Connection(ConnectionOption::KeepaliveTimeout),
        _ => return None,
    })
}

const UNKNOWN: Refusal = Refusal::Argument("no such option");

/// # Safety
///
/// `handle` is NULL, or was what the option belongs to once; `val` is NULL or readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_set_opt(handle: *const c_void, number: c_uint, val: *const c_void) -> c_int {
    if val.is_null() {
        return status::refused(Refusal::Argument("the value is NULL"));
    }
    // SAFETY: a value that can be set is 32 bits, readable by the contract above.
    let value = || unsafe { val.cast::<u32>().read_unaligned() };
    match name(number) {
        None => status::refused(UNKNOWN),
        Some(Name::Endpoint(option)) => {
            // SAFETY: by the contract above.
            guard::on_endpoint(unsafe { handles::endpoint(handle.cast()) }, |cell| set_endpoint(cell, option, value))
        }
        Some(Name::Connection(option)) => {
            let pointer = handle.cast::<ConnectionCell>();
            // SAFETY: by the contract above.
            guard::on_connection_at_length(unsafe { handles::connection(pointer) }, |named| {
                set_connection(named, option, value())
            })
        }
    }
}

fn set_endpoint(cell: &EndpointCell, option: EndpointOption, value: impl FnOnce() -> u32) -> Result<(), Refusal> {
    let set = cell.with(|core, _| {
        match option {
            EndpointOption::SendTimeout => core.set_send_timeout(value()),
            EndpointOption::KeepaliveTimeout => core.set_keepalive(value()),
            EndpointOption::RecvBufCount => {
                core.set_recv_count(value())?;
            }
            EndpointOption::SendBufCount => {
                core.set_send_count(value())?;
            }
            EndpointOption::Uri | EndpointOption::RmaAlign => return Err(OptionError::ReadOnly),
        }
        Ok(())
    })?;
    Ok(set?)
}

fn field(cell: &ConnectionCell, option: ConnectionOption) -> &AtomicU32 {
    match option {
        ConnectionOption::SendTimeout => &cell.send_timeout,
        ConnectionOption::KeepaliveTimeout => &cell.keepalive,
    }
}

fn set_connection(named: Named, option: ConnectionOption, micros: u32) -> Result<(), Refusal> {
    let set = named.endpoint.with(|core, transport| {
        let cell = named.live().ok_or(OptionError::Disconnected)?;
        field(cell, option).store(micros, Ordering::Relaxed);
        transport.options_changed(core, cell);
        Ok::<_, OptionError>(())
    })?;
    Ok(set?)
}

/// # Safety
///
/// `handle` is NULL, or was what the option belongs to once; `val` is NULL or writable for the option's type.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_get_opt(handle: *const c_void, number: c_uint, val: *mut c_void) -> c_int {
    if val.is_null() {
        return status::refused(Refusal::Argument("the place for the value is NULL"));
    }
    match name(number) {
        None => status::refused(UNKNOWN),
        Some(Name::Endpoint(option)) => {
            // SAFETY: by the contract above.
            guard::on_endpoint(unsafe { handles::endpoint(handle.cast()) }, |cell| unsafe {
                get_endpoint(cell, option, val)
            })
        }
        Some(Name::Connection(option)) => {
            let pointer = handle.cast::<ConnectionCell>();
            // SAFETY: by the contract above.
            guard::on_connection_at_length(unsafe { handles::connection(pointer) }, |named| {
                let got = named.endpoint.with(|_, _| {
                    let cell = named.live().ok_or(OptionError::Disconnected)?;
                    Ok::<_, OptionError>(field(cell, option).load(Ordering::Relaxed))
                })?;
                // SAFETY: by the contract above.
                unsafe { handles::store(val.cast(), got?) }
            })
        }
    }
}

/// # Safety
///
/// `val` is writable for the option's type.
unsafe fn get_endpoint(cell: &EndpointCell, option: EndpointOption, val: *mut c_void) -> Result<(), Refusal> {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let value: u32 = match option {
        EndpointOption::SendTimeout => cell.with(|core, _| core.send_timeout())?,
        EndpointOption::KeepaliveTimeout => cell.with(|core, _| core.keepalive())?,
        EndpointOption::RecvBufCount => cell.with(|core, _| count(core.recv_count().0))?,
        EndpointOption::SendBufCount => cell.with(|core, _| count(core.send_count().0))?,
        EndpointOption::Uri => {
            let uri = cell.with(|_, transport| status::c_string(transport.uri()))?;
            // SAFETY: a NUL-terminated string; the copy comes from malloc, as the program frees it.
            let copy: *mut c_char = unsafe { libc::strdup(uri.as_ptr()) };
            if copy.is_null() {
                return Err(Refusal::NoMemory);
            }
            // SAFETY: by the contract above.
            return unsafe { handles::store(val.cast(), copy) };
        }
        EndpointOption::RmaAlign => {
            let alignment = cell.with(|_, transport| transport.alignment())?;
            // SAFETY: by the contract above.
            return unsafe { handles::store(val.cast::<Alignment>(), alignment) };
        }
    };
    // SAFETY: by the contract above.
    unsafe { handles::store(val.cast(), value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_names_the_option_with_that_value() {
        for number in 0..16 {
            let found = name(number).map(|name| match name {
                Name::Endpoint(option) => option as u32,
                Name::Connection(option) => option as u32,
            });
            assert_eq!(found, (number < 8).then_some(number));
        }
    }
}
