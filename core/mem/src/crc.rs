//! CRC32C over memory of which no reference can be formed, because others may write it meanwhile,
//! and on the way of a copy.
//!
//! A register is the CRC32C of the bytes so far, not inverted: all ones before the first. Where the
//! processor can, it is folded by carry-less multiplication, four times 64 bytes at a time (Gopal
//! et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009);
//! elsewhere a copy is made part by part, and the crate `crc-fast` goes over it.

use crate::words;
use crc_fast::{CrcAlgorithm, Digest};

/// Bytes that are copied for a check at a time, where they have to be. By trial: of 2 to 32 KiB, 8
/// and 16 take the least time.
const PART: usize = 8192;
/// Of so many bytes a copy is made in less room, whose clearing is not to cost more than they do.
const SMALL: usize = 256;

/// The register after `len` bytes from `source`. Bytes that change meanwhile count as what they
/// were or as what they become.
///
/// # Safety
///
/// The bytes are readable.
#[inline]
pub(crate) unsafe fn over(register: u32, source: *const u8, len: usize) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if folding::is_possible() {
        // SAFETY: the processor can, and the caller answers for the bytes; nothing is written.
        return unsafe { folding::fold::<false>(register, source, std::ptr::null_mut(), len) };
    }
    // SAFETY: the caller answers for the bytes.
    unsafe { over_parts(register, source, len) }
}

/// Copies bytes from `source` to shared memory at `target`, and returns the register after them.
/// Aligned words of 8 bytes at the target are written whole.
///
/// # Safety
///
/// As many bytes at `target` are writable, and none of them is `source`'s.
#[inline]
pub(crate) unsafe fn over_copied(register: u32, source: &[u8], target: *mut u8) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if folding::is_possible() {
        let head = words::before(target, source.len());
        // SAFETY: the processor can, `source` is readable, and the caller answers for the target.
        return unsafe { folding::fold_from(register, source.as_ptr(), target, source.len(), head) };
    }
    // SAFETY: `source` is readable, and the caller answers for the target.
    unsafe { words::copy_in(source.as_ptr(), target, source.len()) };
    over_slice(register, source)
}

/// Copies bytes from shared memory at `source`, and returns the register after the copy, whatever
/// the source becomes meanwhile. Aligned words of 8 bytes at the source are read whole.
///
/// # Safety
///
/// As many bytes at `source` are readable, and none of them is `target`'s.
#[inline]
pub(crate) unsafe fn over_copied_out(register: u32, source: *const u8, target: &mut [u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if folding::is_possible() {
        let head = words::before(source, target.len());
        // SAFETY: the processor can, `target` is writable, and the caller answers for the source.
        return unsafe { folding::fold_from(register, source, target.as_mut_ptr(), target.len(), head) };
    }
    // SAFETY: `target` is writable, and the caller answers for the source.
    unsafe { words::copy_out(source, target.as_mut_ptr(), target.len()) };
    over_slice(register, target)
}

fn over_slice(register: u32, bytes: &[u8]) -> u32 {
    let mut digest = begin(register);
    digest.update(bytes);
    end(&digest)
}

/// The same by copies, where the processor does not fold.
///
/// # Safety
///
/// As of [`over`].
unsafe fn over_parts(register: u32, source: *const u8, len: usize) -> u32 {
    let mut digest = begin(register);
    if len <= SMALL {
        // SAFETY: the caller answers for the bytes.
        unsafe { show_parts::<SMALL>(source, len, &mut digest) };
    } else {
        // SAFETY: the caller answers for the bytes.
        unsafe { show_parts::<PART>(source, len, &mut digest) };
    }
    end(&digest)
}

/// Shows a copy of the bytes, which stays in the first-level cache.
///
/// # Safety
///
/// As of [`over`].
unsafe fn show_parts<const N: usize>(source: *const u8, len: usize, digest: &mut Digest) {
    let mut part = [0_u8; N];
    for at in (0..len).step_by(N) {
        let count = N.min(len - at);
        // SAFETY: inside of the bytes that the caller answers for; the part is as long.
        unsafe { std::ptr::copy_nonoverlapping(source.add(at), part.as_mut_ptr(), count) };
        digest.update(&part[..count]);
    }
}

fn begin(register: u32) -> Digest {
    Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, register.into())
}

#[expect(clippy::cast_possible_truncation, reason = "a CRC of 32 bits in a wider word")]
fn end(digest: &Digest) -> u32 {
    !(digest.finalize() as u32)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod folding {
    use crate::prefetch;
    use std::arch::x86_64::{
        __m128i, __m512i, _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi32_si128, _mm_extract_epi64,
        _mm_set_epi64x, _mm_xor_si128, _mm512_broadcast_i32x4, _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32,
        _mm512_loadu_si512, _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
    };

    /// Bytes that are folded at a time.
    const STEP: usize = 256;
    const LANE: usize = 64;
    /// How far ahead lines are asked for, bytes: the processor itself asks only within a page. By
    /// trial: of 1 and 2 KiB the better one for what lies in the third-level cache, of which a
    /// check takes half the time then and a copy two thirds.
    const AHEAD: usize = 2048;
    /// Exclusive or of three words, as the truth table of the instruction.
    const XOR: i32 = 0x96;

    /// What carries 16 bytes over so many bits of the message: `x^(bits + 31)` and `x^(bits - 33)`,
    /// modulo the polynomial, in reflected order. A product of two reflected words is one bit
    /// short, which the odd exponents make up for.
    const fn over_bits(bits: u32) -> [i64; 2] {
        [power(bits + 31), power(bits - 33)]
    }

    /// `x^exponent` modulo the polynomial of CRC32C, the highest power in the lowest bit.
    const fn power(exponent: u32) -> i64 {
        let (mut word, mut i) = (0x8000_0000_u32, 0);
        while i < exponent {
            word = if word & 1 == 1 { (word >> 1) ^ 0x82F6_3B78 } else { word >> 1 };
            i += 1;
        }
        word as i64
    }

    const OVER_STEP: [i64; 2] = over_bits(8 * STEP as u32);
    const OVER_LANE: [i64; 2] = over_bits(8 * LANE as u32);
    const OVER_WORD: [i64; 2] = over_bits(128);

    /// Whether this processor has the instructions; found out once.
    #[inline]
    pub(super) fn is_possible() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("sse4.2")
    }

    #[inline]
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    fn carry(word: __m512i, by: __m512i, onto: __m512i) -> __m512i {
        let (low, high) = (_mm512_clmulepi64_epi128::<0x00>(word, by), _mm512_clmulepi64_epi128::<0x11>(word, by));
        _mm512_ternarylogic_epi64::<XOR>(low, high, onto)
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.2")]
    fn carry_word(word: __m128i, by: __m128i, onto: __m128i) -> __m128i {
        let (low, high) = (_mm_clmulepi64_si128::<0x00>(word, by), _mm_clmulepi64_si128::<0x11>(word, by));
        _mm_xor_si128(_mm_xor_si128(low, high), onto)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn broadcast([low, high]: [i64; 2]) -> __m512i {
        _mm512_broadcast_i32x4(_mm_set_epi64x(high, low))
    }

    /// The register after `len` bytes that are copied from `source` to `target`, the first `head`
    /// of them one by one: where words begin that stay whole.
    ///
    /// # Safety
    ///
    /// As of [`fold`]; `head` is at most `len`.
    #[inline]
    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
    pub(super) unsafe fn fold_from(
        mut register: u32,
        source: *const u8,
        target: *mut u8,
        len: usize,
        head: usize,
    ) -> u32 {
        // SAFETY: the caller answers for processor, bytes and target.
        unsafe {
            if head > 0 {
                register = finish::<true>(register, source, target, head);
            }
            fold::<true>(register, source.add(head), target.add(head), len - head)
        }
    }

    /// The register after `len` bytes from `source`; with `COPY`, which are copied to `target`.
    ///
    /// # Safety
    ///
    /// [`is_possible`]; the bytes are readable, with `COPY` as many writable at `target`, and the
    /// two do not overlap.
    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
    pub(super) unsafe fn fold<const COPY: bool>(
        register: u32,
        mut source: *const u8,
        mut target: *mut u8,
        mut len: usize,
    ) -> u32 {
        if len < 2 * STEP {
            // SAFETY: the caller answers for processor, bytes and target.
            return unsafe { finish::<COPY>(register, source, target, len) };
        }
        let mut next = || {
            let mut lanes = [broadcast([0, 0]); STEP / LANE];
            for lane in &mut lanes {
                prefetch::at::<false>(source.wrapping_add(AHEAD));
                if COPY {
                    prefetch::at::<true>(target.wrapping_add(AHEAD));
                }
                // SAFETY: `len` is at least a step when this is called, so that the lane lies
                // inside of the bytes.
                unsafe {
                    *lane = _mm512_loadu_si512(source.cast());
                    if COPY {
                        _mm512_storeu_si512(target.cast(), *lane);
                        target = target.add(LANE);
                    }
                    source = source.add(LANE);
                }
            }
            len -= STEP;
            (lanes, len)
        };
        let (mut sums, mut left) = next();
        sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(register.cast_signed())));
        let by = broadcast(OVER_STEP);
        while left >= STEP {
            let (lanes, rest) = next();
            for (sum, lane) in sums.iter_mut().zip(lanes) {
                *sum = carry(*sum, by, lane);
            }
            left = rest;
        }
        let by = broadcast(OVER_LANE);
        let [first, second, third, fourth] = sums;
        let last = carry(carry(carry(first, by, second), by, third), by, fourth);
        let by = _mm_set_epi64x(OVER_WORD[1], OVER_WORD[0]);
        let mut word = _mm512_extracti32x4_epi32::<0>(last);
        word = carry_word(word, by, _mm512_extracti32x4_epi32::<1>(last));
        word = carry_word(word, by, _mm512_extracti32x4_epi32::<2>(last));
        word = carry_word(word, by, _mm512_extracti32x4_epi32::<3>(last));
        let halves = [_mm_extract_epi64::<0>(word), _mm_extract_epi64::<1>(word)].map(i64::cast_unsigned);
        let register = halves.iter().fold(0, |register, half| _mm_crc32_u64(register, *half));
        // SAFETY: the rest of what the caller answers for.
        unsafe { finish::<COPY>(register as u32, source, target, left) }
    }

    /// The same for few bytes.
    ///
    /// # Safety
    ///
    /// As of [`fold`], of which it needs SSE 4.2 only.
    #[inline]
    #[target_feature(enable = "sse4.2")]
    unsafe fn finish<const COPY: bool>(register: u32, source: *const u8, target: *mut u8, len: usize) -> u32 {
        let mut register = u64::from(register);
        let whole = len - len % 8;
        for at in (0..whole).step_by(8) {
            // SAFETY: inside of the bytes that the caller answers for.
            unsafe {
                let word = source.add(at).cast::<u64>().read_unaligned();
                if COPY {
                    target.add(at).cast::<u64>().write_unaligned(word);
                }
                register = _mm_crc32_u64(register, word);
            }
        }
        let mut register = register as u32;
        for at in whole..len {
            // SAFETY: inside of the bytes that the caller answers for.
            unsafe {
                let byte = source.add(at).read();
                if COPY {
                    target.add(at).write(byte);
                }
                register = _mm_crc32_u8(register, byte);
            }
        }
        register
    }
}

#[cfg(test)]
mod tests {
    use super::{begin, end, over, over_copied, over_parts};

    /// Of the lengths that are tried. Miri takes a thousand times as long.
    const STEP: usize = if cfg!(miri) { 401 } else { 1 };

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect()
    }

    /// What `crc-fast` says.
    fn expected(register: u32, bytes: &[u8]) -> u32 {
        let mut digest = begin(register);
        digest.update(bytes);
        end(&digest)
    }

    #[test]
    fn it_is_castagnoli() {
        // The check value of the catalogue, and an example of RFC 3720, appendix B.4.
        // SAFETY: the bytes are those of a literal.
        assert_eq!(unsafe { !over(u32::MAX, b"123456789".as_ptr(), 9) }, 0xE306_9283);
        // SAFETY: those of a local array.
        assert_eq!(unsafe { !over(u32::MAX, [0_u8; 32].as_ptr(), 32) }, 0x8A91_36AA);
    }

    #[test]
    fn all_lengths_and_places_in_a_line_give_what_the_plain_way_gives() {
        let bytes = bytes(3000);
        for len in (0..1400).step_by(STEP).chain([2048, 2815, 2816, 2900]) {
            for from in [0, 1, 4, 44, 63] {
                let piece = &bytes[from..from + len];
                for register in [u32::MAX, 0, 0x1234_5678] {
                    let want = expected(register, piece);
                    // SAFETY: `piece` is readable.
                    unsafe {
                        assert_eq!(over(register, piece.as_ptr(), len), want, "{len} bytes from {from}");
                        assert_eq!(
                            over_parts(register, piece.as_ptr(), len),
                            want,
                            "{len} bytes from {from}, in parts"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_copy_is_whole_and_nothing_beside_it_is_written() {
        let bytes = bytes(2100);
        for len in (0..700).step_by(STEP).chain([1023, 1024, 1025, 2047, 2048, 2100]) {
            for to in [0, 1, 20] {
                let piece = &bytes[..len];
                let mut target = vec![0xEE; to + len + 64];
                // SAFETY: there is room for `len` bytes from `to` on, of another allocation.
                let register = unsafe { over_copied(u32::MAX, piece, target.as_mut_ptr().add(to)) };
                assert_eq!(register, expected(u32::MAX, piece), "{len} bytes to {to}");
                assert_eq!(&target[to..to + len], piece, "{len} bytes to {to}");
                let beside = target[..to].iter().chain(&target[to + len..]);
                assert!(beside.into_iter().all(|byte| *byte == 0xEE), "{len} bytes to {to}");
            }
        }
    }
}
