//! Names of codes and events, for messages of programs.

use cci_mem::sync::{AtomicPtr, AtomicU32, Ordering};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

/// An address that never changes, of text that never ends.
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

// SAFETY: it leads to constants.
unsafe impl Sync for Text {}

/// Arrays of addresses of texts.
macro_rules! texts {
    ($($name:ident[$count:literal] = $($text:literal),+;)+) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            #[doc = "Names by number; the last one is NULL."]
            pub(crate) static $name: [Text; $count + 1] = [$(Text($text.as_ptr())),+, Text(std::ptr::null())];
        )+
    };
}

texts! {
    ptl_err_str[27] = c"PTL_OK", c"PTL_AC_INDEX_INVALID", c"PTL_EQ_DROPPED", c"PTL_EQ_EMPTY", c"PTL_EQ_INVALID",
        c"PTL_FAIL", c"PTL_HANDLE_INVALID", c"PTL_IFACE_INVALID", c"PTL_MD_ILLEGAL", c"PTL_MD_INVALID",
        c"PTL_MD_IN_USE", c"PTL_MD_NO_UPDATE", c"PTL_ME_INVALID", c"PTL_ME_IN_USE", c"PTL_ME_LIST_TOO_LONG",
        c"PTL_NI_INVALID", c"PTL_NO_INIT", c"PTL_NO_SPACE", c"PTL_PID_INVALID", c"PTL_PROCESS_INVALID",
        c"PTL_PT_FULL", c"PTL_PT_INDEX_INVALID", c"PTL_SEGV", c"PTL_SR_INDEX_INVALID", c"PTL_UNKNOWN_ERROR",
        c"PTL_IFACE_DUP", c"PTL_IFACE_CYCLE";
    ptl_event_str[12] = c"PTL_EVENT_GET_START", c"PTL_EVENT_GET_END", c"PTL_EVENT_PUT_START", c"PTL_EVENT_PUT_END",
        c"PTL_EVENT_GETPUT_START", c"PTL_EVENT_GETPUT_END", c"PTL_EVENT_REPLY_START", c"PTL_EVENT_REPLY_END",
        c"PTL_EVENT_SEND_START", c"PTL_EVENT_SEND_END", c"PTL_EVENT_ACK", c"PTL_EVENT_UNLINK";
}

fn text_of(all: &'static [Text], number: usize, none: &'static CStr) -> *const c_char {
    all.get(number).filter(|text| !text.0.is_null()).map_or(none.as_ptr(), |text| text.0)
}

#[unsafe(no_mangle)]
extern "C" fn PtlErrorStr(code: c_int) -> *const c_char {
    text_of(&ptl_err_str, usize::try_from(code).unwrap_or(usize::MAX), c"no code of Portals")
}

#[unsafe(no_mangle)]
extern "C" fn PtlEventKindStr(kind: c_uint) -> *const c_char {
    text_of(&ptl_event_str, kind as usize, c"no event of Portals")
}

#[unsafe(no_mangle)]
extern "C" fn PtlNIFailStr(_ni: u32, failure: c_int) -> *const c_char {
    match failure {
        0 => c"PTL_NI_OK".as_ptr(),
        1 => c"PTL_NI_FAIL".as_ptr(),
        _ => c"no failure of Portals".as_ptr(),
    }
}

/// Of `PtlNIDebug`. It is kept for programs that ask for it, and nothing reads it here.
static MASK: AtomicU32 = AtomicU32::new(0);

#[unsafe(no_mangle)]
extern "C" fn PtlNIDebug(_ni: u32, mask: c_uint) -> c_uint {
    MASK.swap(mask, Ordering::Relaxed)
}

/// Where the program sends what it traces: a stream of the C library, which it may set.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
static p3_out: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

unsafe extern "C" {
    #[link_name = "stderr"]
    static STDERR: *mut c_void;
}

/// Sends traces of the program to its standard error, unless it has chosen.
pub(crate) fn set_stream() {
    // SAFETY: the C library has set it before any code of the program runs. Whoever changes it does
    // so before other threads use it, as the C library demands.
    let standard = unsafe { STDERR };
    let _ = p3_out.compare_exchange(null_mut(), standard, Ordering::Relaxed, Ordering::Relaxed);
}
