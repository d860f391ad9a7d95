//! Messages of any length (`ccix.h`).

use crate::send::flags;
use crate::status::Refusal;
use crate::{guard, handles};
use cci::__binding::{self as raw, ConnectionCell, EndpointCell, Flags};
use cci::Memory;
use std::ffi::{c_int, c_void};

/// # Safety
///
/// `connection` is NULL or was a connection once; `length` bytes at `ptr` stay readable until the
/// operation has ended.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_send_large(
    connection: *const ConnectionCell,
    ptr: *const c_void,
    length: u64,
    context: *const c_void,
    bits: c_int,
) -> c_int {
    // SAFETY: by the contract above.
    guard::on_connection(unsafe { handles::connection(connection) }, |named| {
        let flags = flags(bits)?;
        if ptr.is_null() && length > 0 {
            return Err(Refusal::Argument("the buffer is NULL and its length is not 0"));
        }
        // SAFETY: by the contract above; the library only reads it.
        let memory = if length == 0 { Memory::none() } else { unsafe { Memory::new(ptr.cast_mut().cast(), length) } };
        if flags.has(Flags::BLOCKING) {
            return Ok(raw::send_large_blocking(named.endpoint, || named.live(), &memory, flags)?);
        }
        Ok(raw::send_large(named.endpoint, || named.live(), &memory, handles::context(context), flags)?)
    })
}

/// # Safety
///
/// `endpoint` is NULL or was an endpoint once.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_set_large_limit(endpoint: *const EndpointCell, limit: u64) -> c_int {
    // SAFETY: by the contract above.
    guard::on_endpoint(unsafe { handles::endpoint(endpoint) }, |cell| Ok(raw::set_large_limit(cell, limit)?))
}
