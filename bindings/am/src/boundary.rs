//! What C programs pass to calls, and share with the library.
//!
//! Exported functions take these types. Their values come from C programs alone, which keep the
//! contracts of the headers: so a call uses them safely, while it lasts.

use crate::refusal::{Answer, Refusal};
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr::NonNull;

pub(crate) const NULL: Refusal = Refusal::BadArg("a pointer for the result is NULL");

/// Where a result goes: NULL, or writable during the call.
#[repr(transparent)]
pub(crate) struct Out<'call, T>(Option<Place<'call, T>>);

/// The same, and not NULL.
#[repr(transparent)]
pub(crate) struct Place<'call, T>(NonNull<T>, PhantomData<&'call mut T>);

impl<'call, T> Out<'call, T> {
    pub(crate) fn place(self) -> Result<Place<'call, T>, Refusal> {
        self.0.ok_or(NULL)
    }

    pub(crate) fn give(self, value: T) -> Answer {
        self.place()?.put(value);
        Ok(())
    }

    /// Writes a result that the program may do without.
    pub(crate) fn give_if_asked(self, value: T) {
        if let Some(place) = self.0 {
            place.put(value);
        }
    }
}

impl<T> Place<'_, T> {
    pub(crate) fn put(self, value: T) {
        // SAFETY: not NULL, and writable during the call, by the contract of `Out`. C aligns it,
        // and nobody is hurt if it did not.
        unsafe { self.0.write_unaligned(value) }
    }
}

/// A text: NULL, or a string that nobody changes during the call.
#[repr(transparent)]
pub(crate) struct Text<'call>(*const c_char, PhantomData<&'call CStr>);

impl<'call> Text<'call> {
    pub(crate) fn get(self) -> Option<&'call CStr> {
        // SAFETY: not NULL, so a string that ends with a NUL and that nobody changes during the
        // call, by the contract of the type.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }
}

/// A variable that C programs set before they start threads.
#[repr(transparent)]
pub(crate) struct Shared<T>(UnsafeCell<T>);

// SAFETY: the program sets it only while it has one thread, so that no write meets a read.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub(crate) fn get(&self) -> T {
        // SAFETY: see `Sync`.
        unsafe { self.0.get().read() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_need_not_be_aligned() {
        let mut room = [0u32; 3];
        let odd = NonNull::from(&mut room).cast::<u8>();
        // SAFETY: the second byte of twelve.
        let odd = unsafe { odd.add(1) };
        Out(Some(Place(odd.cast::<u64>(), PhantomData))).give(u64::MAX).expect("a place");
        assert_eq!(room[0].to_ne_bytes()[0], 0);
        assert_eq!(room.map(u32::count_ones).iter().sum::<u32>(), 64);
    }
}
