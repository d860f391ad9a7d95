//! Figures over blocks.

/// What a row says about times, nanoseconds per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The shortest of all samples.
    pub min: f64,
    /// The median of the launches' medians.
    pub median: f64,
    /// All samples but one in a hundred are at most this.
    pub p99: f64,
    /// All samples but one in a thousand are at most this.
    pub p999: f64,
    /// How uncertain the median is, as a part of it.
    pub spread: f64,
}

impl Summary {
    /// The figures of the samples of each launch, both in order of time; none without a sample. The
    /// median is that of the launches' medians, the others are over all samples. The spread is that
    /// of the launches; of the samples when there was one launch.
    pub fn of(launches: impl IntoIterator<Item = Vec<f64>>) -> Option<Self> {
        let launches: Vec<Vec<f64>> = launches.into_iter().filter(|launch| !launch.is_empty()).collect();
        let mut all = launches.concat();
        all.sort_by(f64::total_cmp);
        let medians: Vec<f64> = launches.iter().map(|launch| median(launch)).collect();
        let (min, median) = (*all.first()?, median(&medians));
        let uncertainty = uncertainty(if let [only] = &launches[..] { only } else { &medians });
        let spread = uncertainty / median.max(f64::MIN_POSITIVE);
        Some(Self { min, median, p99: quantile(&all, 0.99)?, p999: quantile(&all, 0.999)?, spread })
    }
}

/// Groups of samples. Of so many, or more, the least and the greatest median have the true one
/// between them with a probability of 95 % (for six it is 1 - 2 / 2^6, or 96.9 %), whatever the
/// distribution; of fewer they have not.
const GROUPS: usize = 6;

/// How uncertain the median of these figures is, in their unit, with the figures in order of time:
/// half of the range of the medians of groups of neighbours. Samples resemble those before and
/// after them, as a machine is faster now and slower then; to take each for an independent one
/// would promise too much (batch means: B. Schmeiser, "Batch size effects in the analysis of
/// simulation output", Operations Research 30, 1982).
pub fn uncertainty(in_time: &[f64]) -> f64 {
    let groups = GROUPS.min(in_time.len());
    let start = |group: usize| group * in_time.len() / groups;
    let medians = (0..groups).map(|group| median(&in_time[start(group)..start(group + 1)]));
    let (low, high) =
        medians.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), median| (low.min(median), high.max(median)));
    (high - low).max(0.0) / 2.0
}

/// The median; 0 without a sample.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5).unwrap_or(0.0)
}

/// A quantile of sorted samples, interpolated between neighbours.
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 samples")]
    let at = part * last as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the last index")]
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn nothing_has_no_figures() {
        assert_eq!(Summary::of([vec![]]), None);
    }

    #[test]
    fn one_sample_is_all_figures() {
        let all = Summary { min: 7.0, median: 7.0, p99: 7.0, p999: 7.0, spread: 0.0 };
        assert_eq!(Summary::of([vec![7.0]]), Some(all));
    }

    #[test]
    fn order_does_not_matter_and_an_even_number_has_a_median_between() {
        let summary = Summary::of([vec![4.0, 1.0, 3.0, 2.0]]).unwrap();
        close(summary.min, 1.0);
        close(summary.median, 2.5);
        close(summary.p99, 3.97);
    }

    #[test]
    fn p99_sees_the_outliers_that_the_median_does_not() {
        let mut samples: Vec<f64> = vec![10.0; 98];
        samples.extend([500.0, 500.0]);
        let summary = Summary::of([samples]).unwrap();
        close(summary.median, 10.0);
        close(summary.p99, 500.0);
    }

    #[test]
    fn the_uncertainty_is_half_the_range_of_six_groups_of_neighbours() {
        // Medians of the groups: 10, 11, 15, 12, 13, 14.
        let in_time =
            [9.0, 10.0, 99.0, 11.0, 2.0, 12.0, 15.0, 15.0, 15.0, 12.0, 12.0, 1.0, 13.0, 13.0, 90.0, 14.0, 14.0, 14.0];
        close(uncertainty(&in_time), 2.5);
        close(Summary::of([in_time.to_vec()]).unwrap().spread, 2.5 / 13.0);
        // Fewer than six are groups of their own, and none is no reason to panic.
        close(uncertainty(&[3.0, 7.0, 4.0]), 2.0);
        close(uncertainty(&[3.0]), 0.0);
        close(uncertainty(&[]), 0.0);
    }

    #[test]
    fn launches_that_drift_are_less_sure_than_the_same_ones_in_turn() {
        let drifting = (1..=24).map(f64::from).collect::<Vec<_>>();
        let mut in_turn = drifting.clone();
        for pair in 0..6 {
            in_turn.swap(2 * pair, 23 - 2 * pair);
        }
        let spread = |values: &[f64]| Summary::of(values.iter().map(|value| vec![*value])).unwrap().spread;
        assert!(spread(&drifting) > 2.0 * spread(&in_turn), "{} {}", spread(&drifting), spread(&in_turn));
    }

    /// How often, of 1000 times, the true median is within the uncertainty of a measured one, where
    /// each launch remembers a part of the one before it.
    fn covered(memory: f64, launches: usize, shuffled: bool) -> u32 {
        let mut random = fastrand::Rng::with_seed(11);
        let mut covered = 0;
        for _ in 0..1000 {
            let mut normal =
                || (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos();
            let mut state = normal();
            let step = |_| {
                state = memory * state + (1.0 - memory * memory).sqrt() * normal();
                100.0 + state
            };
            let mut values: Vec<f64> = (0..launches).map(step).collect();
            if shuffled {
                random.shuffle(&mut values);
            }
            covered += u32::from((median(&values) - 100.0).abs() <= uncertainty(&values));
        }
        covered
    }

    // 969 of 1000 are right where launches do not resemble each other; four deviations of that
    // (binomial) are 22.
    #[test]
    fn the_true_median_is_within_the_uncertainty_also_where_launches_resemble_their_neighbours() {
        assert!(covered(0.0, 30, false) >= 945, "{}", covered(0.0, 30, false));
        assert!(covered(0.5, 30, false) >= 930, "{}", covered(0.5, 30, false));
        assert!(covered(0.8, 60, false) >= 920, "{}", covered(0.8, 60, false));
    }

    #[test]
    fn the_twin_that_does_not_know_the_order_promises_too_much() {
        let found = covered(0.8, 60, true);
        assert!(found < 800, "{found}: the data would be no test of anything");
    }

    #[test]
    fn several_launches_count_by_their_medians_whatever_their_blocks_say() {
        let summary = Summary::of((1..=10).map(|launch| vec![100.0 * f64::from(launch); 50])).unwrap();
        close(summary.median, 550.0);
        close(summary.min, 100.0);
        // The medians of the first two launches, and of the last two, of six groups.
        close(summary.spread, 425.0 / 550.0);
    }
}
