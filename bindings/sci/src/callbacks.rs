//! Functions of the program that the library calls.

use crate::answer::{Answer, WRONG};
use crate::flags::{self, has};
use crate::registry::Handle;
use cci_sci::Then;
use std::ffi::{c_uint, c_void};

/// What a callback returns: `SCI_CALLBACK_CANCEL` or anything else.
pub(crate) type CThen = c_uint;
/// `sci_cb_local_segment_t`.
pub(crate) type LocalCallback = unsafe extern "C" fn(*mut c_void, Handle, c_uint, c_uint, c_uint, c_uint) -> CThen;
/// `sci_cb_remote_segment_t`.
pub(crate) type RemoteCallback = unsafe extern "C" fn(*mut c_void, Handle, c_uint, c_uint) -> CThen;
/// `sci_cb_dma_t`.
pub(crate) type DmaCallback = unsafe extern "C" fn(*mut c_void, Handle, c_uint) -> CThen;
/// `sci_cb_interrupt_t`.
pub(crate) type InterruptCallback = unsafe extern "C" fn(*mut c_void, Handle, c_uint) -> CThen;
/// `sci_cb_data_interrupt_t`.
pub(crate) type DataCallback = unsafe extern "C" fn(*mut c_void, Handle, *mut c_void, c_uint, c_uint) -> CThen;

pub(crate) fn then(answer: CThen) -> Then {
    if answer == 1 { Then::Cancel } else { Then::Continue }
}

/// A callback of C, if the flag asks for one: with its argument and the handle of its object, as
/// numbers, since it runs on another thread.
pub(crate) fn callback<F>(flags: c_uint, function: Option<F>, arg: *mut c_void) -> Answer<Option<(F, usize)>> {
    match (has(flags, &flags::USE_CALLBACK), function) {
        (false, _) => Ok(None),
        (true, Some(function)) => Ok(Some((function, arg.expose_provenance()))),
        (true, None) => Err(WRONG),
    }
}

/// A pointer that was passed as a number.
pub(crate) fn pointer(number: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(number)
}
