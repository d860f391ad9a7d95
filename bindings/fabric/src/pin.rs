//! The library stays loaded: threads and handlers of the process lead into it.

use std::ffi::c_void;

/// Keeps the library loaded from now on: `dlclose` unmaps nothing.
pub(crate) fn pin() {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let here: fn() = pin;
    // SAFETY: an address of this library, and room for the answer.
    if unsafe { libc::dladdr(here as *const c_void, found.as_mut_ptr()) } == 0 {
        return;
    }
    // SAFETY: it was found; its name has an end. What stays open is never closed.
    unsafe {
        let name = found.assume_init().dli_fname;
        libc::dlopen(name, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
    }
}
