//! The list of devices.

use crate::{guard, handles, layout, library};
use std::ffi::c_int;

/// # Safety
///
/// `devices` is NULL or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn cci_get_devices(devices: *mut *const *const layout::Device) -> c_int {
    guard::call(|| {
        handles::present(devices)?;
        let array = library::with_opened(|opened| Ok(opened.table.array()))?;
        // SAFETY: writable by the contract above.
        unsafe { handles::store(devices, array) }
    })
}
