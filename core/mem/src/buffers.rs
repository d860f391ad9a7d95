//! Payload buffers of an endpoint: a fixed number of one size, in address space that costs no
//! memory until it is touched and is never unmapped, so that what an event points to can always be
//! read.

use crate::fork::PerProcess;
use crate::region::{Regions, Zeroed};
use crate::slot::{Access, Slot};
use crate::sync::AtomicU64;
use rustix::io::{Errno, Result};

/// Bytes of a cache line: buffers begin at one.
const LINE: usize = 64;

/// A line of memory that is only ever touched through raw pointers.
#[repr(C, align(64))]
struct Line([AtomicU64; LINE / 8]);

// SAFETY: all zeroes are a value of atomics, which own nothing and change through shared
// references.
unsafe impl Zeroed for Line {}

static STORE: PerProcess<Regions<Line>> = PerProcess::new();

/// The buffers. Private to the holder of the endpoint's lock.
pub struct Buffers {
    lines: &'static [Line],
    /// Lines of one buffer.
    stride: usize,
    count: u32,
    /// The first that was never taken; its memory is still untouched.
    fresh: u32,
    free: Vec<u32>,
}

impl Buffers {
    /// `count` buffers for payloads of up to `len` bytes, and a zero byte after each.
    ///
    /// # Errors
    ///
    /// Out of address space.
    pub fn new(count: u32, len: usize) -> Result<Self> {
        let stride = (len + 1).div_ceil(LINE);
        let total = stride.checked_mul(count as usize).ok_or(Errno::NOMEM)?;
        let (_, store) = STORE.get(Regions::new)?;
        let mut free = Vec::new();
        free.try_reserve_exact(count as usize).map_err(|_| Errno::NOMEM)?;
        Ok(Self { lines: store.take(total)?, stride, count, fresh: 0, free })
    }

    /// Bytes of the largest payload.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.stride * LINE - 1
    }

    /// Takes a buffer: the one freed last, whose memory is in cache.
    #[inline]
    #[must_use]
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let number = (self.fresh < self.count).then_some(self.fresh)?;
            self.fresh += 1;
            Some(number)
        })
    }

    /// Gives a buffer back that was taken.
    #[inline]
    pub fn give(&mut self, number: u32) {
        // Never more than were taken, so that the list never grows.
        if self.free.len() < self.fresh as usize {
            self.free.push(number);
        }
    }

    /// Where `len` bytes of a buffer begin; none when they, or a byte after them, lie outside.
    #[inline]
    fn at(&self, number: u32, offset: usize, len: usize) -> Option<*mut u8> {
        let inside = number < self.count && offset.checked_add(len)? <= self.capacity();
        let first = number as usize * self.stride;
        // SAFETY: `number` is below the count, so that the buffer is inside the region, and the
        // offset inside the buffer.
        inside.then(|| unsafe { self.lines.as_ptr().add(first).cast::<u8>().cast_mut().add(offset) })
    }

    /// Copies bytes into a buffer. False, and nothing is copied, when they do not fit.
    #[inline]
    #[must_use]
    pub fn write(&mut self, number: u32, offset: usize, bytes: &[u8]) -> bool {
        let Some(target) = self.at(number, offset, bytes.len()) else { return false };
        // SAFETY: `at` has checked the range; the region is mapped for ever, consists of atomics,
        // and no reference to its bytes is ever formed, so that `bytes` is no part of it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        true
    }

    /// Fills in an event whose payload is the first `len` bytes of a buffer, and puts a zero byte
    /// after them.
    #[inline]
    pub fn show<C: Sync, E: Sync>(&mut self, slot: &Slot<C, E>, kind: u32, number: u32, len: u32, third: u64) {
        let Some(payload) = self.at(number, 0, len as usize) else { return };
        // SAFETY: `at` has checked that `len` bytes and one more lie in the buffer, whose region is
        // mapped for ever and private; `write` is not called for a buffer that an event shows.
        unsafe {
            payload.add(len as usize).write(0);
            slot.fill_payload(kind, payload, Access::Private, len, third);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // In a forked child this store is another one, which does not know the region and leaves it
        // alone.
        if let Ok((_, store)) = STORE.get(Regions::new) {
            store.give(self.lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_leaves_room_for_the_zero_byte_after_it() {
        let mut buffers = Buffers::new(1, 100).expect("address space");
        let number = buffers.take().expect("a buffer");
        let bytes = vec![1; buffers.capacity() + 1];
        assert_eq!(bytes.len(), 2 * LINE);
        assert!(buffers.write(number, 0, &bytes[1..]) && buffers.write(number, 1, &bytes[2..]));
        assert!(!buffers.write(number, 0, &bytes) && !buffers.write(number, 1, &bytes[1..]));
        assert!(!buffers.write(number, usize::MAX, &bytes[1..]));
    }
}
