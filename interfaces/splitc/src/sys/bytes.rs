//! Copies between memory of this rank and memory that others read and write meanwhile.

use cci_mem::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::slice;

/// Types of which any bits are a value, without padding.
pub trait Bits: Copy + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! bits {
    ($($type:ty)+) => {
        $(
            impl sealed::Sealed for $type {}
            impl Bits for $type {}
        )+
    };
}

bits! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

/// The bytes of values.
pub(crate) fn view<T: Bits>(values: &[T]) -> &[u8] {
    // SAFETY: `Bits` has no padding, so that all bytes are initialized; the slice covers them.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// A place that the bytes of an answer go to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    start: *mut u8,
    len: usize,
}

impl Target {
    /// # Safety
    ///
    /// The bytes stay writable, and nobody else's, until the operation that has this target ends or
    /// is cancelled.
    pub(crate) unsafe fn new(start: *mut u8, len: usize) -> Self {
        Self { start, len }
    }

    /// The place of values, which the caller lends until the operation ends or is cancelled.
    pub(crate) fn of<T: Bits>(values: &mut [T]) -> Self {
        Self { start: values.as_mut_ptr().cast(), len: size_of_val(values) }
    }

    pub(crate) fn address(self) -> *mut u8 {
        self.start
    }

    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// A part of the place.
    pub(crate) fn part(self, from: usize, len: usize) -> Self {
        let from = from.min(self.len);
        Self { start: self.start.wrapping_add(from), len: len.min(self.len - from) }
    }

    /// Fills the place; bytes that it has no room for are left out.
    pub(crate) fn fill(self, bytes: &[u8]) {
        let len = bytes.len().min(self.len);
        // SAFETY: writable by the contract of `new`, or lent by the caller of `of`; `bytes` is a
        // reference, so that the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start, len) };
    }
}

/// Copies out of memory that others may write: an aligned word of 1, 2, 4 or 8 bytes at once,
/// anything else in any order.
///
/// # Safety
///
/// `len` bytes are readable at `from`, and writable at `to` and nobody else's there.
#[inline]
pub(crate) unsafe fn copy_out(from: *const u8, to: *mut u8, len: usize) {
    macro_rules! word {
        ($atomic:ident, $value:ty) => {{
            // SAFETY: readable by the contract, aligned as the guards below check.
            let value = unsafe { $atomic::from_ptr(from.cast_mut().cast()) }.load(Ordering::Acquire);
            // SAFETY: writable by the contract.
            unsafe { to.cast::<$value>().write_unaligned(value) }
        }};
    }
    match len {
        1 => word!(AtomicU8, u8),
        2 if from.addr().is_multiple_of(2) => word!(AtomicU16, u16),
        4 if from.addr().is_multiple_of(4) => word!(AtomicU32, u32),
        8 if from.addr().is_multiple_of(8) => word!(AtomicU64, u64),
        // SAFETY: by the contract; who writes the source meanwhile spoils these bytes only.
        _ => unsafe { std::ptr::copy(from, to, len) },
    }
}

/// Copies into memory that others may read or write, as [`copy_out`].
///
/// # Safety
///
/// `len` bytes are readable at `from`, and writable at `to`.
#[inline]
pub(crate) unsafe fn copy_in(from: *const u8, to: *mut u8, len: usize) {
    macro_rules! word {
        ($atomic:ident, $value:ty) => {{
            // SAFETY: readable by the contract.
            let value = unsafe { from.cast::<$value>().read_unaligned() };
            // SAFETY: writable by the contract, aligned as the guards below check.
            unsafe { $atomic::from_ptr(to.cast()) }.store(value, Ordering::Release)
        }};
    }
    match len {
        1 => word!(AtomicU8, u8),
        2 if to.addr().is_multiple_of(2) => word!(AtomicU16, u16),
        4 if to.addr().is_multiple_of(4) => word!(AtomicU32, u32),
        8 if to.addr().is_multiple_of(8) => word!(AtomicU64, u64),
        // SAFETY: by the contract; who uses the target meanwhile reads a mix of old and new.
        _ => unsafe { std::ptr::copy(from, to, len) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths_and_places_are_copied_and_nothing_beside_them() {
        let source: Vec<u8> = (0..64).collect();
        for copy in [copy_in, copy_out] {
            for (len, from, to) in (0..20).flat_map(|len| (0..9).map(move |at| (len, at, (at * 5) % 8))) {
                let mut target = [0xEE_u8; 40];
                // SAFETY: inside of both arrays.
                unsafe { copy(source.as_ptr().add(from), target.as_mut_ptr().add(to), len) };
                assert_eq!(target[to..to + len], source[from..from + len]);
                assert!(target[..to].iter().chain(&target[to + len..]).all(|byte| *byte == 0xEE));
            }
        }
    }

    #[test]
    fn a_target_takes_no_more_than_it_has_room_for() {
        let mut values = [0_u16; 4];
        let target = Target::of(&mut values);
        target.part(2, 4).fill(&[1, 1, 2, 2, 3, 3]);
        target.part(7, 9).fill(&[9, 9]);
        target.part(99, 1).fill(&[9]);
        assert_eq!(values, [0, 0x0101, 0x0202, 0x0900]);
        assert_eq!(view(&values)[2..4], [1, 1]);
    }
}
