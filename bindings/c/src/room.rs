//! Room for messages that a program writes before it sends them (`ccix.h`).

use crate::send::flags;
use crate::{guard, handles};
use cci::__binding::{self as raw, ConnectionCell, EndpointCell, Flags};
use std::ffi::{c_int, c_void};

/// # Safety
///
/// `connection` is NULL or was a connection once; `ptr` and `room` are NULL or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_reserve(
    connection: *const ConnectionCell,
    length: u32,
    ptr: *mut *mut c_void,
    room: *mut u64,
) -> c_int {
    // SAFETY: by the contract above.
    guard::on_connection(unsafe { handles::connection(connection) }, |named| {
        handles::present(ptr)?;
        handles::present(room)?;
        let reserved = raw::reserve(named.endpoint, || named.live(), length as usize)?;
        // The endpoint keeps the memory until the room is given back.
        let start = std::ptr::with_exposed_provenance_mut(reserved.memory.start());
        // SAFETY: writable by the contract above.
        unsafe {
            handles::store(ptr, start)?;
            handles::store(room, reserved.number)
        }
    })
}

/// # Safety
///
/// `connection` is NULL or was a connection once.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_commit(
    connection: *const ConnectionCell,
    room: u64,
    length: u32,
    context: *const c_void,
    bits: c_int,
) -> c_int {
    // SAFETY: by the contract above.
    guard::on_connection(unsafe { handles::connection(connection) }, |named| {
        let (flags, message) = (flags(bits)?, (room, length as usize));
        if flags.has(Flags::BLOCKING) {
            return Ok(raw::commit_blocking(named.endpoint, || named.live(), message, flags)?);
        }
        Ok(raw::commit(named.endpoint, || named.live(), message, handles::context(context), flags)?)
    })
}

/// # Safety
///
/// `endpoint` is NULL or was an endpoint once.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_cancel(endpoint: *const EndpointCell, room: u64) -> c_int {
    // SAFETY: by the contract above.
    guard::on_endpoint(unsafe { handles::endpoint(endpoint) }, |cell| Ok(raw::cancel(cell, room)?))
}
