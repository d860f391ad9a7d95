//! Arguments of calls, as the engine has them.

use cci_fabric::{Code, RECORD, Segments};
use libc::iovec;
use std::ffi::{c_int, c_void};
use std::time::Duration;

/// The program's memory.
///
/// # Safety
///
/// The program leaves `len` bytes from `at` on to the operation until that has ended.
#[inline]
pub(super) unsafe fn memory(at: *const c_void, len: usize) -> Result<Segments, Code> {
    match (at.is_null(), len) {
        (_, 0) => Ok(Segments::None),
        (true, _) => Err(Code::Invalid),
        // SAFETY: the caller's promise.
        (false, _) => Ok(Segments::One(unsafe { cci::Memory::new(at.cast_mut().cast(), len as u64) })),
    }
}

/// The program's memory, in pieces.
///
/// # Safety
///
/// `pieces` leads to `count` pieces, each as [`memory`] has it.
pub(super) unsafe fn memories(pieces: *const iovec, count: usize) -> Result<Segments, Code> {
    if count > cci_fabric::MAX_SEGMENTS || count > 0 && pieces.is_null() {
        return Err(Code::Invalid);
    }
    let mut all = Vec::new();
    for at in 0..count {
        // SAFETY: the caller's promise.
        let piece = unsafe { pieces.add(at).read() };
        // SAFETY: likewise.
        if let Segments::One(piece) = unsafe { memory(piece.iov_base, piece.iov_len) }? {
            all.push(piece);
        }
    }
    Ok(match all.len() {
        0 => Segments::None,
        1 => all.pop().map_or(Segments::None, Segments::One),
        _ => Segments::Many(all),
    })
}

/// The bytes of a call that copies them.
///
/// # Safety
///
/// `at` leads to `len` bytes for the time of the call.
#[inline]
pub(super) unsafe fn bytes<'a>(at: *const c_void, len: usize) -> Result<&'a [u8], Code> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Code::Invalid),
        (false, len) if len > cci_fabric::INJECT_SIZE => Err(Code::MessageSize),
        // SAFETY: the caller's promise.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) }),
    }
}

/// A context of the program, as the engine has it.
#[inline]
pub(super) fn number(context: *mut c_void) -> u64 {
    context.expose_provenance() as u64
}

/// The program's context of a number.
#[inline]
pub(super) fn pointer(number: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(number as usize)
}

/// A limit as libfabric has it: negative is none.
pub(super) fn milliseconds(limit: c_int) -> Option<Duration> {
    u64::try_from(limit).ok().map(Duration::from_millis)
}

/// Gives as much of a record as there is room for, and its length. False: it was too much.
///
/// # Safety
///
/// `len` leads to a number, and `to` to as many bytes.
pub(super) unsafe fn put_record(record: &[u8; RECORD], to: *mut c_void, len: *mut usize) -> bool {
    // SAFETY: the caller's promise.
    let room = unsafe { len.replace(RECORD) };
    let fits = if to.is_null() { 0 } else { room.min(RECORD) };
    // SAFETY: likewise.
    unsafe { to.cast::<u8>().copy_from(record.as_ptr(), fits) };
    fits == RECORD
}
