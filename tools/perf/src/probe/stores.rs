//! Stores into memory that the other side polls: what a window of a remote segment is, without a
//! library.

use super::shared::{COPIES, LARGEST_COPY, Shared};
use super::side::Side;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Memory of both sides: each stores into that of the other one, and polls its own.
pub(crate) struct Stores<'a> {
    shared: &'a Shared,
    own: usize,
    far: usize,
}

impl<'a> Stores<'a> {
    pub(super) fn new(shared: &'a Shared, side: Side) -> Self {
        let [server, client] = COPIES;
        let (own, far) = if side == Side::Client { (client, server) } else { (server, client) };
        Self { shared, own, far }
    }

    /// Where so many bytes of a side are.
    #[inline(always)]
    fn place(&self, side: usize, at: usize, len: usize) -> *mut u8 {
        assert!(at + len <= LARGEST_COPY && (at.is_multiple_of(len) || len > 8), "a place of one side");
        self.shared.bytes(side + at, len)
    }

    /// Stores the lowest `WIDTH` bytes of a value.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the rest is not stored")]
    pub(crate) fn store<const WIDTH: usize>(&self, at: usize, value: u64) {
        let place = self.place(self.far, at, WIDTH);
        // SAFETY: `WIDTH` aligned bytes of the mapping, as `place` has checked; everybody uses them
        // as atomics or by copies of which the last element is awaited.
        unsafe {
            match WIDTH {
                1 => AtomicU8::from_ptr(place).store(value as u8, Ordering::Release),
                2 => AtomicU16::from_ptr(place.cast()).store(value as u16, Ordering::Release),
                4 => AtomicU32::from_ptr(place.cast()).store(value as u32, Ordering::Release),
                _ => AtomicU64::from_ptr(place.cast()).store(value, Ordering::Release),
            }
        }
    }

    /// Loads a value of this side's own memory.
    #[inline(always)]
    pub(crate) fn load<const WIDTH: usize>(&self, at: usize) -> u64 {
        let place = self.place(self.own, at, WIDTH);
        // SAFETY: as in `store`.
        unsafe {
            match WIDTH {
                1 => AtomicU8::from_ptr(place).load(Ordering::Acquire).into(),
                2 => AtomicU16::from_ptr(place.cast()).load(Ordering::Acquire).into(),
                4 => AtomicU32::from_ptr(place.cast()).load(Ordering::Acquire).into(),
                _ => AtomicU64::from_ptr(place.cast()).load(Ordering::Acquire),
            }
        }
    }

    /// Copies bytes to the other side, more than 8.
    #[inline(always)]
    pub(crate) fn copy(&self, at: usize, bytes: &[u8]) {
        let place = self.place(self.far, at, bytes.len());
        // SAFETY: as many bytes of the mapping, which is another memory than that of a slice. The
        // other side looks at the last element alone.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }
}
