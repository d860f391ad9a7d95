//! Room for messages that a program writes before it sends them (`ccix.h`).

use crate::arguments::MISSING;
use crate::handles::Handle;
use crate::send::flags;
use crate::{guard, handles};
use cci::__binding::Out;
use cci::__binding::{self as raw, ConnectionCell, EndpointCell, Flags};
use std::ffi::{c_int, c_void};

#[unsafe(no_mangle)]
extern "C" fn ccix_reserve(
    connection: Handle<ConnectionCell>,
    length: u32,
    ptr: Out<'_, *mut c_void>,
    room: Out<'_, u64>,
) -> c_int {
    guard::on_connection(connection.get(), |named| {
        let (ptr, room) = (ptr.variable(MISSING)?, room.variable(MISSING)?);
        let reserved = raw::reserve(named.endpoint, || named.live(), length as usize)?;
        // The endpoint keeps the memory until the room is given back.
        ptr.put(std::ptr::with_exposed_provenance_mut(reserved.memory.start()));
        room.put(reserved.number);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn ccix_commit(
    connection: Handle<ConnectionCell>,
    room: u64,
    length: u32,
    context: *const c_void,
    bits: c_int,
) -> c_int {
    guard::on_connection(connection.get(), |named| {
        let (flags, message) = (flags(bits)?, (room, length as usize));
        if flags.has(Flags::BLOCKING) {
            return Ok(raw::commit_blocking(named.endpoint, || named.live(), message, flags)?);
        }
        Ok(raw::commit(named.endpoint, || named.live(), message, handles::context(context), flags)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn ccix_cancel(endpoint: Handle<EndpointCell>, room: u64) -> c_int {
    guard::on_endpoint(endpoint.get(), |cell| Ok(raw::cancel(cell, room)?))
}
