//! Tagged messages (fi_tagged(3)).

use super::arguments::{bytes, memories, memory, number};
use super::kinds::{OfEndpoint, own};
use super::message::{RECEIVE, flags_of};
use super::object::begun;
use cci_fabric::{Code, Receive, Segments, Send, Space, What};
use cci_fabric_sys::*;
use libc::iovec;
use std::ffi::c_void;

pub(super) static TABLE: fi_ops_tagged = fi_ops_tagged {
    size: size_of::<fi_ops_tagged>(),
    recv: Some(receive),
    recvv: Some(receive_pieces),
    recvmsg: Some(receive_as),
    send: Some(send),
    sendv: Some(send_pieces),
    sendmsg: Some(send_as),
    inject: Some(inject),
    senddata: Some(send_data),
    injectdata: Some(inject_data),
};

const fn post(segments: Segments, from: u64, (tag, ignore): (u64, u64), context: u64, flags: u64) -> Receive {
    Receive { segments, from, space: Space::Tagged, tag, ignore, context, flags }
}

fn give<'a>(what: What<'a>, to: u64, (tag, data): (u64, Option<u64>), context: u64, flags: u64) -> Send<'a> {
    Send { what, to, space: Space::Tagged, tag, data, context, flags }
}

/// # Safety
///
/// As fi_tagged(3) states, as all of these: the memory is the endpoint's until the operation has
/// ended.
unsafe extern "C" fn receive(
    ep: *mut fid_ep,
    at: *mut c_void,
    len: usize,
    _: *mut c_void,
    from: fi_addr_t,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    begun(|| {
        // SAFETY: the caller's promise.
        let (own, segments) = unsafe { (own(ep), memory(at, len)?) };
        own.endpoint.receive(post(segments, from, (tag, ignore), number(context), own.receive() & !FI_MULTI_RECV))
    })
}

/// # Safety
///
/// As [`receive`].
unsafe extern "C" fn receive_pieces(
    ep: *mut fid_ep,
    pieces: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    from: fi_addr_t,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    begun(|| {
        // SAFETY: the caller's promise.
        let (own, segments) = unsafe { (own(ep), memories(pieces, count)?) };
        own.endpoint.receive(post(segments, from, (tag, ignore), number(context), own.receive() & !FI_MULTI_RECV))
    })
}

/// # Safety
///
/// As [`receive`].
unsafe extern "C" fn receive_as(ep: *mut fid_ep, of: *const fi_msg_tagged, flags: u64) -> isize {
    begun(|| {
        // SAFETY: the caller's promise.
        let (own, of) = unsafe { (own(ep), of.as_ref().ok_or(Code::Invalid)?) };
        // What is looked for, or dropped, has no memory.
        let segments = if flags & (FI_PEEK | FI_DISCARD) != 0 {
            Segments::None
        } else {
            // SAFETY: the caller's promise.
            unsafe { memories(of.msg_iov, of.iov_count) }?
        };
        own.endpoint.receive(post(segments, of.addr, (of.tag, of.ignore), number(of.context), flags & RECEIVE))
    })
}

fn send_it(
    own: &OfEndpoint,
    segments: Segments,
    to: u64,
    of: (u64, Option<u64>),
    context: *mut c_void,
) -> Result<(), Code> {
    own.endpoint.send(give(What::Memory(segments), to, of, number(context), own.transmit()))
}

/// # Safety
///
/// As [`receive`].
unsafe extern "C" fn send(
    ep: *mut fid_ep,
    at: *const c_void,
    len: usize,
    _: *mut c_void,
    to: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> isize {
    begun(|| {
        // SAFETY: the caller's promise.
        let (own, segments) = unsafe { (own(ep), memory(at, len)?) };
        send_it(own, segments, to, (tag, None), context)
    })
}

/// # Safety
///
/// As [`receive`].
unsafe extern "C" fn send_pieces(
    ep: *mut fid_ep,
    pieces: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    to: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> isize {
    begun(|| {
        // SAFETY: the caller's promise.
        let (own, segments) = unsafe { (own(ep), memories(pieces, count)?) };
        send_it(own, segments, to, (tag, None), context)
    })
}

/// # Safety
///
/// As [`receive`].
unsafe extern "C" fn send_as(ep: *mut fid_ep, of: *const fi_msg_tagged, flags: u64) -> isize {
    begun(|| {
        // SAFETY: the caller's promise.
        let (own, of) = unsafe { (own(ep), of.as_ref().ok_or(Code::Invalid)?) };
        // SAFETY: likewise.
        let segments = unsafe { memories(of.msg_iov, of.iov_count) }?;
        let (flags, has_data) = flags_of(flags);
        let data = has_data.then_some(of.data);
        own.endpoint.send(give(What::Memory(segments), of.addr, (of.tag, data), number(of.context), flags))
    })
}

/// # Safety
///
/// As [`receive`].
unsafe extern "C" fn send_data(
    ep: *mut fid_ep,
    at: *const c_void,
    len: usize,
    _: *mut c_void,
    data: u64,
    to: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> isize {
    begun(|| {
        // SAFETY: the caller's promise.
        let (own, segments) = unsafe { (own(ep), memory(at, len)?) };
        send_it(own, segments, to, (tag, Some(data)), context)
    })
}

/// # Safety
///
/// As fi_tagged(3) states: `at` leads to `len` bytes for the time of the call.
unsafe extern "C" fn inject(ep: *mut fid_ep, at: *const c_void, len: usize, to: fi_addr_t, tag: u64) -> isize {
    begun(|| {
        // SAFETY: the caller's promise.
        let (own, bytes) = unsafe { (own(ep), bytes(at, len)?) };
        own.endpoint.send(give(What::Bytes(bytes), to, (tag, None), 0, FI_INJECT))
    })
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
    tag: u64,
) -> isize {
    begun(|| {
        // SAFETY: the caller's promise.
        let (own, bytes) = unsafe { (own(ep), bytes(at, len)?) };
        own.endpoint.send(give(What::Bytes(bytes), to, (tag, Some(data)), 0, FI_INJECT))
    })
}
