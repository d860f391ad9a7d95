//! Room for the context of a cipher, in a cell of the arena.

use cci_mem::secrets::Plain;
use std::mem::MaybeUninit;

/// Either nothing, which is zeroes, or a context.
#[repr(C, align(16))]
pub(crate) struct Room<C> {
    /// 1 where a context lies behind it.
    is_set: u64,
    context: MaybeUninit<C>,
}

// SAFETY: zeroes are a room without a context, and nothing is dropped: contexts have no memory of
// their own. Only this module writes other patterns.
unsafe impl<C> Plain for Room<C> {}

impl<C> Room<C> {
    /// Makes a context in place. `make` returns whether it has.
    ///
    /// # Safety
    ///
    /// Where `make` returns true, a context lies at the address it was given.
    pub(super) unsafe fn set(&mut self, make: impl FnOnce(*mut C) -> bool) -> bool {
        self.is_set = 0;
        let is_set = make(self.context.as_mut_ptr());
        self.is_set = is_set.into();
        is_set
    }

    /// Returns the context, if there is one.
    #[inline(always)]
    pub(crate) fn context(&self) -> Option<&C> {
        // SAFETY: `set` has seen that it was made.
        (self.is_set == 1).then(|| unsafe { self.context.assume_init_ref() })
    }
}
