//! What C programs share with the library.

use crate::refusal::Refusal;
use std::cell::UnsafeCell;

/// A pointer that must lead somewhere leads nowhere.
pub(crate) const NULL: Refusal = Refusal::BadArg("a pointer for the result is NULL");

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
