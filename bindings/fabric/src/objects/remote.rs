//! Remote memory (fi_rma(3)).

use super::arguments::{bytes, memories, memory, number};
use super::kinds::own;
use super::message::flags_of;
use super::object::begun;
use cci_fabric::{Code, Remote, Segments};
use cci_fabric_sys::*;
use libc::iovec;
use std::ffi::c_void;

pub(super) static TABLE: fi_ops_rma = fi_ops_rma {
    size: size_of::<fi_ops_rma>(),
    read: Some(read),
    readv: Some(read_pieces),
    readmsg: Some(read_as),
    write: Some(write),
    writev: Some(write_pieces),
    writemsg: Some(write_as),
    inject: Some(inject),
    writedata: Some(write_data),
    injectdata: Some(inject_data),
};

/// An access of one range of the peer's memory.
///
/// # Safety
///
/// libfabric calls it for endpoints alone.
unsafe fn access(
    ep: *mut fid_ep,
    segments: Segments,
    to: u64,
    (offset, key): (u64, u64),
    (is_write, data): (bool, Option<u64>),
    context: *mut c_void,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let own = unsafe { own(ep) };
    let (pieces, context, flags) = (vec![(offset, segments.len(), key)], number(context), own.transmit());
    own.endpoint.remote(Remote { segments, to, pieces, is_write, data, context, flags })
}

/// # Safety
///
/// As fi_rma(3) states, as all of these: the memory is the endpoint's until the operation has
/// ended.
unsafe extern "C" fn read(
    ep: *mut fid_ep,
    at: *mut c_void,
    len: usize,
    _: *mut c_void,
    from: fi_addr_t,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    begun(|| unsafe { access(ep, memory(at, len)?, from, (offset, key), (false, None), context) })
}

/// # Safety
///
/// As [`read`].
unsafe extern "C" fn read_pieces(
    ep: *mut fid_ep,
    pieces: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    from: fi_addr_t,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    begun(|| unsafe { access(ep, memories(pieces, count)?, from, (offset, key), (false, None), context) })
}

/// # Safety
///
/// As [`read`].
unsafe extern "C" fn read_as(ep: *mut fid_ep, of: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: the caller's promise.
    begun(|| unsafe { access_as(ep, of, flags, false) })
}

/// # Safety
///
/// As [`read`].
unsafe fn access_as(ep: *mut fid_ep, of: *const fi_msg_rma, flags: u64, is_write: bool) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let (own, of) = unsafe { (own(ep), of.as_ref().ok_or(Code::Invalid)?) };
    if of.rma_iov_count > cci_fabric::MAX_SEGMENTS || of.rma_iov_count > 0 && of.rma_iov.is_null() {
        return Err(Code::Invalid);
    }
    // SAFETY: the caller's promise.
    let segments = unsafe { memories(of.msg_iov, of.iov_count) }?;
    let pieces = (0..of.rma_iov_count).map(|at| {
        // SAFETY: the caller's promise.
        let piece = unsafe { of.rma_iov.add(at).read() };
        (piece.addr, piece.len as u64, piece.key)
    });
    let (pieces, (flags, has_data)) = (pieces.collect(), flags_of(flags));
    let (data, context) = ((has_data && is_write).then_some(of.data), number(of.context));
    own.endpoint.remote(Remote { segments, to: of.addr, pieces, is_write, data, context, flags })
}

/// # Safety
///
/// As [`read`].
unsafe extern "C" fn write(
    ep: *mut fid_ep,
    at: *const c_void,
    len: usize,
    _: *mut c_void,
    to: fi_addr_t,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    begun(|| unsafe { access(ep, memory(at, len)?, to, (offset, key), (true, None), context) })
}

/// # Safety
///
/// As [`read`].
unsafe extern "C" fn write_pieces(
    ep: *mut fid_ep,
    pieces: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    to: fi_addr_t,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    begun(|| unsafe { access(ep, memories(pieces, count)?, to, (offset, key), (true, None), context) })
}

/// # Safety
///
/// As [`read`].
unsafe extern "C" fn write_as(ep: *mut fid_ep, of: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: the caller's promise.
    begun(|| unsafe { access_as(ep, of, flags, true) })
}

/// # Safety
///
/// As [`read`].
unsafe extern "C" fn write_data(
    ep: *mut fid_ep,
    at: *const c_void,
    len: usize,
    _: *mut c_void,
    data: u64,
    to: fi_addr_t,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    begun(|| unsafe { access(ep, memory(at, len)?, to, (offset, key), (true, Some(data)), context) })
}

/// # Safety
///
/// As fi_rma(3) states: `at` leads to `len` bytes for the time of the call.
unsafe extern "C" fn inject(
    ep: *mut fid_ep,
    at: *const c_void,
    len: usize,
    to: fi_addr_t,
    offset: u64,
    key: u64,
) -> isize {
    // SAFETY: the caller's promise.
    begun(|| unsafe { own(ep).endpoint.inject_write(bytes(at, len)?, to, (offset, key), None) })
}

/// # Safety
///
/// As [`inject`].
unsafe extern "C" fn inject_data(
    ep: *mut fid_ep,
    at: *const c_void,
    len: usize,
    data: u64,
    to: fi_addr_t,
    offset: u64,
    key: u64,
) -> isize {
    // SAFETY: the caller's promise.
    begun(|| unsafe { own(ep).endpoint.inject_write(bytes(at, len)?, to, (offset, key), Some(data)) })
}
