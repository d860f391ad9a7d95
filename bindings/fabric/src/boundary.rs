//! The boundary that no panic crosses.

use cci_fabric_sys::FI_EOTHER;
use cci_mem::boundary::{caught, uncancelled};
use std::ffi::c_int;

/// Runs a call that opens, closes or looks up: 0, or a negated code. A panic is `-FI_EOTHER`.
pub(crate) fn guarded(call: impl FnOnce() -> Result<(), c_int>) -> c_int {
    // It prints and looks up, and a thread that is cancelled there would unwind through the
    // library.
    let done = uncancelled(|| caught(call, || Err(FI_EOTHER)));
    done.map_or_else(|code| -code, |()| 0)
}
