//! What C programs share with the library.

use std::cell::UnsafeCell;

/// A variable that C programs set before they start threads.
#[repr(transparent)]
pub(crate) struct Shared<T>(UnsafeCell<T>);

// SAFETY: set by the program's one thread, by the contract of the headers.
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
