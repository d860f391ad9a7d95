//! The lives of a cell that is never unmapped and used again: who reads a value of the cell, from
//! any thread and without a lock, learns whether the life that it means had ended by then.
//!
//! ```text
//!   owner of the cell                      reader, which knows the number of a life
//!   end      count                         read the value
//!   begin    fence                         fence
//!   write the values of the next life      compare the count
//! ```
//!
//! A reader that gets a value of the next life so sees the count, and discards the value (a
//! sequence lock whose writer never makes a reader wait).

use crate::sync::{AtomicU32, Ordering, fence, own};

/// Counts the lives of a cell. One owner at a time ends and begins them.
#[derive(Default)]
#[repr(transparent)]
pub struct Life(AtomicU32);

impl Life {
    /// Returns the number of this life.
    #[inline(always)]
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends this life.
    pub fn end(&self) {
        self.0.store(own(&self.0).wrapping_add(1), Ordering::Relaxed);
    }

    /// Begins the next life: its values are written after this, by relaxed stores.
    pub fn begin(&self) {
        // With the fence in `read`: whoever reads a value of this life sees that the one before has
        // ended.
        fence(Ordering::Release);
    }

    /// Returns what `read` finds by relaxed loads, if the life with this number has not ended.
    #[inline]
    pub fn read<T>(&self, number: u32, read: impl FnOnce() -> T) -> Option<T> {
        let value = read();
        // With the fence in `begin`: a value of a later life comes with that life's number.
        fence(Ordering::Acquire);
        (self.number() == number).then_some(value)
    }
}
