//! Pointers of C, each kind with its contract. They are made where a program calls: as parameters
//! of exported functions, whose caller keeps the contract for the time of the call.

use std::ffi::{CStr, c_char, c_uint};
use std::marker::PhantomData;

/// NULL, or leads to a variable that the call may write, of any alignment.
#[repr(transparent)]
pub(crate) struct Out<'call, T>(*mut T, PhantomData<&'call mut T>);

/// Where a call puts its code.
pub(crate) type Code<'call> = Out<'call, c_uint>;

impl<T> Clone for Out<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<'_, T> {}

impl<T> Out<'_, T> {
    pub(crate) const NULL: Self = Self(std::ptr::null_mut(), PhantomData);

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes a result if it is asked for.
    #[inline(always)]
    pub(crate) fn put(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, so that the call may write the variable.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// What the program has put there; `None`: NULL.
    ///
    /// # Safety
    ///
    /// It has put something there.
    pub(crate) unsafe fn get(self) -> Option<T>
    where
        T: Copy,
    {
        // SAFETY: not NULL, so that the variable is there, and the program has put a value there.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }
}

/// NULL, or leads to a text with its end, which stays as it is during the call.
#[repr(transparent)]
pub(crate) struct Text<'call>(*const c_char, PhantomData<&'call CStr>);

impl<'call> Text<'call> {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// What is given; `None`: NULL.
    pub(crate) fn get(self) -> Option<&'call CStr> {
        // SAFETY: not NULL, so that it leads to a text with its end, which stays during the call.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }
}
