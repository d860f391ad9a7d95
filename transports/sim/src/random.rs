//! Random numbers that depend on their seed alone.

/// A generator: `SplitMix64` (Steele, Lea, Flood 2014). Small and fast; every state is a good one.
#[derive(Clone, Debug)]
pub struct Random(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// A generator; different seeds give independent sequences.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator for one of many parts of what `seed` determines.
    #[must_use]
    pub fn of(seed: u64, part: u64, other: u64) -> Self {
        let mut of_seed = Self(seed);
        let mut of_part = Self(of_seed.next().wrapping_add(part));
        Self(of_part.next().wrapping_add(other))
    }

    /// 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "an endless sequence is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0. The bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True in `ppm` of a million cases.
    pub fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_first_numbers_are_those_of_the_published_algorithm() {
        let mut random = Random::new(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn a_chance_comes_about_as_often_as_it_says() {
        let mut random = Random::of(7, 1, 2);
        let count = (0..100_000).filter(|_| random.chance(300_000)).count();
        assert!((29_000..31_000).contains(&count), "{count}");
        assert!(!random.chance(0) && random.chance(1_000_000));
    }

    #[test]
    fn numbers_between_two_reach_both() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 3];
        for _ in 0..1000 {
            seen[usize::try_from(random.between(5, 7)).unwrap() - 5] += 1;
        }
        assert!(seen.iter().all(|count| *count > 200), "{seen:?}");
        assert_eq!(random.between(4, 4), 4);
    }
}
