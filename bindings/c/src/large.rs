//! Messages of any length (`ccix.h`).

use crate::handles::Handle;
use crate::send::flags;
use crate::status::Refusal;
use crate::{guard, handles};
use cci::__binding::{self as raw, ConnectionCell, EndpointCell, Flags};
use cci::Memory;
use std::ffi::{c_int, c_void};

/// # Safety
///
/// `length` bytes at `ptr` stay readable until the operation has ended.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_send_large(
    connection: Handle<ConnectionCell>,
    ptr: *const c_void,
    length: u64,
    context: *const c_void,
    bits: c_int,
) -> c_int {
    guard::on_connection(connection.get(), |named| {
        let flags = flags(bits)?;
        if ptr.is_null() && length > 0 {
            return Err(Refusal::Argument("the buffer is NULL and its length is not 0"));
        }
        // SAFETY: not NULL, and readable until the operation has ended, by the contract above; the
        // library only reads it.
        let memory = if length == 0 { Memory::none() } else { unsafe { Memory::new(ptr.cast_mut().cast(), length) } };
        if flags.has(Flags::BLOCKING) {
            return Ok(raw::send_large_blocking(named.endpoint, || named.live(), &memory, flags)?);
        }
        Ok(raw::send_large(named.endpoint, || named.live(), &memory, handles::context(context), flags)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn ccix_set_large_limit(endpoint: Handle<EndpointCell>, limit: u64) -> c_int {
    guard::on_endpoint(endpoint.get(), |cell| Ok(raw::set_large_limit(cell, limit)?))
}
