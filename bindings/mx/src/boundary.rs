//! The boundary that no panic crosses.

use crate::answer::{Answer, Refusal, text_of};
use crate::registry::{End, error_handler};
use cci_mem::boundary::{caught, uncancelled};
use cci_mx::Error;
use std::ffi::{CString, c_uint};
use std::sync::Arc;

/// Runs a call. `call` is its name, and `end` the endpoint whose error handler is asked.
#[inline]
pub(crate) fn answer(call: &str, end: Option<&Arc<End>>, act: impl FnOnce() -> Answer) -> c_uint {
    match caught(act, || Err(Error::Failure.into())) {
        Ok(()) => 0,
        Err(Refusal(code)) => report(call, end, code),
    }
}

#[cold]
#[inline(never)]
fn report(call: &str, end: Option<&Arc<End>>, code: u32) -> c_uint {
    let handler = end.and_then(|end| end.handler).unwrap_or_else(error_handler);
    let text = CString::new(format!("{call}: {}", text_of(code).to_string_lossy())).unwrap_or_default();
    // It prints, as a rule, and a thread that is cancelled there would unwind through the library.
    uncancelled(|| {
        // SAFETY: a handler of the program, or one of the library; the text lives until it returns.
        unsafe { handler(text.as_ptr().cast_mut(), code) }
    })
}
