//! Asking for a cache line before it is needed. Hints only: they change no memory and never fault.

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// The line will be read.
#[inline(always)]
pub fn read<T>(line: &T) {
    at::<false>(std::ptr::from_ref(line).cast());
}

/// The line will be written: takes it away from whoever has it now.
#[inline(always)]
pub fn write<T>(line: &T) {
    at::<true>(std::ptr::from_ref(line).cast());
}

/// The line so many after this one, which may be beyond all memory, will be written.
#[inline(always)]
pub fn write_after<T>(line: &T, count: usize) {
    at::<true>(std::ptr::from_ref(line).wrapping_add(count).cast());
}

/// The line at any address, whether there is memory or not.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(crate) fn at<const WRITE: bool>(address: *const u8) {
    // SAFETY: a prefetch of any address is allowed; `prefetchw` is a no-op on processors that do
    // not know it.
    unsafe {
        if WRITE {
            std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, readonly, preserves_flags));
        } else {
            std::arch::asm!("prefetcht0 [{}]", in(reg) address, options(nostack, readonly, preserves_flags));
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
pub(crate) fn at<const WRITE: bool>(_: *const u8) {}
