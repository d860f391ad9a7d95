//! Options of endpoints and connections.

use crate::arguments::MISSING;
use crate::handles::Handle;
use crate::status::Refusal;
use crate::{guard, status};
use cci::__binding::Out;
use cci::__binding::{self as raw, ConnectionCell, EndpointCell, OptionValue, Timeout};
use cci::{Alignment, ConnectionOption, EndpointOption};
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
    // SAFETY: not NULL, so readable by the contract above: a value that can be set has 32 bits.
    let value = || unsafe { val.cast::<u32>().read_unaligned() };
    match name(number) {
        None => status::refused(UNKNOWN),
        Some(Name::Endpoint(option)) => {
            // SAFETY: NULL, or once an endpoint of this library, by the contract above.
            let endpoint = unsafe { Handle::<EndpointCell>::new(handle.cast()) };
            guard::on_endpoint(endpoint.get(), |cell| Ok(raw::set_endpoint_option(cell, option, value)?))
        }
        Some(Name::Connection(option)) => {
            // SAFETY: NULL, or once a connection of this library, by the contract above.
            let connection = unsafe { Handle::<ConnectionCell>::new(handle.cast()) };
            guard::on_connection_at_length(connection.get(), |named| {
                Ok(raw::set_connection_option(named.endpoint, || named.live(), option, Timeout::from_micros(value()))?)
            })
        }
    }
}

/// # Safety
///
/// `handle` is NULL, or was what the option belongs to once; `val` is NULL or writable for the
/// option's type.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_get_opt(handle: *const c_void, number: c_uint, val: *mut c_void) -> c_int {
    if val.is_null() {
        return status::refused(Refusal::Argument("the place for the value is NULL"));
    }
    match name(number) {
        None => status::refused(UNKNOWN),
        Some(Name::Endpoint(option)) => {
            // SAFETY: NULL, or once an endpoint of this library, by the contract above.
            let endpoint = unsafe { Handle::<EndpointCell>::new(handle.cast()) };
            // SAFETY: not NULL, so writable for the type of the option, by the contract above.
            guard::on_endpoint(endpoint.get(), |cell| unsafe { get_endpoint(cell, option, val) })
        }
        Some(Name::Connection(option)) => {
            // SAFETY: NULL, or once a connection of this library, by the contract above.
            let connection = unsafe { Handle::<ConnectionCell>::new(handle.cast()) };
            guard::on_connection_at_length(connection.get(), |named| {
                let got = raw::connection_option(named.endpoint, || named.live(), option)?;
                // SAFETY: writable for 32 bits, which is the type of options of connections.
                unsafe { give::<u32>(val, got.micros()) }
            })
        }
    }
}

/// # Safety
///
/// `val` is writable for the option's type.
unsafe fn get_endpoint(cell: &EndpointCell, option: EndpointOption, val: *mut c_void) -> Result<(), Refusal> {
    match raw::endpoint_option(cell, option)? {
        // SAFETY: writable for 32 bits, which is the type of an option that is a number.
        OptionValue::Number(number) => unsafe { give::<u32>(val, number) },
        OptionValue::Uri(uri) => {
            // SAFETY: a NUL-terminated string; the copy comes from malloc, as the program frees it.
            let copy: *mut c_char = unsafe { libc::strdup(status::c_string(&uri).as_ptr()) };
            if copy.is_null() {
                return Err(Refusal::NoMemory);
            }
            // SAFETY: writable for a pointer, which is the type of an option that is a text.
            unsafe { give::<*mut c_char>(val, copy) }
        }
        // SAFETY: writable for an `Alignment`, which is the type of this option.
        OptionValue::Alignment(alignment) => unsafe { give::<Alignment>(val, alignment) },
    }
}

/// # Safety
///
/// `val` is NULL, or writable for a `T`. Callers name `T`, so that no other width is inferred.
unsafe fn give<T>(val: *mut c_void, value: T) -> Result<(), Refusal> {
    // SAFETY: NULL, or writable for a `T` during the call, by the contract above.
    unsafe { Out::new(val.cast()) }.variable(MISSING)?.put(value);
    Ok(())
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
