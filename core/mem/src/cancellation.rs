//! Threads that a program cancels (`pthread_cancel`).
//!
//! A cancelled thread unwinds from the next cancellation point of the C library. Within this
//! library that would end the process: the unwinding is foreign to Rust, and half of a call would
//! have been done. The fast path reaches no such point: its system calls are made directly.
//! Everything else puts cancellation off: closing a descriptor is a cancellation point, for one.

use std::ffi::c_int;
use std::marker::PhantomData;

/// `PTHREAD_CANCEL_DISABLE`, of the GNU C library and of musl.
const DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// The thread that makes this is not cancelled as long as it lives. For slow paths: it takes two
/// locked instructions.
pub struct Uncancelled {
    before: c_int,
    /// The state is that of its thread.
    here: PhantomData<*mut ()>,
}

impl Uncancelled {
    /// From here on.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn new() -> Self {
        let mut before = DISABLE;
        // SAFETY: the state is valid, and `before` is writable. With these it cannot fail.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Self { before, here: PhantomData }
    }
}

impl Default for Uncancelled {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: the state is what it was, and nobody asks for the one before.
        unsafe { pthread_setcancelstate(self.before, std::ptr::null_mut()) };
    }
}
