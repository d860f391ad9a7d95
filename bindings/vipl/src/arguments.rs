//! Pointers of C, each kind with its contract. They are made where a program calls: as parameters
//! of exported functions, whose caller keeps the contract for the time of the call.

use crate::answer::{Answer, PARAMETER};
use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// NULL, or leads to a variable that the call may write, of any alignment.
#[repr(transparent)]
pub(crate) struct Out<'call, T>(Option<NonNull<T>>, PhantomData<&'call mut T>);

/// A variable for a result.
pub(crate) struct Variable<'call, T>(NonNull<T>, PhantomData<&'call mut T>);

impl<'call, T> Out<'call, T> {
    /// The variable of a result that must be asked for.
    #[inline(always)]
    pub(crate) fn variable(self) -> Result<Variable<'call, T>, c_int> {
        self.0.map(|at| Variable(at, PhantomData)).ok_or(PARAMETER)
    }

    /// Writes a result if it is asked for.
    pub(crate) fn offer(self, value: T) {
        if let Some(at) = self.0 {
            Variable(at, PhantomData).put(value);
        }
    }
}

impl<T> Variable<'_, T> {
    #[inline(always)]
    pub(crate) fn put(&self, value: T) {
        // SAFETY: of an `Out` that is not NULL, so that the call may write it.
        unsafe { self.0.write_unaligned(value) };
    }

    /// What the program has put there.
    ///
    /// # Safety
    ///
    /// It has put something there.
    pub(crate) unsafe fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: of an `Out` that is not NULL, and the program has put a value there.
        unsafe { self.0.read_unaligned() }
    }
}

/// NULL, or leads to a structure that the program has filled in, of any alignment.
#[repr(transparent)]
pub(crate) struct In<'call, T>(Option<NonNull<T>>, PhantomData<&'call T>);

impl<T: Copy> In<'_, T> {
    /// Refuses NULL, and reads nothing.
    pub(crate) fn check(&self) -> Answer {
        if self.0.is_none() { Err(PARAMETER) } else { Ok(()) }
    }

    /// What must be given.
    pub(crate) fn get(self) -> Result<T, c_int> {
        // SAFETY: not NULL, so that the program has filled the structure in.
        self.0.map(|at| unsafe { at.read_unaligned() }).ok_or(PARAMETER)
    }
}

/// NULL, or leads to a text with its end, which stays as it is during the call.
#[repr(transparent)]
pub(crate) struct Text<'call>(*const c_char, PhantomData<&'call CStr>);

impl<'call> Text<'call> {
    /// Refuses NULL, and reads nothing.
    pub(crate) fn check(&self) -> Answer {
        if self.0.is_null() { Err(PARAMETER) } else { Ok(()) }
    }

    /// What must be given.
    pub(crate) fn get(self) -> Result<&'call CStr, c_int> {
        // SAFETY: not NULL, so that it leads to a text with its end, which stays during the call.
        if self.0.is_null() { Err(PARAMETER) } else { Ok(unsafe { CStr::from_ptr(self.0) }) }
    }
}
