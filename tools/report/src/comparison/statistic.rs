//! The statistic behind `cci perf compare`; `docs/design/report.md` says why it is this one.
//!
//! A *series* is what one launch gave: the logarithm of measured to probe, one value a block, in
//! order of time. A *side* is the launches of one build. Values that follow each other resemble
//! each other, within a launch and from launch to launch, so that what is drawn again are runs of
//! neighbours and never single values (the moving-block bootstrap: H. R. Künsch, "The jackknife and
//! the bootstrap for general stationary observations", Annals of Statistics 17, 1989).

use fastrand::Rng;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Repetitions of the bootstrap: the standard error is then known within about 6 %.
const REPETITIONS: usize = 400;

/// Where a side is, in logarithms, and how well that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// Mean over the middle half of the launches' medians; of one launch, the median of its blocks.
    pub(super) centre: f64,
    /// Its standard error.
    pub(super) error: f64,
    /// Degrees of freedom of that error.
    pub(super) freedom: f64,
}

impl Estimate {
    /// The estimate of a side; none without a value, or of one launch of too few blocks. `between`
    /// is the standard deviation, in logarithms, of launches of one build, for a side of one
    /// launch, which cannot show it.
    pub(super) fn of(side: &[Vec<f64>], between: f64, random: &mut Rng) -> Option<Self> {
        let medians = side.iter().map(|series| median(&mut series.clone())).collect::<Option<Vec<_>>>()?;
        let launches = medians.len();
        // Launches are drawn whole, so that what differs within them counts as well. A single one
        // has its blocks only.
        type Middle = fn(&mut [f64]) -> Option<f64>;
        let (drawn, middle): (_, Middle) =
            if launches > 1 { (medians, middle_half) } else { (side.first()?.clone(), median) };
        let centre = middle(&mut drawn.clone())?;
        let length = block_length(&drawn);
        let pieces = count(drawn.len()) / count(length);
        if pieces < 2.0 {
            return None;
        }
        let mut again = Vec::with_capacity(drawn.len());
        let middles: Option<Vec<f64>> = (0..REPETITIONS)
            .map(|_| {
                again.clear();
                again.extend(runs(drawn.len(), length, random).map(|at| drawn[at]));
                middle(&mut again)
            })
            .collect();
        // Drawing from n pieces shows (n - 1) / n of their variance.
        let error = half_spread(&mut middles?) * (pieces / (pieces - 1.0)).sqrt();
        let unseen = if launches > 1 { 0.0 } else { between };
        // Of launches only those count that are not cut away.
        let counted = if launches > 1 { pieces * (1.0 - 2.0 * count(launches / 4) / count(launches)) } else { pieces };
        Some(Self { centre, error: error.hypot(unseen), freedom: (counted - 1.0).max(1.0) })
    }
}

/// How far `to` is from `from`, in logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) centre: f64,
    error: f64,
    freedom: f64,
}

impl Difference {
    /// Welch's: the variances add, and so do the parts that each has in the degrees of freedom.
    pub(super) fn between(from: &Estimate, to: &Estimate) -> Self {
        let [a, b] = [from.error.powi(2), to.error.powi(2)];
        let parts = a.powi(2) / from.freedom + b.powi(2) / to.freedom;
        let freedom = if parts > 0.0 { (a + b).powi(2) / parts } else { from.freedom.min(to.freedom) };
        Self { centre: to.centre - from.centre, error: (a + b).sqrt(), freedom }
    }

    /// Probability of a difference at least as large where there is none.
    pub(super) fn chance(&self) -> f64 {
        if self.error > 0.0 {
            return 2.0 * self.student().map_or(0.5, |student| student.sf((self.centre / self.error).abs()));
        }
        // Virtual time knows no noise: what differs at all has changed.
        if self.centre == 0.0 { 1.0 } else { 0.0 }
    }

    /// Half width of the interval that misses the truth with this probability.
    pub(super) fn half_width(&self, miss: f64) -> f64 {
        self.student().map_or(f64::INFINITY, |student| student.inverse_cdf(1.0 - miss / 2.0) * self.error)
    }

    fn student(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, self.freedom).ok()
    }
}

/// Holm's correction: each probability as it counts among all of them (S. Holm, "A simple
/// sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979).
pub(super) fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut corrected = vec![1.0; chances.len()];
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max((chances[at] * count(chances.len() - rank)).min(1.0));
        corrected[at] = least;
    }
    corrected
}

/// Indices of as many values as there are, in runs of neighbours that begin anywhere; the last is
/// followed by the first.
fn runs(len: usize, length: usize, random: &mut Rng) -> impl Iterator<Item = usize> + use<> {
    let starts: Vec<_> = (0..len.div_ceil(length)).map(|_| random.usize(..len)).collect();
    starts.into_iter().flat_map(move |start| (start..start + length).map(move |at| at % len)).take(len)
}

/// How many neighbours to draw together: Carlstein's rule for a process in which each value
/// remembers a part of the one before ("The use of subseries values for estimating the variance of
/// a general statistic from a stationary sequence", Annals of Statistics 14, 1986), at most a
/// quarter of them.
fn block_length(series: &[f64]) -> usize {
    // What chance shows of a process without memory: D. N. Politis and H. White, "Automatic
    // block-length selection for the dependent bootstrap", Econometric Reviews 23, 2004.
    let by_chance = 2.0 * (count(series.len().max(1)).log10() / count(series.len().max(1))).sqrt();
    let memory = Some(memory(series)).filter(|memory| *memory > by_chance).unwrap_or(0.0).min(0.95);
    let length = 2.0 * 6_f64.cbrt() * (memory / (1.0 - memory.powi(2))).powf(2.0 / 3.0) * count(series.len()).cbrt();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below the length")]
    let length = length.ceil() as usize;
    length.clamp(1, (series.len() / 4).max(1))
}

/// Correlation of each value with the one before it. Values beyond three deviations count as three:
/// one disturbed block says nothing about memory.
fn memory(series: &[f64]) -> f64 {
    let Some(centre) = median(&mut series.to_vec()) else { return 0.0 };
    let mut distances: Vec<_> = series.iter().map(|value| (value - centre).abs()).collect();
    // The median of distances from the median is 0.6745 deviations of a normal distribution.
    let bound = 3.0 * median(&mut distances).unwrap_or(0.0) / 0.6745;
    let near: Vec<_> = series.iter().map(|value| (value - centre).clamp(-bound, bound)).collect();
    let square: f64 = near.iter().map(|value| value * value).sum();
    let product: f64 = near.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if square > 0.0 { product / square } else { 0.0 }
}

/// The middle of the values, which are put into another order.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    let half = values.len() / 2;
    let odd = values.len() % 2 == 1;
    if values.is_empty() {
        return None;
    }
    let (below, middle, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let middle = *middle;
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| !odd);
    Some(lower.map_or(middle, |lower| f64::midpoint(lower, middle)))
}

/// The mean of the values without the lowest quarter and the highest, which may be disturbed as
/// much as they like: nearly as sharp as the mean of all where none is disturbed, and sharper than
/// the median where there are two crowds.
pub(super) fn middle_half(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let cut = values.len() / 4;
    let kept = &values[cut..values.len() - cut];
    (!kept.is_empty()).then(|| mean(kept))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

/// Half of the distance between which two thirds of the values lie: the standard deviation of a
/// normal distribution, and unmoved by the few repetitions that drew every disturbed launch at
/// once.
fn half_spread(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    // 15.87 % of a normal distribution lie more than a deviation below its mean.
    let tail = values.len() * 1587 / 10_000;
    match (values.get(tail), values.iter().rev().nth(tail)) {
        (Some(low), Some(high)) => (high - low) / 2.0,
        _ => 0.0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 values")]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A build as it is measured: how its launches differ, and how its blocks do.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Build {
        pub(in super::super) launches: usize,
        pub(in super::super) blocks: usize,
        /// Standard deviation of launches, in logarithms.
        pub(in super::super) between: f64,
        /// Standard deviation of blocks within a launch.
        pub(in super::super) within: f64,
        /// What a block remembers of the one before it.
        pub(in super::super) memory: f64,
    }

    fn normal(random: &mut Rng) -> f64 {
        (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
    }

    impl Build {
        /// Measures it, as far as a random number is a measurement. One block in fifty is
        /// disturbed, and up to seven times as long.
        pub(in super::super) fn measure(&self, centre: f64, random: &mut Rng) -> Vec<Vec<f64>> {
            let fresh = (1.0 - self.memory.powi(2)).sqrt();
            (0..self.launches)
                .map(|_| {
                    let of_launch = centre + self.between * normal(random);
                    let mut state = normal(random);
                    (0..self.blocks)
                        .map(|_| {
                            state = self.memory * state + fresh * normal(random);
                            let disturbed = if random.usize(..50) == 0 { 2.0 * random.f64() } else { 0.0 };
                            of_launch + self.within * state + disturbed
                        })
                        .collect()
                })
                .collect()
        }
    }

    /// How many of `repetitions` comparisons of a build with itself have a chance of 1 % or less.
    fn alarms(build: Build, repetitions: u64) -> usize {
        let mut random = Rng::with_seed(7);
        let mut alarms = 0;
        for _ in 0..repetitions {
            let mut side = || Estimate::of(&build.measure(0.0, &mut random), 0.0, &mut Rng::with_seed(3)).unwrap();
            let difference = Difference::between(&side(), &side());
            alarms += usize::from(difference.chance() <= 0.01);
        }
        alarms
    }

    // Of 100 comparisons one would be right; more than 5 come once in two thousand times
    // (binomial). The seed is fixed.
    #[test]
    fn blocks_that_resemble_their_neighbours_are_not_taken_for_a_change() {
        let build = Build { launches: 1, blocks: 120, between: 0.0, within: 0.05, memory: 0.8 };
        let found = alarms(build, 100);
        assert!(found <= 5, "{found} of 100");
    }

    #[test]
    fn launches_that_differ_are_not_taken_for_a_change() {
        let found = alarms(Build { launches: 6, blocks: 16, between: 0.03, within: 0.05, memory: 0.6 }, 100);
        assert!(found <= 5, "{found} of 100");
    }

    #[test]
    fn the_twin_that_draws_single_blocks_finds_changes_where_there_are_none() {
        let mut random = Rng::with_seed(7);
        let build = Build { launches: 1, blocks: 120, between: 0.0, within: 0.05, memory: 0.8 };
        let mut found = 0;
        for _ in 0..60 {
            let mut side = || {
                let mut blocks = build.measure(0.0, &mut random).remove(0);
                random.shuffle(&mut blocks);
                Estimate::of(&[blocks], 0.0, &mut Rng::with_seed(3)).unwrap()
            };
            found += usize::from(Difference::between(&side(), &side()).chance() <= 0.01);
        }
        assert!(found >= 9, "{found} of 60: the data would be no test of anything");
    }

    #[test]
    fn the_error_of_independent_blocks_is_the_one_of_the_textbook() {
        let build = Build { launches: 1, blocks: 400, between: 0.0, within: 0.05, memory: 0.0 };
        let estimate = Estimate::of(&build.measure(0.0, &mut Rng::with_seed(1)), 0.0, &mut Rng::with_seed(2)).unwrap();
        // Of the median of normal values: sqrt(pi / 2) * deviation / sqrt(count).
        let expected = (std::f64::consts::PI / 2.0).sqrt() * 0.05 / 20.0;
        assert!((0.7..1.4).contains(&(estimate.error / expected)), "{} to {expected}", estimate.error);
    }

    #[test]
    fn what_launches_differ_by_is_part_of_the_error_of_a_single_one() {
        let side = [vec![0.0, 0.1, 0.0, 0.1, 0.05, 0.02, 0.08, 0.03]];
        let of = |between| Estimate::of(&side, between, &mut Rng::with_seed(1)).unwrap().error;
        assert!((of(0.3) - of(0.0).hypot(0.3)).abs() < 1e-12);
    }

    #[test]
    fn too_little_to_show_its_own_spread_gives_no_estimate() {
        let of = |side: &[Vec<f64>]| Estimate::of(side, 0.0, &mut Rng::with_seed(1));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[vec![]]), None);
        assert_eq!(of(&[vec![1.0]]), None);
        assert!(of(&[vec![1.0], vec![1.1]]).is_some());
    }

    #[test]
    fn holms_correction_is_the_one_of_the_paper() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (corrected, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((corrected - expected).abs() < 1e-12, "{corrected} is not {expected}");
        }
        assert!(holm(&[]).is_empty());
        assert!(holm(&[0.9, 0.8]).iter().all(|chance| *chance <= 1.0));
    }

    #[test]
    fn students_distribution_is_the_one_of_the_tables() {
        let difference = Difference { centre: 2.228, error: 1.0, freedom: 10.0 };
        assert!((difference.chance() - 0.05).abs() < 1e-4, "{}", difference.chance());
        assert!((difference.half_width(0.05) - 2.228).abs() < 1e-3, "{}", difference.half_width(0.05));
    }

    #[test]
    fn the_middle_half_does_not_see_what_is_far_away() {
        assert_eq!(middle_half(&mut []), None);
        assert_eq!(middle_half(&mut [1.0, 2.0]), Some(1.5));
        assert_eq!(middle_half(&mut [1e9, 3.0, -1e9, 2.0]), Some(2.5));
    }

    #[test]
    fn a_disturbed_launch_in_ten_is_not_taken_for_a_change_nor_hides_one() {
        let mut random = Rng::with_seed(5);
        let build = Build { launches: 20, blocks: 16, between: 0.01, within: 0.03, memory: 0.5 };
        let mut chance = |change: f64| {
            let quiet = build.measure(0.0, &mut random);
            let mut disturbed = build.measure(change, &mut random);
            for launch in disturbed.iter_mut().step_by(10) {
                launch.iter_mut().for_each(|block| *block -= 1.5);
            }
            let of = |side: &[Vec<f64>]| Estimate::of(side, 0.0, &mut Rng::with_seed(3)).unwrap();
            Difference::between(&of(&quiet), &of(&disturbed)).chance()
        };
        assert!(chance(0.0) > 0.01);
        assert!(chance(0.06) < 0.01);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }
}
