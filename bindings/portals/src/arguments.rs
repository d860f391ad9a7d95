//! Pointers of C, each kind with its contract. They are made where a program calls: as parameters
//! of exported functions, whose caller keeps the contract for the time of the call.

use crate::answer::Answer;
use cci_portals::Error;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// NULL, or leads to a variable that the call may write. Unaligned ones are the program's fault,
/// and work too.
#[repr(transparent)]
pub(crate) struct Out<'call, T>(Option<NonNull<T>>, PhantomData<&'call mut T>);

/// A variable for a result.
pub(crate) struct Variable<'call, T>(NonNull<T>, PhantomData<&'call mut T>);

impl<'call, T> Out<'call, T> {
    pub(crate) fn of(variable: &'call mut T) -> Self {
        Self(Some(variable.into()), PhantomData)
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_none()
    }

    /// The variable of a result that must be asked for.
    #[inline(always)]
    pub(crate) fn variable(self) -> Result<Variable<'call, T>, Error> {
        self.0.map(|at| Variable(at, PhantomData)).ok_or(Error::Address)
    }

    /// Writes a result that must be asked for.
    #[inline(always)]
    pub(crate) fn give(self, value: T) -> Answer {
        Ok(self.variable().map(|variable| variable.put(value))?)
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
    pub(crate) fn put(self, value: T) {
        // SAFETY: of an `Out` that is not NULL, so that the call may write it.
        unsafe { self.0.write_unaligned(value) };
    }
}

/// NULL, or leads to a structure that the program has filled in, of any alignment.
#[repr(transparent)]
pub(crate) struct In<'call, T>(Option<NonNull<T>>, PhantomData<&'call T>);

impl<T: Copy> In<'_, T> {
    pub(crate) fn get(self) -> Option<T> {
        // SAFETY: not NULL, so that the program has filled the structure in.
        self.0.map(|at| unsafe { at.read_unaligned() })
    }
}
