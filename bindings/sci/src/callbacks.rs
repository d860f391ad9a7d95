//! Functions of the program that the library calls.

use crate::answer::{Answer, WRONG};
use crate::flags::{self, has};
use crate::registry::Handle;
use cci_mem::boundary::uncancelled;
use cci_sci::{Reason, SegmentEvent, Then};
use std::ffi::{c_uint, c_void};

/// What a callback returns: `SCI_CALLBACK_CANCEL` or anything else.
type CThen = c_uint;
/// `sci_cb_local_segment_t`.
pub(crate) type LocalCallback = unsafe extern "C" fn(*mut c_void, Handle, c_uint, c_uint, c_uint, c_uint) -> CThen;
/// `sci_cb_remote_segment_t`.
pub(crate) type RemoteCallback = unsafe extern "C" fn(*mut c_void, Handle, c_uint, c_uint) -> CThen;
/// `sci_cb_dma_t` and `sci_cb_interrupt_t`.
pub(crate) type CodeCallback = unsafe extern "C" fn(*mut c_void, Handle, c_uint) -> CThen;
/// `sci_cb_data_interrupt_t`.
pub(crate) type DataCallback = unsafe extern "C" fn(*mut c_void, Handle, *mut c_void, c_uint, c_uint) -> CThen;

/// A function of the program, or NULL: any thread may call it, with its argument, for events of the
/// object that gets it, as long as that lives.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Function<F>(Option<F>);

/// A function that a call was given, and its argument, as a number, since it runs on another
/// thread. It is called without any lock, with the name of its object.
#[derive(Clone, Copy)]
pub(crate) struct Callback<F>(F, usize);

/// A callback of C, if the flag asks for one.
pub(crate) fn callback<F>(flags: c_uint, function: Function<F>, arg: *mut c_void) -> Answer<Option<Callback<F>>> {
    match (has(flags, &flags::USE_CALLBACK), function.0) {
        (false, _) => Ok(None),
        (true, Some(function)) => Ok(Some(Callback(function, arg.expose_provenance()))),
        (true, None) => Err(WRONG),
    }
}

/// Calls one. A thread that is cancelled there would unwind through the library.
fn then(call: impl FnOnce() -> CThen) -> Then {
    if uncancelled(call) == 1 { Then::Cancel } else { Then::Continue }
}

impl<F> Callback<F> {
    fn arg(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.1)
    }
}

fn handle(name: usize) -> Handle {
    std::ptr::without_provenance_mut(name)
}

impl Callback<LocalCallback> {
    pub(crate) fn call(&self, name: usize, event: SegmentEvent) -> Then {
        // SAFETY: any thread may call it for events of its object, which lives, with its argument.
        then(|| unsafe { self.0(self.arg(), handle(name), event.reason as c_uint, event.node, 0, 0) })
    }
}

impl Callback<RemoteCallback> {
    pub(crate) fn call(&self, name: usize, reason: Reason, code: c_uint) -> Then {
        // SAFETY: any thread may call it for events of its object, which lives, with its argument.
        then(|| unsafe { self.0(self.arg(), handle(name), reason as c_uint, code) })
    }
}

impl Callback<CodeCallback> {
    pub(crate) fn call(&self, name: usize, code: c_uint) -> Then {
        // SAFETY: any thread may call it for events of its object, which lives, with its argument.
        then(|| unsafe { self.0(self.arg(), handle(name), code) })
    }
}

impl Callback<DataCallback> {
    pub(crate) fn call(&self, name: usize, bytes: &mut [u8]) -> Then {
        // SAFETY: any thread may call it for events of its object, which lives, with its argument;
        // the bytes are there until it returns.
        then(|| unsafe { self.0(self.arg(), handle(name), bytes.as_mut_ptr().cast(), bytes.len() as c_uint, 0) })
    }
}
