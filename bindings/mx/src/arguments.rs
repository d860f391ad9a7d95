//! Pointers of C, each kind with its contract. They are made where a program calls: as parameters
//! of exported functions, whose caller keeps the contract for the time of the call.

use crate::answer::{Answer, NULL, Refusal};
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// NULL, or leads to a variable that the call may write. Unaligned ones are the program's fault,
/// and work too.
#[repr(transparent)]
pub(crate) struct Out<'call, T>(Option<NonNull<T>>, PhantomData<&'call mut T>);

/// A variable for a result.
pub(crate) struct Variable<'call, T>(NonNull<T>, PhantomData<&'call mut T>);

impl<'call, T> Out<'call, T> {
    /// The variable of a result that must be asked for.
    #[inline(always)]
    pub(crate) fn variable(self) -> Result<Variable<'call, T>, Refusal> {
        self.0.map(|at| Variable(at, PhantomData)).ok_or(NULL)
    }

    /// Writes a result that must be asked for.
    #[inline(always)]
    pub(crate) fn give(self, value: T) -> Answer {
        self.variable().map(|variable| variable.put(value))
    }

    /// Writes a result if it is asked for.
    #[inline(always)]
    pub(crate) fn offer(self, value: T) {
        if let Some(at) = self.0 {
            Variable(at, PhantomData).put(value);
        }
    }
}

impl<T> Variable<'_, T> {
    #[inline(always)]
    pub(crate) fn put(self, value: T) {
        // SAFETY: of an `Out` that is not NULL, so that the call may write it.
        unsafe { self.0.write_unaligned(value) };
    }
}

/// NULL, or leads to a variable that the program has set, of any alignment.
#[repr(transparent)]
pub(crate) struct In<'call, T>(Option<NonNull<T>>, PhantomData<&'call T>);

impl<T: Copy> In<'_, T> {
    /// What must be given.
    #[inline(always)]
    pub(crate) fn get(self) -> Result<T, Refusal> {
        // SAFETY: not NULL, so that the program has set the variable.
        self.0.map(|at| unsafe { at.read_unaligned() }).ok_or(NULL)
    }
}

/// NULL, or leads to a text with its end, which stays as it is during the call.
#[repr(transparent)]
pub(crate) struct Text<'call>(*const c_char, PhantomData<&'call CStr>);

impl<'call> Text<'call> {
    /// Refuses NULL, and reads nothing.
    pub(crate) fn check(&self) -> Answer {
        if self.0.is_null() { Err(NULL) } else { Ok(()) }
    }

    /// What must be given.
    pub(crate) fn get(self) -> Result<&'call CStr, Refusal> {
        // SAFETY: not NULL, so that it leads to a text with its end, which stays during the call.
        if self.0.is_null() { Err(NULL) } else { Ok(unsafe { CStr::from_ptr(self.0) }) }
    }
}
