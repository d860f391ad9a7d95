//! The symbols: each call for each dialect that has it.

use crate::answer::{answer, guarded};
use crate::calls;
use crate::dialect::{Dialect, Mpi, Now, Udp};
use crate::endpoint::{After, Before, Eb, Ep, Handle, Token};
use crate::messages::{self, Body};
use crate::statistics::Stats;
use cci_mem::arguments::Out;
use cci_mem::boundary::uncancelled;
use std::ffi::{c_int, c_void};

/// Exports calls: the dialects with the symbols, then the signature and what the call does, in
/// which `D` is the dialect. After `uncancelled:` stand those that open, close, connect or look up:
/// no thread is cancelled in them.
macro_rules! export {
    (uncancelled: $($dialects:tt $arguments:tt => $body:expr;)*) => {
        export! { $($dialects $arguments => uncancelled(|| $body);)* }
    };
    ($(($($dialect:ident $symbol:literal),+) $arguments:tt => $body:expr;)*) => {
        $($(export! { @one $dialect $symbol $arguments $body })+)*
    };
    (@one $dialect:ident $symbol:literal ($($argument:ident: $type:ty),*) $body:expr) => {
        const _: () = {
            type D = $dialect;
            /// # Safety
            ///
            /// What the header states of the pointers.
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn export($($argument: $type),*) -> c_int {
                answer::<D>($symbol, || $body)
            }
        };
    };
}

export! {
    uncancelled:
    (Udp "AMUDP_Init", Mpi "AMMPI_Init", Now "AMNOW_Init") () => calls::init::<D>();
    (Udp "AMUDP_Terminate", Mpi "AMMPI_Terminate", Now "AMNOW_Terminate") () => calls::terminate::<D>();
    (Udp "AMUDP_AllocateBundle", Mpi "AMMPI_AllocateBundle", Now "AMNOW_AllocateBundle") (kind: c_int, bundle: Out<'_, Eb>) => calls::allocate_bundle::<D>(kind, bundle);
    (Udp "AMUDP_AllocateEndpoint", Mpi "AMMPI_AllocateEndpoint", Now "AMNOW_AllocateEndpoint") (bundle: Eb, endpoint: Out<'_, Ep>, name: Out<'_, <D as Dialect>::Name>) => calls::allocate_endpoint::<D>(bundle, endpoint, name);
    (Udp "AMUDP_FreeBundle", Mpi "AMMPI_FreeBundle", Now "AMNOW_FreeBundle") (bundle: Eb) => calls::free_bundle::<D>(bundle);
    (Udp "AMUDP_FreeEndpoint", Mpi "AMMPI_FreeEndpoint", Now "AMNOW_FreeEndpoint") (endpoint: Ep) => calls::free_endpoint::<D>(endpoint);
    (Udp "AMUDP_MoveEndpoint", Mpi "AMMPI_MoveEndpoint", Now "AMNOW_MoveEndpoint") (endpoint: Ep, from: Eb, to: Eb) => calls::move_endpoint::<D>(endpoint, from, to);
    (Udp "AMUDP_SetSeg", Mpi "AMMPI_SetSeg", Now "AMNOW_SetSeg") (endpoint: Ep, start: *mut c_void, bytes: usize) => {
        // SAFETY: the program keeps the segment mapped, and knows that peers write it, until it
        // sets another one or frees the endpoint.
        unsafe { calls::set_seg::<D>(endpoint, start, bytes) }
    };
    (Udp "AMUDP_Map", Mpi "AMMPI_Map", Now "AMNOW_Map") (endpoint: Ep, index: c_int, name: <D as Dialect>::Name, tag: u64) => {
        // SAFETY: `name` is a value, or a pointer: NULL, or readable until the call returns.
        unsafe { calls::map::<D>(endpoint, index, name, tag) }
    };
    (Udp "AMUDP_MapAny", Mpi "AMMPI_MapAny", Now "AMNOW_MapAny") (endpoint: Ep, index: Out<'_, c_int>, name: <D as Dialect>::Name, tag: u64) => {
        // SAFETY: `name` is a value, or a pointer: NULL, or readable until the call returns.
        unsafe { calls::map_any::<D>(endpoint, index, name, tag) }
    };
    (Udp "AMUDP_UnMap", Mpi "AMMPI_UnMap", Now "AMNOW_UnMap") (endpoint: Ep, index: c_int) => calls::unmap::<D>(endpoint, index);
    (Udp "AMUDP_SetTranslationTag", Mpi "AMMPI_SetTranslationTag") (endpoint: Ep, index: c_int, tag: u64) => calls::set_translation_tag::<D>(endpoint, index, tag);
}

export! {
    (Udp "AMUDP_GetSeg", Mpi "AMMPI_GetSeg", Now "AMNOW_GetSeg") (endpoint: Ep, start: Out<'_, *mut c_void>, bytes: Out<'_, usize>) => calls::get_seg::<D>(endpoint, start, bytes);
    (Udp "AMUDP_MaxSegLength", Mpi "AMMPI_MaxSegLength", Now "AMNOW_MaxSegLength") (bytes: Out<'_, usize>) => calls::max_seg_length::<D>(bytes);
    (Udp "AMUDP_SetTag", Mpi "AMMPI_SetTag", Now "AMNOW_SetTag") (endpoint: Ep, tag: u64) => calls::set_tag::<D>(endpoint, tag);
    (Udp "AMUDP_GetTag", Mpi "AMMPI_GetTag", Now "AMNOW_GetTag") (endpoint: Ep, tag: Out<'_, u64>) => calls::get_tag::<D>(endpoint, tag);
    (Udp "AMUDP_GetTranslationInuse", Mpi "AMMPI_GetTranslationInuse", Now "AMNOW_GetTranslationInuse") (endpoint: Ep, index: c_int) => calls::is_translated::<D>(endpoint, index);
    (Udp "AMUDP_GetTranslationTag", Mpi "AMMPI_GetTranslationTag", Now "AMNOW_GetTranslationTag") (endpoint: Ep, index: c_int, tag: Out<'_, u64>) => calls::translation_tag::<D>(endpoint, index, tag);
    (Udp "AMUDP_GetTranslationName", Mpi "AMMPI_GetTranslationName", Now "AMNOW_GetTranslationName") (endpoint: Ep, index: c_int, name: Out<'_, <D as Dialect>::Name>) => calls::translation_name::<D>(endpoint, index, name);
    (Udp "AMUDP_GetNumTranslations", Mpi "AMMPI_GetNumTranslations", Now "AMNOW_GetNumTranslations") (endpoint: Ep, count: Out<'_, c_int>) => calls::num_translations::<D>(endpoint, count);
    (Udp "AMUDP_SetNumTranslations", Mpi "AMMPI_SetNumTranslations", Now "AMNOW_SetNumTranslations") (endpoint: Ep, count: c_int) => calls::set_num_translations::<D>(endpoint, count);
    (Udp "AMUDP_MaxNumTranslations", Mpi "AMMPI_MaxNumTranslations", Now "AMNOW_MaxNumTranslations") (count: Out<'_, c_int>) => calls::max_num_translations::<D>(count);
    (Udp "AMUDP_SetExpectedResources", Mpi "AMMPI_SetExpectedResources", Now "AMNOW_SetExpectedResources") (endpoint: Ep, endpoints: c_int, outstanding: c_int) => calls::set_expected_resources::<D>(endpoint, endpoints, outstanding);
    (Udp "AMUDP_SetHandler", Mpi "AMMPI_SetHandler", Now "AMNOW_SetHandler") (endpoint: Ep, at: u8, function: *const c_void) => {
        // SAFETY: `function` is NULL, or takes the messages that peers send to this handler, until
        // the program sets another one or frees the endpoint.
        unsafe { calls::set_handler::<D>(endpoint, at, function) }
    };
    (Udp "AMUDP_SetHandlerAny", Mpi "AMMPI_SetHandlerAny", Now "AMNOW_SetHandlerAny") (endpoint: Ep, at: Out<'_, u8>, function: *const c_void) => {
        // SAFETY: `function` is NULL, or takes the messages that peers send to this handler, until
        // the program sets another one or frees the endpoint.
        unsafe { calls::set_handler_any::<D>(endpoint, at, function) }
    };
    (Udp "AMUDP_GetNumHandlers", Mpi "AMMPI_GetNumHandlers", Now "AMNOW_GetNumHandlers") (endpoint: Ep, count: Out<'_, c_int>) => calls::num_handlers::<D>(endpoint, count);
    (Udp "AMUDP_SetNumHandlers", Mpi "AMMPI_SetNumHandlers", Now "AMNOW_SetNumHandlers") (endpoint: Ep, count: c_int) => calls::set_num_handlers::<D>(endpoint, count);
    (Udp "AMUDP_SetHandlerCallbacks", Mpi "AMMPI_SetHandlerCallbacks") (endpoint: Ep, before: Option<Before>, after: Option<After>) => {
        // SAFETY: each is NULL, or may be called as its type says until the program sets others or
        // frees the endpoint.
        unsafe { calls::set_callbacks::<D>(endpoint, before, after) }
    };
    (Udp "AMUDP_Poll", Mpi "AMMPI_Poll", Now "AMNOW_Poll") (bundle: Eb) => calls::poll::<D>(bundle);
    (Udp "AMUDP_GetEventMask", Mpi "AMMPI_GetEventMask") (bundle: Eb, mask: Out<'_, c_int>) => calls::event_mask::<D>(bundle, mask);
    (Udp "AMUDP_SetEventMask", Mpi "AMMPI_SetEventMask", Now "AMNOW_SetEventMask") (bundle: Eb, mask: c_int) => calls::set_event_mask::<D>(bundle, mask);
    (Udp "AMUDP_WaitSema", Mpi "AMMPI_WaitSema") (bundle: Eb) => calls::wait::<D>(bundle);
    (Now "AMNOW_Wait") (bundle: Eb) => calls::wait::<D>(bundle);
    (Udp "AMUDP_GetSourceEndpoint", Mpi "AMMPI_GetSourceEndpoint", Now "AMNOW_GetSourceEndpoint") (token: Handle<Token>, name: Out<'_, <D as Dialect>::Name>) => calls::source_endpoint::<D>(token, name);
    (Udp "AMUDP_GetDestEndpoint", Mpi "AMMPI_GetDestEndpoint", Now "AMNOW_GetDestEndpoint") (token: Handle<Token>, endpoint: Out<'_, Ep>) => calls::dest_endpoint::<D>(token, endpoint);
    (Udp "AMUDP_GetMsgTag", Mpi "AMMPI_GetMsgTag", Now "AMNOW_GetMsgTag") (token: Handle<Token>, tag: Out<'_, u64>) => calls::message_tag::<D>(token, tag);
    (Udp "AMUDP_GetSourceId", Mpi "AMMPI_GetSourceId") (token: Handle<Token>, index: Out<'_, c_int>) => calls::source_id::<D>(token, index);
    (Udp "AMUDP_GetTokenInfo", Mpi "AMMPI_GetTokenInfo") (token: Handle<Token>, handler: Out<'_, u8>, sort: Out<'_, c_int>, is_request: Out<'_, c_int>) => calls::token_info::<D>(token, handler, sort, is_request);
    (Udp "AMUDP_Request", Mpi "AMMPI_Request", Now "AMNOW_Request") (endpoint: Ep, target: c_int, handler: u8, count: c_int, arguments: *const u32) => {
        // SAFETY: `count` arguments are readable, and nobody writes them, until the call returns.
        // `messages` refuses NULL.
        unsafe { messages::request(endpoint.get()?, (target, handler), Body::Short, false, (count, arguments)) }
    };
    (Udp "AMUDP_RequestI", Mpi "AMMPI_RequestI", Now "AMNOW_RequestI") (endpoint: Ep, target: c_int, handler: u8, source: *const c_void, bytes: usize, count: c_int, arguments: *const u32) => {
        // SAFETY: `count` arguments and `bytes` bytes are readable, and nobody writes them, until
        // the call returns. `messages` refuses NULL.
        unsafe { messages::request(endpoint.get()?, (target, handler), Body::Medium { source, bytes }, false, (count, arguments)) }
    };
    (Udp "AMUDP_RequestXfer", Mpi "AMMPI_RequestXfer", Now "AMNOW_RequestXfer") (endpoint: Ep, target: c_int, offset: usize, handler: u8, source: *const c_void, bytes: usize, is_async: c_int, count: c_int, arguments: *const u32) => {
        // SAFETY: `count` arguments and `bytes` bytes are readable, and nobody writes them, until
        // the call returns. `messages` refuses NULL.
        unsafe { messages::request(endpoint.get()?, (target, handler), Body::Bulk { source, bytes, offset }, is_async != 0, (count, arguments)) }
    };
    (Udp "AMUDP_GetXfer", Mpi "AMMPI_GetXfer", Now "AMNOW_GetXfer") (endpoint: Ep, target: c_int, from: usize, handler: u8, offset: usize, bytes: usize, is_async: c_int, count: c_int, arguments: *const u32) => {
        // SAFETY: `count` arguments are readable, and nobody writes them, until the call returns.
        // `messages` refuses NULL.
        unsafe { messages::request(endpoint.get()?, (target, handler), Body::Get { bytes, from, offset }, is_async != 0, (count, arguments)) }
    };
    (Udp "AMUDP_Reply", Mpi "AMMPI_Reply", Now "AMNOW_Reply") (token: Handle<Token>, handler: u8, count: c_int, arguments: *const u32) => {
        // SAFETY: `count` arguments are readable, and nobody writes them, until the call returns.
        // `messages` refuses NULL.
        unsafe { messages::reply(token.get()?, handler, Body::Short, (count, arguments)) }
    };
    (Udp "AMUDP_ReplyI", Mpi "AMMPI_ReplyI", Now "AMNOW_ReplyI") (token: Handle<Token>, handler: u8, source: *const c_void, bytes: usize, count: c_int, arguments: *const u32) => {
        // SAFETY: `count` arguments and `bytes` bytes are readable, and nobody writes them, until
        // the call returns. `messages` refuses NULL.
        unsafe { messages::reply(token.get()?, handler, Body::Medium { source, bytes }, (count, arguments)) }
    };
    (Udp "AMUDP_ReplyXfer", Mpi "AMMPI_ReplyXfer", Now "AMNOW_ReplyXfer") (token: Handle<Token>, offset: usize, handler: u8, source: *const c_void, bytes: usize, count: c_int, arguments: *const u32) => {
        // SAFETY: `count` arguments and `bytes` bytes are readable, and nobody writes them, until
        // the call returns. `messages` refuses NULL.
        unsafe { messages::reply(token.get()?, handler, Body::Bulk { source, bytes, offset }, (count, arguments)) }
    };
    (Udp "AMUDP_GetEndpointStatistics", Mpi "AMMPI_GetEndpointStatistics") (endpoint: Ep, stats: Out<'_, Stats>) => calls::statistics::<D>(endpoint, stats);
    (Udp "AMUDP_ResetEndpointStatistics", Mpi "AMMPI_ResetEndpointStatistics") (endpoint: Ep) => calls::reset_statistics::<D>(endpoint);
    (Udp "AMUDP_AggregateStatistics", Mpi "AMMPI_AggregateStatistics") (sum: *mut Stats, more: *const Stats) => {
        // SAFETY: `more` is NULL or readable, and `sum` is NULL or readable and writable, until the
        // call returns. No other thread uses them meanwhile.
        unsafe { calls::add_statistics::<D>(sum, more) }
    };
    (Udp "AMUDP_SetSendTimeout", Mpi "AMMPI_SetSendTimeout") (milliseconds: u32) => calls::set_send_timeout::<D>(milliseconds);
}

/// Whether two names are of one endpoint: 1 or 0.
fn are_equal<D: Dialect>(one: D::Name, other: D::Name) -> c_int {
    // SAFETY: these dialects pass names by value.
    let (one, other) = unsafe { (D::parse(one), D::parse(other)) };
    c_int::from(one.is_some() && one == other)
}

#[unsafe(export_name = "AMUDP_enEqual")]
extern "C" fn udp_are_equal(one: <Udp as Dialect>::Name, other: <Udp as Dialect>::Name) -> c_int {
    guarded(0, || are_equal::<Udp>(one, other))
}

#[unsafe(export_name = "AMMPI_enEqual")]
extern "C" fn mpi_are_equal(one: <Mpi as Dialect>::Name, other: <Mpi as Dialect>::Name) -> c_int {
    guarded(0, || are_equal::<Mpi>(one, other))
}

/// The mask itself; that of what is no bundle has no event.
#[unsafe(export_name = "AMNOW_GetEventMask")]
extern "C" fn now_event_mask(bundle: Eb) -> c_int {
    guarded(0, || bundle.get().map_or(0, |bundle| bundle.mask.get()))
}
