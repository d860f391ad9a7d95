//! The list of devices.

use crate::arguments::MISSING;
use crate::{guard, layout, library};
use cci::__binding::Out;
use std::ffi::c_int;

#[unsafe(no_mangle)]
extern "C" fn cci_get_devices(devices: Out<'_, *const *const layout::Device>) -> c_int {
    guard::call(|| {
        let devices = devices.variable(MISSING)?;
        devices.put(library::with_opened(|opened| Ok(opened.table.array()))?);
        Ok(())
    })
}
