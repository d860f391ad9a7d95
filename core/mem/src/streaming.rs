//! Copies past the caches: for transfers that are too large to stay in the caches until somebody
//! reads them.
//!
//! A copy through the caches reads each line of the target from memory before it overwrites the
//! line. A copy past the caches does not, and so moves two thirds of the bytes. The C library does
//! the same for one large `memcpy`, but not for the pieces of a transfer, because it decides by the
//! length of one call.

use std::sync::LazyLock;

/// The shortest transfer that is ever copied past the caches, in bytes.
const LEAST: u64 = 8 << 20;
/// The threshold where the system does not say how large its last cache is, in bytes.
const UNKNOWN: u64 = 16 << 20;

static THRESHOLD: LazyLock<u64> = LazyLock::new(|| {
    let last_level = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size");
    threshold_of(last_level.ok().as_deref())
});

/// The shortest transfer that [`copy`] is meant for, in bytes: a sixteenth of the last-level cache,
/// which many processors share, rounded down to a power of two, and 8 MiB at least; 16 MiB where
/// the system does not say how large the cache is. The first call reads that from a file.
///
/// By trial, with a cache of 260 MiB: a copy of 16 MiB and another processor's reading of it take
/// together the same time either way; longer ones take less past the caches, shorter ones more.
pub fn threshold() -> u64 {
    *THRESHOLD
}

/// The threshold by the size of the last-level cache as the system writes it: a number of KiB and a
/// K.
fn threshold_of(last_level: Option<&str>) -> u64 {
    let kib = last_level.and_then(|text| text.trim().strip_suffix('K')?.parse::<u64>().ok());
    let sixteenth = kib.and_then(|kib| kib.checked_mul(1024 / 16)).and_then(u64::checked_ilog2);
    sixteenth.map_or(UNKNOWN, |log| LEAST.max(1 << log))
}

/// Copies `len` bytes past the caches where the processor can, and through them elsewhere. The
/// bytes are visible to whoever sees a later store of this thread with release order.
///
/// # Safety
///
/// The bytes at `source` are readable and those at `target` writable; the two do not overlap.
/// Others may use both meanwhile, and know that they change.
pub unsafe fn copy(source: *const u8, target: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the caller's contract is passed on.
    unsafe {
        lines::copy(source, target, len);
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    // SAFETY: the caller's contract is passed on.
    unsafe {
        std::ptr::copy_nonoverlapping(source, target, len);
    }
}

/// By vectors of 16 bytes: longer ones are no faster, since memory is what takes the time.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod lines {
    use crate::prefetch::{self, LINE};
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    use std::ptr::copy_nonoverlapping;

    /// Bytes of a run of lines that follow each other.
    const RUN: usize = 4096;
    /// Runs that are copied side by side: memory serves several pages at a time faster than one. By
    /// trial, of 1, 4 and 8.
    const RUNS: usize = 4;
    const STREAM_BLOCK: usize = RUN * RUNS;

    /// As [`super::copy`].
    pub(super) unsafe fn copy(source: *const u8, target: *mut u8, len: usize) {
        let head = (target.addr().wrapping_neg() % LINE).min(len);
        let blocks = head + (len - head) / STREAM_BLOCK * STREAM_BLOCK;
        let tail = head + (len - head) / LINE * LINE;
        // SAFETY: every range lies inside of the caller's; after `head` bytes the target is a
        // multiple of a line.
        unsafe {
            copy_nonoverlapping(source, target, head);
            for block in (head..blocks).step_by(STREAM_BLOCK) {
                for at in (block..block + RUN).step_by(LINE) {
                    (0..RUNS).for_each(|run| line(source.add(at + run * RUN), target.add(at + run * RUN)));
                }
            }
            (blocks..tail).step_by(LINE).for_each(|at| line(source.add(at), target.add(at)));
            copy_nonoverlapping(source.add(tail), target.add(tail), len - tail);
            // A store with release order does not wait for stores past the caches.
            _mm_sfence();
        }
    }

    /// Copies one line to an aligned target, and asks for the same line of the next block.
    #[inline(always)]
    unsafe fn line(source: *const u8, target: *mut u8) {
        prefetch::at::<false>(source.wrapping_add(STREAM_BLOCK));
        // SAFETY: SSE 2 belongs to the architecture; the caller answers for 64 bytes at both, and
        // for the alignment.
        unsafe {
            let parts: [__m128i; 4] = std::array::from_fn(|at| _mm_loadu_si128(source.add(16 * at).cast()));
            parts.iter().enumerate().for_each(|(at, part)| _mm_stream_si128(target.add(16 * at).cast(), *part));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAST, UNKNOWN, copy, threshold, threshold_of};

    #[test]
    #[cfg_attr(miri, ignore = "compares three million bytes one by one, of a copy that is the plain one under Miri")]
    fn every_byte_is_copied_and_none_beside_wherever_both_begin() {
        const ROOM: usize = 3 * 16_384 + 256;
        let source: Vec<u8> = (0..ROOM).map(|at| u8::try_from(at * 31 % 251).expect("a byte")).collect();
        for (turn, len) in
            [0, 1, 63, 64, 65, 127, 4096, 16_383, 16_384, 16_385, 16_511, 40_000, 49_152].iter().enumerate()
        {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (7, 63), (33, 16 + turn)] {
                let mut target = vec![0xee; ROOM];
                // SAFETY: both lie inside of their vectors, which differ.
                unsafe { copy(source.as_ptr().add(from), target.as_mut_ptr().add(to), *len) };
                assert!(target[to..to + len] == source[from..from + len], "{len} bytes from {from} to {to}");
                let is_untouched = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0xee);
                assert!(is_untouched(&target[..to]) && is_untouched(&target[to + len..]), "{len} from {from} to {to}");
            }
        }
    }

    #[test]
    fn the_threshold_is_a_sixteenth_of_the_last_cache_rounded_down_within_limits() {
        assert_eq!(threshold_of(Some("266240K\n")), 16 << 20);
        assert_eq!(threshold_of(Some("524288K")), 32 << 20);
        assert_eq!(threshold_of(Some("32768K")), LEAST);
        for unknown in
            [None, Some(""), Some("K"), Some("12"), Some("99999999999999999999K"), Some("18446744073709551615K")]
        {
            assert_eq!(threshold_of(unknown), UNKNOWN, "{unknown:?}");
        }
        assert!(threshold() >= LEAST);
    }
}
