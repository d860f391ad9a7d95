//! Copies between memory that others read or write meanwhile and memory of our own. An aligned word
//! of 8 bytes of the shared side is never torn: it is read or written by one instruction. The C
//! library's `memcpy` does not promise that: it may copy single bytes, write a byte twice, or use
//! `rep movsb`.

use crate::prefetch;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Bytes of a word that stays whole.
const WORD: usize = 8;

/// Bytes before the first aligned word at this address, of `len` at most.
#[inline]
pub(crate) fn before(address: *const u8, len: usize) -> usize {
    (address.addr().wrapping_neg() % WORD).min(len)
}

/// Copies to shared memory.
///
/// # Safety
///
/// The bytes at `source` are readable, and who writes them meanwhile spoils the copy alone; those
/// at `target` are writable, and others that use them meanwhile know that they change. The two do
/// not overlap.
#[inline]
pub(crate) unsafe fn copy_in(source: *const u8, target: *mut u8, len: usize) {
    // SAFETY: the caller answers for both.
    unsafe { if is_short(target, len) { few::<IN>(source, target, len) } else { long_in(source, target, len) } };
}

#[inline(never)]
unsafe fn long_in(source: *const u8, target: *mut u8, len: usize) {
    // SAFETY: as of `copy_in`.
    unsafe { copy::<IN>(source, target, len, before(target, len)) };
}

/// Copies from shared memory.
///
/// # Safety
///
/// The bytes at `source` are readable, others may write them meanwhile, and no `&[u8]` of this
/// process covers them; those at `target` are writable and nobody else's. The two do not overlap.
#[inline]
pub(crate) unsafe fn copy_out(source: *const u8, target: *mut u8, len: usize) {
    // SAFETY: the caller answers for both.
    unsafe { if is_short(source, len) { few::<OUT>(source, target, len) } else { long_out(source, target, len) } };
}

#[inline(never)]
unsafe fn long_out(source: *const u8, target: *mut u8, len: usize) {
    // SAFETY: as of `copy_out`.
    unsafe { copy::<OUT>(source, target, len, before(source, len)) };
}

/// Copies a message from shared memory to shared memory. Aligned words of the target are written
/// whole; of the source, where both are aligned alike.
///
/// # Safety
///
/// The bytes at `source` are readable, those at `target` writable; others that use either meanwhile
/// know that they change. The two do not overlap.
pub(crate) unsafe fn copy_across(source: *const u8, target: *mut u8, len: usize) {
    if source.addr() % WORD == target.addr() % WORD {
        // SAFETY: as the caller says; where words of the target begin, those of the source do.
        return unsafe { copy::<OVER>(source, target, len, before(target, len)) };
    }
    let mut piece = [0; PIECE];
    for at in (0..len).step_by(PIECE) {
        let part = &mut piece[..PIECE.min(len - at)];
        // SAFETY: inside of both, and the piece is nobody else's.
        unsafe {
            copy_out(source.add(at), part.as_mut_ptr(), part.len());
            copy_in(part.as_ptr(), target.add(at), part.len());
        }
    }
}

/// Bytes of a copy between two places that are aligned unlike, at a time.
const PIECE: usize = 512;

/// Which side of a copy is shared.
type Side = u8;
/// The target.
const IN: Side = 0;
/// The source.
const OUT: Side = 1;
/// Both.
const OVER: Side = 2;

/// Bytes of a copy by [`few`], at most.
const FEW: usize = 64;

/// Whether the shared side is a few aligned words: a short message.
#[inline(always)]
fn is_short(shared: *const u8, len: usize) -> bool {
    len <= FEW && (shared.addr() | len).is_multiple_of(WORD)
}

/// Copies aligned words of the shared side, one by one.
#[inline(always)]
unsafe fn few<const SIDE: Side>(source: *const u8, target: *mut u8, len: usize) {
    let mut at = 0;
    while at < len {
        // SAFETY: inside of the caller's ranges, and the words of the shared side are aligned.
        unsafe { word::<SIDE>(source.add(at), target.add(at)) };
        at += WORD;
    }
}

/// Changes a shared word, and returns its old value.
///
/// # Safety
///
/// The `len` bytes at `word` are writable and aligned to `len`, which is 4 or 8; others that use
/// them meanwhile do so as words.
#[inline]
pub(crate) unsafe fn update(word: *mut u8, len: usize, change: impl Fn(u64) -> Option<u64>) -> u64 {
    let (set, seen) = (Ordering::AcqRel, Ordering::Acquire);
    if len == 4 {
        // SAFETY: the caller answers for 4 aligned bytes.
        let short = unsafe { AtomicU32::from_ptr(word.cast()) };
        #[expect(clippy::cast_possible_truncation, reason = "what the change makes of 32 bits has no more")]
        let changed = short.fetch_update(set, seen, |old| change(old.into()).map(|new| new as u32));
        return changed.unwrap_or_else(|old| old).into();
    }
    // SAFETY: the caller answers for 8 aligned bytes.
    unsafe { AtomicU64::from_ptr(word.cast()) }.fetch_update(set, seen, change).unwrap_or_else(|old| old)
}

/// Copies `len` bytes; aligned words of what is shared begin after `head` bytes.
#[inline]
unsafe fn copy<const SIDE: Side>(source: *const u8, target: *mut u8, len: usize, head: usize) {
    let shared = if SIDE == IN { target.cast_const() } else { source };
    let from_blocks = head + words_to_line(shared.wrapping_add(head), len - head);
    let blocks = (len - from_blocks) / COPY_BLOCK * COPY_BLOCK;
    let words = (len - from_blocks) % COPY_BLOCK / WORD * WORD;
    let (from_words, from_tail) = (from_blocks + blocks, from_blocks + blocks + words);
    // SAFETY: every range lies inside of the caller's, and words of the shared side are aligned.
    unsafe {
        (0..head).for_each(|at| byte::<SIDE>(source.add(at), target.add(at)));
        (head..from_blocks).step_by(WORD).for_each(|at| word::<SIDE>(source.add(at), target.add(at)));
        copy_blocks::<SIDE>(source.add(from_blocks), target.add(from_blocks), blocks);
        (from_words..from_tail).step_by(WORD).for_each(|at| word::<SIDE>(source.add(at), target.add(at)));
        (from_tail..len).for_each(|at| byte::<SIDE>(source.add(at), target.add(at)));
    }
}

/// Bytes of words before the first line that begins at or behind this aligned word, where `len`
/// bytes are worth that: a vector that lies in two lines of a peer waits for both.
#[inline]
fn words_to_line(word: *const u8, len: usize) -> usize {
    if len < MANY_LINES { 0 } else { word.addr().wrapping_neg() % COPY_BLOCK }
}

/// Bytes of the shortest copy whose blocks are lines of the shared side.
const MANY_LINES: usize = 4 * COPY_BLOCK;

/// Copies `len` bytes, whole blocks.
#[inline]
unsafe fn copy_blocks<const SIDE: Side>(source: *const u8, target: *mut u8, len: usize) {
    // By trial on AMD (Zen 4), of messages between two processors: stores of 16 bytes pass lines of
    // a peer faster than longer ones and than `rep movsb`, and loads of 32 bytes faster than those
    // of 16.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if SIDE != IN && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the caller answers for the bytes; the processor has the instructions.
        return unsafe { long_vectors::copy_blocks(source, target, len) };
    }
    // To ask for the lines of a message makes its copy slower, by the same trial.
    let from_last = if SIDE == IN && len <= MESSAGE { 0 } else { len.saturating_sub(AHEAD) };
    // SAFETY: the caller answers for the bytes.
    unsafe {
        (0..from_last).step_by(COPY_BLOCK).for_each(|at| {
            ask_ahead(source.add(at), target.add(at));
            block::<SIDE>(source.add(at), target.add(at));
        });
        (from_last..len).step_by(COPY_BLOCK).for_each(|at| block::<SIDE>(source.add(at), target.add(at)));
    }
}

/// Bytes of a copy that is a message and no more.
const MESSAGE: usize = 16 << 10;

/// One word, at an aligned place of the shared side.
#[inline(always)]
unsafe fn word<const SIDE: Side>(source: *const u8, target: *mut u8) {
    // SAFETY: the caller answers for 8 bytes at both, and for the alignment of what is shared.
    unsafe {
        let value = if SIDE == IN {
            source.cast::<u64>().read_unaligned()
        } else {
            AtomicU64::from_ptr(source.cast_mut().cast()).load(Ordering::Relaxed)
        };
        if SIDE == OUT {
            target.cast::<u64>().write_unaligned(value);
        } else {
            AtomicU64::from_ptr(target.cast()).store(value, Ordering::Relaxed);
        }
    }
}

#[inline(always)]
unsafe fn byte<const SIDE: Side>(source: *const u8, target: *mut u8) {
    // SAFETY: the caller answers for a byte at both.
    unsafe {
        let value =
            if SIDE == IN { source.read() } else { AtomicU8::from_ptr(source.cast_mut()).load(Ordering::Relaxed) };
        if SIDE == OUT { target.write(value) } else { AtomicU8::from_ptr(target).store(value, Ordering::Relaxed) }
    }
}

/// How far ahead lines are asked for, bytes, a multiple of [`COPY_BLOCK`]: as for the check.
const AHEAD: usize = 2048;

/// Bytes that [`block`] copies.
const COPY_BLOCK: usize = 64;

/// Asks for the lines that a long copy comes to. Nothing beyond the copy is asked for: those lines
/// may be another message's, and the peer is writing them.
#[inline(always)]
fn ask_ahead(source: *const u8, target: *mut u8) {
    prefetch::at::<false>(source.wrapping_add(AHEAD));
    prefetch::at::<true>(target.wrapping_add(AHEAD));
}

/// One block. Vectors of 16 bytes at addresses that are multiples of 8 do not tear words: where one
/// lies in two lines the processor divides it at the line's end.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn block<const SIDE: Side>(source: *const u8, target: *mut u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};
    // SAFETY: SSE 2 belongs to the architecture; the caller answers for 64 bytes at both.
    unsafe {
        let lanes: [__m128i; 4] = std::array::from_fn(|at| _mm_loadu_si128(source.add(16 * at).cast()));
        lanes.iter().enumerate().for_each(|(at, lane)| _mm_storeu_si128(target.add(16 * at).cast(), *lane));
    }
}

/// The same by words.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
unsafe fn block<const SIDE: Side>(source: *const u8, target: *mut u8) {
    for at in (0..COPY_BLOCK).step_by(WORD) {
        // SAFETY: inside of the 64 bytes that the caller answers for.
        unsafe { word::<SIDE>(source.add(at), target.add(at)) };
    }
}

/// Blocks by vectors of 32 bytes. At addresses that are multiples of 8 they tear no words, as in
/// [`block`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod long_vectors {
    use super::{AHEAD, COPY_BLOCK, ask_ahead};
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_storeu_si256};

    /// # Safety
    ///
    /// As of [`super::copy_blocks`]; the processor has AVX.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn copy_blocks(source: *const u8, target: *mut u8, len: usize) {
        let (mut at, from_last) = (0, len.saturating_sub(AHEAD));
        while at < len {
            // SAFETY: inside of the caller's ranges.
            unsafe {
                let (from, to) = (source.add(at), target.add(at));
                if at < from_last {
                    ask_ahead(from, to);
                }
                let first = _mm256_loadu_si256(from.cast());
                let second = _mm256_loadu_si256(from.add(32).cast());
                _mm256_storeu_si256(to.cast(), first);
                _mm256_storeu_si256(to.add(32).cast(), second);
            }
            at += COPY_BLOCK;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{copy_across, copy_in, copy_out};
    use crate::crc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    #[test]
    fn all_lengths_and_places_are_copied_and_nothing_beside_them() {
        let source: Vec<u8> = (0..1200_u32).map(|at| u8::try_from(at * 31 % 251).expect("small")).collect();
        for copy in [copy_in, copy_out, copy_across] {
            // Miri takes a thousand times as long.
            for len in (0..if cfg!(miri) { 300 } else { 1100 }).step_by(if cfg!(miri) { 23 } else { 1 }) {
                for (from, to) in [(0, 0), (1, 0), (0, 3), (5, 5), (7, 2)] {
                    let mut target = vec![0xEE; to + len + 64];
                    // SAFETY: both have room, and they are two allocations.
                    unsafe { copy(source.as_ptr().add(from), target.as_mut_ptr().add(to), len) };
                    assert_eq!(target[to..to + len], source[from..from + len], "{len} bytes from {from} to {to}");
                    let beside = target[..to].iter().chain(&target[to + len..]);
                    assert!(beside.into_iter().all(|byte| *byte == 0xEE), "{len} bytes from {from} to {to}");
                }
            }
        }
    }

    /// A word that is whole is a number twice.
    fn is_whole(word: u64) -> bool {
        word >> 32 == word & 0xFFFF_FFFF
    }

    const WORDS: usize = 80;

    /// Runs `copy` between shared words and bytes of our own while another thread runs `other`;
    /// `copy` has the first shared byte.
    fn race(other: impl Fn(&[AtomicU64], u64) + Sync, mut copy: impl FnMut(*mut u8, u64)) {
        let shared: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut turn = 0;
                while !over.load(Ordering::Relaxed) {
                    turn += 1;
                    other(&shared, turn);
                }
            });
            for turn in 0..20_000 {
                copy(shared.as_ptr().cast_mut().cast(), turn);
            }
            over.store(true, Ordering::Relaxed);
        });
    }

    /// Writes the same number twice into every word.
    fn write_all(shared: &[AtomicU64], turn: u64) {
        shared.iter().for_each(|word| word.store((turn & 0xFFFF_FFFF) * 0x1_0000_0001, Ordering::Relaxed));
    }

    #[test]
    #[cfg_attr(miri, ignore = "the copy with its check is no race for the processor, and one for Miri")]
    fn words_that_change_are_read_whole_wherever_the_copy_begins() {
        let mut target = vec![0_u8; 8 * WORDS + 8];
        race(write_all, |shared, turn| {
            // Before a word, and up to behind one; the target is anywhere.
            let from = usize::try_from(turn % 16).expect("small");
            let to = usize::try_from(turn / 16 % 8).expect("small");
            let len = 8 * WORDS - from - usize::try_from(turn % 5).expect("small");
            // SAFETY: inside of the shared words, and of the target.
            unsafe {
                let source = shared.add(from).cast_const();
                let bytes = &mut target[to..to + len];
                if turn % 2 == 0 {
                    copy_out(source, bytes.as_mut_ptr(), len);
                } else {
                    let register = crc::over_copied_out(u32::MAX, source, bytes);
                    assert_eq!(register, crc::over(u32::MAX, bytes.as_ptr(), len), "the check is of what was copied");
                }
            }
            let first = to + (8 - from % 8) % 8;
            for word in target[first..to + len].chunks_exact(8) {
                let word = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
                assert!(is_whole(word), "{word:#x}, from {from}");
            }
        });
    }

    #[test]
    #[cfg_attr(miri, ignore = "the copy with its check is no race for the processor, and one for Miri")]
    fn words_that_are_read_meanwhile_are_written_whole_wherever_the_copy_begins() {
        let look = |shared: &[AtomicU64], _| {
            for word in shared {
                let word = word.load(Ordering::Relaxed);
                assert!(is_whole(word), "{word:#x}");
            }
        };
        race(look, |shared, turn| {
            let source: Vec<u8> =
                [turn * 0x1_0000_0001; WORDS + 1].iter().flat_map(|word| word.to_ne_bytes()).collect();
            let first = usize::try_from(turn % 3).expect("small");
            let len = 8 * (WORDS - first - usize::try_from(turn % 7).expect("small"));
            // SAFETY: inside of the shared words, and of the source.
            unsafe {
                let target = shared.add(8 * first);
                // The bytes of the source lie anywhere, and are the same at every fourth.
                let bytes = &source[4 * (first % 2)..][..len];
                if turn % 2 == 0 {
                    copy_in(bytes.as_ptr(), target, len);
                } else {
                    crc::over_copied(u32::MAX, bytes, target);
                }
            }
        });
    }
}
