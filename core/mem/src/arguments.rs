//! Pointers that a C program passes to a call, each kind with its contract.
//!
//! Exported functions of the C libraries take these types as parameters. Their values come from C
//! programs, which keep the contract of each type for the time of the call: so a call uses them
//! safely. What a call answers to NULL is its library's, and is passed as `missing`. Alignment is
//! C's; nobody is hurt where a program breaks it.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Where a result goes: NULL, or leads to a variable that the call may write.
#[derive(Debug)]
#[repr(transparent)]
pub struct Out<'call, T>(Option<Variable<'call, T>>);

/// A variable for a result.
#[derive(Debug)]
#[repr(transparent)]
pub struct Variable<'call, T>(NonNull<T>, PhantomData<&'call mut T>);

impl<T> Clone for Out<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<'_, T> {}

impl<T> Clone for Variable<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Variable<'_, T> {}

impl<'call, T> Out<'call, T> {
    /// No result is asked for.
    pub const NULL: Self = Self(None);

    /// Of a pointer that is no parameter by itself.
    ///
    /// # Safety
    ///
    /// As the type says, for `'call`.
    #[inline(always)]
    #[must_use]
    pub unsafe fn new(pointer: *mut T) -> Self {
        Self(NonNull::new(pointer).map(|at| Variable(at, PhantomData)))
    }

    /// A variable of the library.
    pub fn of(variable: &'call mut T) -> Self {
        Self(Some(Variable(variable.into(), PhantomData)))
    }

    /// Returns whether it is NULL.
    #[inline(always)]
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_none()
    }

    /// Refuses NULL, and reads nothing.
    ///
    /// # Errors
    ///
    /// `missing`: it is NULL.
    #[inline(always)]
    pub fn check<E>(self, missing: E) -> Result<(), E> {
        if self.is_null() { Err(missing) } else { Ok(()) }
    }

    /// Returns the variable of a result that must be asked for.
    ///
    /// # Errors
    ///
    /// `missing`: it is NULL.
    #[inline(always)]
    pub fn variable<E>(self, missing: E) -> Result<Variable<'call, T>, E> {
        self.0.ok_or(missing)
    }

    /// Returns the variable of a result that the program may do without.
    #[inline(always)]
    #[must_use]
    pub fn asked(self) -> Option<Variable<'call, T>> {
        self.0
    }

    /// Writes a result that must be asked for.
    ///
    /// # Errors
    ///
    /// `missing`: it is NULL.
    #[inline(always)]
    pub fn give<E>(self, value: T, missing: E) -> Result<(), E> {
        self.variable(missing).map(|variable| variable.put(value))
    }

    /// Writes a result if it is asked for.
    #[inline(always)]
    pub fn offer(self, value: T) {
        if let Some(variable) = self.0 {
            variable.put(value);
        }
    }
}

impl<T> Variable<'_, T> {
    /// Writes the result.
    #[inline(always)]
    pub fn put(self, value: T) {
        // SAFETY: not NULL, and writable during the call, by the contract of `Out`.
        unsafe { self.0.write_unaligned(value) };
    }

    /// Returns what the program has put there.
    ///
    /// # Safety
    ///
    /// It has put something there.
    #[inline(always)]
    #[must_use]
    pub unsafe fn get(self) -> T
    where
        T: Copy,
    {
        // SAFETY: not NULL, there during the call by the contract of `Out`, and the program has put
        // a value there.
        unsafe { self.0.read_unaligned() }
    }

    /// Returns the address.
    #[inline(always)]
    #[must_use]
    pub fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }
}

/// What a program has set: NULL, or leads to a variable that the call may read.
#[derive(Debug)]
#[repr(transparent)]
pub struct In<'call, T>(Option<NonNull<T>>, PhantomData<&'call T>);

impl<T> Clone for In<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<'_, T> {}

impl<T: Copy> In<'_, T> {
    /// Of a pointer that is no parameter by itself.
    ///
    /// # Safety
    ///
    /// As the type says, for the lifetime of the result.
    #[inline(always)]
    #[must_use]
    pub unsafe fn new(pointer: *const T) -> Self {
        Self(NonNull::new(pointer.cast_mut()), PhantomData)
    }

    /// Returns whether it is NULL, and reads nothing.
    #[inline(always)]
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_none()
    }

    /// Refuses NULL, and reads nothing.
    ///
    /// # Errors
    ///
    /// `missing`: it is NULL.
    #[inline(always)]
    pub fn check<E>(self, missing: E) -> Result<(), E> {
        if self.is_null() { Err(missing) } else { Ok(()) }
    }

    /// Returns what is given; `None`: NULL.
    #[inline(always)]
    #[must_use]
    pub fn get(self) -> Option<T> {
        // SAFETY: not NULL, so readable during the call, by the contract of the type.
        self.0.map(|at| unsafe { at.read_unaligned() })
    }
}

/// A text: NULL, or leads to a string with its end, which stays as it is during the call.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Text<'call>(*const c_char, PhantomData<&'call CStr>);

impl<'call> Text<'call> {
    /// None.
    pub const NULL: Self = Self(std::ptr::null(), PhantomData);

    /// Returns whether it is NULL, and reads nothing.
    #[inline(always)]
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Refuses NULL, and reads nothing.
    ///
    /// # Errors
    ///
    /// `missing`: it is NULL.
    #[inline(always)]
    pub fn check<E>(self, missing: E) -> Result<(), E> {
        if self.is_null() { Err(missing) } else { Ok(()) }
    }

    /// Returns what is given; `None`: NULL.
    #[must_use]
    pub fn get(self) -> Option<&'call CStr> {
        // SAFETY: not NULL, so a string with its end that stays as it is during the call, by the
        // contract of the type.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_refused_and_nothing_is_read() {
        // SAFETY: NULL is allowed.
        let (out, given) = unsafe { (Out::new(std::ptr::null_mut::<u32>()), In::new(std::ptr::null::<u32>())) };
        assert!(out.is_null() && Out::<u32>::NULL.is_null() && given.is_null() && Text::NULL.is_null());
        assert_eq!((out.give(1, "missing"), out.variable(7).err()), (Err("missing"), Some(7)));
        assert_eq!((out.check(2), given.check(3), Text::NULL.check(4)), (Err(2), Err(3), Err(4)));
        assert!(out.asked().is_none() && given.get().is_none() && Text::NULL.get().is_none());
        out.offer(1);
    }

    #[test]
    fn a_variable_need_not_be_aligned() {
        let mut room = [0_u32; 3];
        // SAFETY: the second byte of twelve, of which the program has set all.
        let (out, given) = unsafe {
            let odd = room.as_mut_ptr().cast::<u8>().add(1).cast::<u64>();
            (Out::new(odd), In::new(odd))
        };
        assert_eq!(out.give(u64::MAX - 1, ()), Ok(()));
        assert_eq!(given.get(), Some(u64::MAX - 1));
        // SAFETY: set just now.
        assert_eq!(out.asked().map(|variable| unsafe { variable.get() }), Some(u64::MAX - 1));
        assert_eq!((room[0].to_ne_bytes()[0], room[2].to_ne_bytes()[1..].to_vec()), (0, vec![0; 3]));
    }

    #[test]
    fn a_variable_of_the_library_gets_what_a_program_would() {
        let mut value = 1;
        Out::of(&mut value).offer(2);
        assert_eq!(value, 2);
    }
}
