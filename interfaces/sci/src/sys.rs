//! The unsafe code below windows: loads and stores of words that other processes use too.

use cci_mem::sync::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::atomic::AtomicU8; // `cci_mem::sync` has none

mod sealed {
    pub trait Sealed: Copy {
        /// Loads with acquire order.
        ///
        /// # Safety
        ///
        /// The address is aligned, and mapped for reading.
        unsafe fn load(at: *mut u8) -> Self;
        /// Stores with release order.
        ///
        /// # Safety
        ///
        /// The address is aligned, and mapped for writing.
        unsafe fn store(self, at: *mut u8);
    }
}

/// A value that a window loads and stores as one: `u8`, `u16`, `u32`, `u64`, `i8`, `i16`, `i32`,
/// `i64`, `f32` and `f64`.
///
/// # Example
///
/// ```
/// use cci_sci::{Error, Window, Word};
///
/// fn copy<T: Word>(window: &Window, from: usize, to: usize) -> Result<(), Error> {
///     let value: T = window.load(from)?;
///     window.store(to, value)
/// }
/// ```
pub trait Word: sealed::Sealed {}

macro_rules! words {
    ($($type:ty, $atomic:ident, $value:ident => $bits:expr, $raw:ident => $from:expr;)+) => {
        $(
            impl sealed::Sealed for $type {
                #[inline(always)]
                unsafe fn load(at: *mut u8) -> Self {
                    // SAFETY: by the contract; all who use these bytes know that they change.
                    let $raw = unsafe { $atomic::from_ptr(at.cast()) }.load(Ordering::Acquire);
                    $from
                }

                #[inline(always)]
                unsafe fn store(self, at: *mut u8) {
                    let $value = self;
                    // SAFETY: as in `load`.
                    unsafe { $atomic::from_ptr(at.cast()) }.store($bits, Ordering::Release);
                }
            }
            impl Word for $type {}
        )+
    };
}

words! {
    u8, AtomicU8, value => value, raw => raw;
    i8, AtomicU8, value => value.cast_unsigned(), raw => raw.cast_signed();
    u16, AtomicU16, value => value, raw => raw;
    i16, AtomicU16, value => value.cast_unsigned(), raw => raw.cast_signed();
    u32, AtomicU32, value => value, raw => raw;
    i32, AtomicU32, value => value.cast_unsigned(), raw => raw.cast_signed();
    u64, AtomicU64, value => value, raw => raw;
    i64, AtomicU64, value => value.cast_unsigned(), raw => raw.cast_signed();
    f32, AtomicU32, value => value.to_bits(), raw => f32::from_bits(raw);
    f64, AtomicU64, value => value.to_bits(), raw => f64::from_bits(raw);
}

/// Loads a word of mapped memory.
///
/// # Safety
///
/// The word lies inside of a mapping that lives, and is aligned.
#[inline(always)]
pub(crate) unsafe fn load<T: Word>(start: usize, offset: usize) -> T {
    // SAFETY: by the contract.
    unsafe { T::load(std::ptr::with_exposed_provenance_mut(start + offset)) }
}

/// Stores a word to mapped memory.
///
/// # Safety
///
/// As [`load`], and the mapping is writable.
#[inline(always)]
pub(crate) unsafe fn store<T: Word>(start: usize, offset: usize, value: T) {
    // SAFETY: by the contract.
    unsafe { value.store(std::ptr::with_exposed_provenance_mut(start + offset)) };
}
