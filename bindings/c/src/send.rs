//! Messages.

use crate::handles::{Handle, Named};
use crate::status::Refusal;
use crate::{arguments, guard, handles};
use cci::__binding::{self as raw, ConnectionCell, EndpointCell, Flags, Message, Outside, Source, Sources};
use cci::SendError;
use std::ffi::{c_int, c_void};

/// Flags of `cci_rma` that mean nothing to a send: programs pass the flags of their RMA to every
/// send.
const NOT_OF_SEND: u32 = Flags::READ.bits() | Flags::WRITE.bits() | Flags::FENCE.bits();

/// The flags of a send, without those that do not apply. A bit that is no flag at all is refused.
#[inline(always)]
pub(crate) fn flags(bits: c_int) -> Result<Flags, Refusal> {
    Flags::for_send(bits.cast_unsigned() & !NOT_OF_SEND).ok_or(Refusal::Send(SendError::BadFlags))
}

/// # Safety
///
/// `msg_ptr` is NULL, or `msg_len` bytes are readable there during the call.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_send(
    connection: Handle<ConnectionCell>,
    msg_ptr: *const c_void,
    msg_len: u32,
    context: *const c_void,
    bits: c_int,
) -> c_int {
    let flags = Flags::from_bits(bits.cast_unsigned());
    let mut outside = Outside::default();
    if flags.are_plain()
        && !msg_ptr.is_null()
        && let Ok(named) = connection.get()
    {
        match named.enter_taking(msg_len as usize) {
            Ok((entered, cell)) => {
                // SAFETY: readable during the call, by the contract above, and not NULL; 32 bits of
                // length fit an object.
                let message = unsafe { Source::new(msg_ptr.cast(), msg_len as usize) };
                let context = handles::context(context);
                return guard::on(Some(named.endpoint), || Ok(entered.post(cell, message, context, flags)?));
            }
            Err(left) => outside = left,
        }
    }
    // SAFETY: NULL, or readable during the call, by the contract above.
    unsafe { send_any(connection, msg_ptr, msg_len, context, bits, outside) }
}

/// `cci_send`, whatever its arguments. Apart from it, which needs fewer registers without this.
///
/// # Safety
///
/// As `cci_send`.
#[inline(never)]
unsafe fn send_any(
    connection: Handle<ConnectionCell>,
    msg_ptr: *const c_void,
    msg_len: u32,
    context: *const c_void,
    bits: c_int,
    outside: Outside<'static>,
) -> c_int {
    drop(outside);
    guard::on_connection(connection.get(), |named| {
        // SAFETY: NULL, which `bytes` refuses, or readable during the call, by the contract above.
        let message = Message::One(unsafe { arguments::bytes(msg_ptr, msg_len) }?);
        send(named, message, context, flags(bits)?)
    })
}

/// Sends a message; with BLOCKING returns when it has ended.
fn send(named: Named, message: Message<'_>, context: *const c_void, flags: Flags) -> Result<(), Refusal> {
    if flags.has(Flags::BLOCKING) {
        Ok(raw::send_blocking(named.endpoint, || named.live(), message, flags)?)
    } else {
        Ok(raw::send(named.endpoint, || named.live(), message, handles::context(context), flags)?)
    }
}

#[unsafe(no_mangle)]
extern "C" fn ccix_set_answer_buffers(endpoint: Handle<EndpointCell>, count: u32) -> c_int {
    guard::on_endpoint(endpoint.get(), |cell| Ok(raw::set_answer_buffers(cell, count)?))
}

/// # Safety
///
/// As `cci_send`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_answer(
    connection: Handle<ConnectionCell>,
    msg_ptr: *const c_void,
    msg_len: u32,
    context: *const c_void,
    bits: c_int,
) -> c_int {
    guard::on_connection(connection.get(), |named| {
        let flags = flags(bits)?;
        if flags.has(Flags::BLOCKING) {
            return Err(Refusal::Send(SendError::BadFlags));
        }
        // SAFETY: NULL, which `bytes` refuses, or readable during the call, by the contract above.
        let message = Message::One(unsafe { arguments::bytes(msg_ptr, msg_len) }?);
        Ok(raw::send_answer(named.endpoint, || named.live(), message, handles::context(context), flags)?)
    })
}

/// # Safety
///
/// `data` is NULL, or `iovcnt` entries are readable there, and what they name, during the call.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_sendv(
    connection: Handle<ConnectionCell>,
    data: *const libc::iovec,
    iovcnt: u32,
    context: *const c_void,
    bits: c_int,
) -> c_int {
    guard::on_connection(connection.get(), |named| {
        let flags = flags(bits)?;
        // SAFETY: NULL, which `parts` refuses, or readable during the call, by the contract above.
        let parts = unsafe { parts(data, iovcnt) }?;
        let message = Message::Many(parts, total(parts)?);
        send(named, message, context, flags)
    })
}

/// # Safety
///
/// `start` is NULL, or `count` entries are readable there, and what they name, while the result is
/// used.
unsafe fn parts<'a>(start: *const libc::iovec, count: u32) -> Result<Sources<'a>, Refusal> {
    if start.is_null() && count > 0 {
        return Err(Refusal::Argument("the list of parts is NULL and not empty"));
    }
    // SAFETY: readable while the result is used, by the contract above, and NULL only without
    // entries; 32 bits of entries fit an object, and a source has the layout of an iovec.
    Ok(unsafe { Sources::new(start.cast(), count as usize) })
}

/// Bytes of all parts, each of which is there.
fn total(parts: Sources<'_>) -> Result<usize, Refusal> {
    let mut sum = 0usize;
    for part in parts.iter() {
        if part.is_missing() {
            return Err(Refusal::Argument("a part of the message is NULL and its length is not 0"));
        }
        sum = sum.checked_add(part.len()).ok_or(SendError::TooLong)?;
    }
    // No part is longer than an object, and no message longer than its length field.
    if u32::try_from(sum).is_err() { Err(SendError::TooLong.into()) } else { Ok(sum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(len: usize) -> libc::iovec {
        libc::iovec { iov_base: std::ptr::dangling_mut::<u8>().cast(), iov_len: len }
    }

    fn total(entries: &[libc::iovec]) -> Result<usize, Refusal> {
        // SAFETY: the entries are borrowed, and nobody reads what they name.
        super::total(unsafe { parts(entries.as_ptr(), entries.len().try_into().expect("few")) }?)
    }

    #[test]
    fn lengths_of_parts_do_not_wrap() {
        assert_eq!(total(&[entry(1), entry(2)]).ok(), Some(3));
        assert_eq!(total(&[]).ok(), Some(0));
        assert!(matches!(total(&[entry(usize::MAX), entry(2)]), Err(Refusal::Send(SendError::TooLong))));
        assert!(matches!(total(&[entry(1 << 32)]), Err(Refusal::Send(SendError::TooLong))));
    }

    #[test]
    fn flags_of_an_rma_are_ignored() {
        let rma = (Flags::READ | Flags::WRITE | Flags::FENCE).bits().cast_signed();
        assert_eq!(flags(rma).ok(), Some(Flags::NONE));
        let silent = Flags::SILENT.bits().cast_signed();
        assert_eq!(flags(rma | silent).ok(), Some(Flags::SILENT));
        for no_flag in [4, 128, 1 << 30, i32::MIN] {
            assert!(matches!(flags(no_flag), Err(Refusal::Send(SendError::BadFlags))), "{no_flag:#x}");
        }
    }

    #[test]
    fn only_an_empty_part_may_be_null() {
        let null = |iov_len| libc::iovec { iov_base: std::ptr::null_mut(), iov_len };
        assert_eq!(total(&[null(0), entry(2)]).ok(), Some(2));
        assert!(matches!(total(&[null(1)]), Err(Refusal::Argument(_))));
    }
}
