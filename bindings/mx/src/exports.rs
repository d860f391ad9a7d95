//! The symbols.

use crate::answer::{ErrorHandler, NULL};
use crate::boundary::answer;
use crate::calls::{self, UnexpectedHandler, limit};
use crate::layout::{CAddress, CParameter, CSegment, CStatus};
use crate::registry::{Handle, with_end};
use crate::{information, names};
use cci_mem::arguments::{In, Out, Text};
use cci_mem::boundary::uncancelled;
use cci_mx::Match;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);

/// Exports calls: the symbol, its signature and what it does. After `uncancelled:` stand those that
/// open, close or look up: no thread is cancelled in them.
macro_rules! export {
    (uncancelled: $($symbol:ident $arguments:tt => $body:expr;)*) => {
        export! { $($symbol $arguments => uncancelled(|| $body);)* }
    };
    ($($symbol:ident ($($argument:ident: $type:ty),*) => $body:expr;)*) => {
        $(
            /// # Safety
            ///
            /// What the header states of the pointers.
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments)]
            unsafe extern "C" fn $symbol($($argument: $type),*) -> c_uint {
                answer(stringify!($symbol), None, || $body)
            }
        )*
    };
}

/// The same for calls on an endpoint, whose error handler is asked.
macro_rules! export_of_endpoint {
    (uncancelled: $($symbol:ident $arguments:tt => $body:expr;)*) => {
        export_of_endpoint! { $($symbol $arguments => uncancelled(|| $body);)* }
    };
    ($($symbol:ident ($end:ident, $($argument:ident: $type:ty),*) => $body:expr;)*) => {
        $(
            /// # Safety
            ///
            /// What the header states of the pointers.
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments)]
            unsafe extern "C" fn $symbol(endpoint: Handle, $($argument: $type),*) -> c_uint {
                with_end(endpoint, |found| {
                    answer(stringify!($symbol), found.as_ref().ok().copied(), || found.and_then(|$end| $body))
                })
            }
        )*
    };
}

export! {
    uncancelled:
    mx__init_api(api: c_int) => calls::init(api);
    mx_finalize() => calls::finalize();
    mx_open_endpoint(board: u32, id: u32, key: u32, list: *const CParameter, count: u32, endpoint: Out<'_, Handle>) => {
        // SAFETY: `list` is NULL or leads to `count` parameters, each with the value that its key
        // names.
        unsafe { calls::open((board, id, key), (list, count), endpoint) }
    };
    mx_close_endpoint(endpoint: Handle) => calls::close(endpoint);
    mx_hostname_to_nic_id(name: Text<'_>, nic: Out<'_, u64>) => names::nic_of_host(name, nic);
    mx_board_number_to_nic_id(board: u32, nic: Out<'_, u64>) => names::nic_of_board(board, nic);
    mx_nic_id_to_board_number(nic: u64, board: Out<'_, u32>) => names::board_of_nic(nic, board);
    mx_nic_id_to_hostname(nic: u64, name: *mut c_char) => {
        // SAFETY: `name` is NULL or leads to room for `MX_MAX_HOSTNAME_LEN` bytes.
        unsafe { names::host_of_nic(nic, name) }
    };
}

export! {
    mx_set_error_handler(handler: Option<ErrorHandler>) => calls::set_error_handler(handler);
    mx_context(request: In<'_, Handle>, context: Out<'_, *mut c_void>) => calls::context(request, context);
    mx_decompose_endpoint_addr(address: CAddress, nic: Out<'_, u64>, id: Out<'_, u32>) => names::take_apart(address, nic, id, None);
    mx_decompose_endpoint_addr2(address: CAddress, nic: Out<'_, u64>, id: Out<'_, u32>, session: Out<'_, u32>) => names::take_apart(address, nic, id, Some(session));
    mx_set_endpoint_addr_context(address: CAddress, context: *mut c_void) => names::set_context(address, context);
    mx_get_endpoint_addr_context(address: CAddress, context: Out<'_, *mut c_void>) => names::context(address, context);
}

export_of_endpoint! {
    uncancelled:
    mx_connect(end, nic: u64, id: u32, key: u32, timeout: u32, address: Out<'_, CAddress>) => calls::connect(end, (nic, id), key, timeout, address);
    mx_iconnect(end, nic: u64, id: u32, key: u32, bits: u64, context: *mut c_void, request: Out<'_, Handle>) => calls::iconnect(end, (nic, id), key, (bits, context), request);
    mx_disconnect(end, address: CAddress) => Ok(end.endpoint.disconnect(address.into())?);
}

export_of_endpoint! {
    mx_wakeup(end,) => Ok(end.endpoint.wake()?);
    mx_progress(end,) => Ok(end.endpoint.progress()?);
    mx_disable_progression(_end,) => Ok(());
    mx_reenable_progression(_end,) => Ok(());
    mx_isend(end, list: *const CSegment, count: u32, to: CAddress, bits: u64, context: *mut c_void, request: Out<'_, Handle>) => {
        // SAFETY: `list` is NULL or leads to `count` segments, whose memory stays mapped and
        // unchanged until the request has ended.
        unsafe { calls::send(end, (list, count), to, (bits, context), false, request) }
    };
    mx_issend(end, list: *const CSegment, count: u32, to: CAddress, bits: u64, context: *mut c_void, request: Out<'_, Handle>) => {
        // SAFETY: as for `mx_isend`.
        unsafe { calls::send(end, (list, count), to, (bits, context), true, request) }
    };
    mx_irecv(end, list: *const CSegment, count: u32, bits: u64, mask: u64, context: *mut c_void, request: Out<'_, Handle>) => {
        // SAFETY: `list` is NULL or leads to `count` segments, whose memory stays mapped, and is
        // the library's alone until the request has ended.
        unsafe { calls::receive(end, (list, count), Match { bits, mask }, context, request) }
    };
    mx_cancel(end, request: In<'_, Handle>, result: Out<'_, u32>) => calls::cancel(end, request, result);
    mx_test(end, request: In<'_, Handle>, status: Out<'_, CStatus>, result: Out<'_, u32>) => calls::wait(end, request, NOW, status, result);
    mx_wait(end, request: In<'_, Handle>, timeout: u32, status: Out<'_, CStatus>, result: Out<'_, u32>) => calls::wait(end, request, limit(timeout), status, result);
    mx_test_any(end, bits: u64, mask: u64, status: Out<'_, CStatus>, result: Out<'_, u32>) => calls::wait_any(end, Match { bits, mask }, NOW, status, result);
    mx_wait_any(end, timeout: u32, bits: u64, mask: u64, status: Out<'_, CStatus>, result: Out<'_, u32>) => calls::wait_any(end, Match { bits, mask }, limit(timeout), status, result);
    mx_ipeek(end, request: Out<'_, Handle>, result: Out<'_, u32>) => calls::peek(end, NOW, request, result);
    mx_peek(end, timeout: u32, request: Out<'_, Handle>, result: Out<'_, u32>) => calls::peek(end, limit(timeout), request, result);
    mx_iprobe(end, bits: u64, mask: u64, status: Out<'_, CStatus>, result: Out<'_, u32>) => calls::probe(end, Match { bits, mask }, NOW, status, result);
    mx_probe(end, timeout: u32, bits: u64, mask: u64, status: Out<'_, CStatus>, result: Out<'_, u32>) => calls::probe(end, Match { bits, mask }, limit(timeout), status, result);
    mx_ibuffered(end, request: In<'_, Handle>, result: Out<'_, u32>) => calls::buffered(end, request, NOW, result);
    mx_buffered(end, request: In<'_, Handle>, timeout: u32, result: Out<'_, u32>) => calls::buffered(end, request, limit(timeout), result);
    mx_set_request_timeout(end, request: Handle, timeout: u32) => calls::set_timeout(end, request, timeout);
    mx_forget(end, request: In<'_, Handle>) => calls::forget(end, request);
    mx_register_unexp_handler(end, handler: Option<UnexpectedHandler>, context: *mut c_void) => calls::on_unexpected(end, handler, context);
    mx_get_endpoint_addr(end, address: Out<'_, CAddress>) => address.give(end.endpoint.address().into(), NULL);
}

/// # Safety
///
/// What the header states of the pointers.
#[unsafe(no_mangle)]
unsafe extern "C" fn mx_get_info(
    endpoint: Handle,
    key: c_uint,
    given: *const c_void,
    given_len: u32,
    to: *mut c_void,
    room: u32,
) -> c_uint {
    let get = |end: Option<&std::sync::Arc<crate::registry::End>>| {
        // SAFETY: `given` is NULL or leads to `given_len` bytes, and `to` is NULL or leads to
        // `room` bytes, which the call may write.
        unsafe { information::get(end, key, (given, given_len), (to, room)) }
    };
    if endpoint.is_null() {
        return answer("mx_get_info", None, || get(None));
    }
    with_end(endpoint, |found| {
        answer("mx_get_info", found.as_ref().ok().copied(), || found.and_then(|end| get(Some(end))))
    })
}
