//! Lines of memory compared with what is known of them, by vectors where the processor has them.

use crate::mirror::words::{Line, Source, Words, advance_by_words};
use cci_mem::sync::Ordering;

impl Source for Words<'_> {
    #[inline]
    fn word(&self, at: usize) -> u64 {
        self.0[at].load(Ordering::Acquire)
    }

    /// By vectors where the processor has them: most lines have not changed.
    #[inline]
    fn advance(&self, known: &mut [Line]) -> (usize, usize) {
        advance(self, known)
    }
}

/// [`Source::advance`] of words of memory.
fn advance(own: &Words<'_>, known: &mut [Line]) -> (usize, usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("avx2") {
        let own = &own.0.as_chunks().0[..known.len()];
        // SAFETY: the processor has the instructions, and the words begin a line.
        return unsafe { vectors::advance(own, known) };
    }
    advance_by_words(own, known)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod vectors {
    use crate::mirror::words::{LINE, Line};
    use cci_mem::sync::AtomicU64;
    use std::arch::x86_64::{
        __m128i, __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_or_si256, _mm256_set_m128i,
        _mm256_setzero_si256, _mm256_storeu_si256, _mm256_testz_si256, _mm256_xor_si256,
    };

    type Own = [AtomicU64; LINE as usize];

    /// A line of memory that the program may store to meanwhile, loaded before those that are
    /// loaded after it; of the line there is no order. Aligned words of 8 bytes are loaded whole.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn halves(own: &Own) -> [__m256i; 2] {
        let at = own.as_ptr().cast::<__m256i>();
        // SAFETY: a line has 64 bytes, and begins at a line of a mapping. Volatile loads are made
        // one by one and in the order of the program; a fence between others lets the compiler join
        // them.
        unsafe { [at.read_volatile(), at.add(1).read_volatile()] }
    }

    /// The same, from its end to its beginning. Aligned loads of 16 bytes are whole on processors
    /// with AVX, as both manuals say; of 32 bytes no manual does.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn halves_in_order(own: &Own) -> [__m256i; 2] {
        let at = own.as_ptr().cast::<__m128i>();
        let quarter = |quarter| {
            // SAFETY: a line has 64 bytes, and begins at a line of a mapping.
            unsafe { at.add(quarter).read_volatile() }
        };
        let [top, third, second, bottom] = [3, 2, 1, 0].map(quarter);
        [_mm256_set_m128i(second, bottom), _mm256_set_m128i(top, third)]
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn bits(own: [__m256i; 2], known: &Line) -> [__m256i; 2] {
        let at = known.as_ptr().cast::<__m256i>();
        // SAFETY: a line has 64 bytes.
        let known = unsafe { [_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))] };
        [_mm256_xor_si256(own[0], known[0]), _mm256_xor_si256(own[1], known[1])]
    }

    /// As [`super::advance`]. The words begin a line.
    #[target_feature(enable = "avx2")]
    pub(super) fn advance(own: &[Own], known: &mut [Line]) -> (usize, usize) {
        let mut rest = known.len();
        while rest > 0 {
            let [low, high] = bits(halves(&own[rest - 1]), &known[rest - 1]);
            let any = _mm256_or_si256(low, high);
            if _mm256_testz_si256(any, any) == 0 {
                break;
            }
            rest -= 1;
        }
        let top = rest;
        let zero = _mm256_setzero_si256();
        while rest > 0 {
            // What is taken is sent: what the program has stored last comes with what it has stored
            // before.
            let of = halves_in_order(&own[rest - 1]);
            let [low, high] = bits(of, &known[rest - 1]);
            let same = _mm256_or_si256(_mm256_cmpeq_epi8(low, zero), _mm256_cmpeq_epi8(high, zero));
            if _mm256_testz_si256(same, same) == 0 {
                break;
            }
            let at = known[rest - 1].as_mut_ptr().cast::<__m256i>();
            // SAFETY: a line has 64 bytes.
            unsafe {
                _mm256_storeu_si256(at, of[0]);
                _mm256_storeu_si256(at.add(1), of[1]);
            }
            rest -= 1;
        }
        (top, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::words::LINE;
    use cci_mem::sync::{AtomicBool, AtomicU64};

    /// Memory that begins at a line.
    #[repr(align(64))]
    struct Own([AtomicU64; 64 * LINE as usize]);

    /// Another thread stores seven words, and then the eighth.
    #[test]
    fn a_line_that_is_taken_has_what_was_stored_before_its_last_word() {
        let (own, over) = (Own(std::array::from_fn(|_| AtomicU64::new(0))), AtomicBool::new(false));
        // Rises, and most have no byte of 0.
        let value = |turn: u64| turn + 0x0101_0101_0101_0101;
        let taken = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut turn = 0;
                while !over.load(Ordering::Relaxed) {
                    turn += 1;
                    (0..LINE as usize).for_each(|at| own.0[at].store(value(turn), Ordering::Release));
                }
            });
            let taken = (0..if cfg!(miri) { 50 } else { 300_000 }).filter(|_| {
                let mut known = [[0; LINE as usize]];
                let is_taken = advance(&Words(&own.0[..LINE as usize]), &mut known) == (1, 0);
                let ok = !is_taken || known[0][..7].iter().all(|word| *word >= known[0][7]);
                if !ok {
                    over.store(true, Ordering::Relaxed);
                }
                assert!(ok, "{known:x?}");
                is_taken
            });
            let taken = taken.count();
            over.store(true, Ordering::Relaxed);
            taken
        });
        assert!(cfg!(miri) || taken > 0);
    }

    #[test]
    fn vectors_pass_the_lines_that_words_pass() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..if cfg!(miri) { 20 } else { 5000 } {
            let own = Own(std::array::from_fn(|_| AtomicU64::new(random.u64(..))));
            let count = random.usize(..=64);
            let (same, whole) = (random.usize(..=count), random.usize(..=count));
            let value = |at: usize| own.0[at].load(Ordering::Relaxed);
            let mut known: Vec<Line> = (0..count)
                .map(|line| {
                    let word = |at| value(line * LINE as usize + at);
                    let bits = match count - line {
                        from_top if from_top <= same => 0,
                        from_top if from_top <= same + whole => u64::MAX,
                        _ => 0xff00,
                    };
                    std::array::from_fn(|at| word(at) ^ if bits == 0xff00 && at != 3 { 0 } else { bits })
                })
                .collect();
            let mut other = known.clone();
            let rest = count - same;
            let expected = (rest, rest.saturating_sub(whole));
            assert_eq!(advance(&Words(&own.0), &mut known), expected, "{count} lines");
            assert_eq!(advance_by_words(&Words(&own.0), &mut other), expected);
            assert!(known == other && (expected.1..rest).all(|line| known[line][5] == value(line * 8 + 5)));
        }
    }
}
