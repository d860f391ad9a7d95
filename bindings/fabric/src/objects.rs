//! Objects of a program: none are opened yet.

use cci_fabric_sys::{FI_ENOSYS, fi_fabric_attr, fid_fabric};
use std::ffi::{c_int, c_void};

/// `fi_fabric` of the provider.
///
/// # Safety
///
/// As fi_fabric(3) states.
pub(crate) unsafe extern "C" fn fabric(_: *mut fi_fabric_attr, _: *mut *mut fid_fabric, _: *mut c_void) -> c_int {
    -FI_ENOSYS
}
