//! Figures over blocks.

/// What a row says about times, nanoseconds per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    /// Half width of the 95 % interval of the median, as a part of the median.
    pub(crate) spread: f64,
}

impl Summary {
    /// The figures of the samples of each launch; none without a sample. The median is that of the launches' medians, the others
    /// are over all samples. The spread is that of the launches; of the samples when there was one launch.
    pub(crate) fn of(launches: impl IntoIterator<Item = Vec<f64>>) -> Option<Self> {
        let mut launches: Vec<Vec<f64>> = launches.into_iter().filter(|launch| !launch.is_empty()).collect();
        launches.iter_mut().for_each(|launch| launch.sort_by(f64::total_cmp));
        let mut all = launches.concat();
        all.sort_by(f64::total_cmp);
        let mut medians: Vec<f64> = launches.iter().filter_map(|launch| quantile(launch, 0.5)).collect();
        medians.sort_by(f64::total_cmp);
        let median = quantile(&medians, 0.5)?;
        let half = half_width(if medians.len() > 1 { &medians } else { &all })?;
        let spread = half / median.max(f64::MIN_POSITIVE);
        Some(Self { min: *all.first()?, median, p99: quantile(&all, 0.99)?, p999: quantile(&all, 0.999)?, spread })
    }
}

/// Half width of the interval that holds the median with a probability of 95 %, whatever the distribution: the number of samples
/// below the median is binomial. Of fewer than six samples no two are so far apart: then the whole range.
fn half_width(sorted: &[f64]) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let low = rank(sorted.len()) - 1;
    Some((sorted[last - low] - sorted[low]) / 2.0)
}

/// The largest rank, from 1, such that so many of `count` samples, or more, are below the median with a probability of 97.5 %;
/// 1 when there is none.
fn rank(count: usize) -> usize {
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 samples")]
    let samples = count as f64;
    if count > 1000 {
        // Normal from here on.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below half the number of samples"
        )]
        return ((samples - 1.96 * samples.sqrt()) / 2.0) as usize;
    }
    let (mut rank, mut exactly, mut upto) = (0_usize, 0.5_f64.powf(samples), 0.0);
    loop {
        upto += exactly;
        if upto > 0.025 {
            return rank.max(1);
        }
        rank += 1;
        #[expect(clippy::cast_precision_loss, reason = "at most 1000")]
        let (taken, left) = (rank as f64, (count + 1 - rank) as f64);
        exactly *= left / taken;
    }
}

/// The median; 0 without a sample.
pub(crate) fn median(samples: &[f64]) -> f64 {
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
    fn the_median_lies_between_the_ranks_of_the_binomial_distribution() {
        let upto = |last: u32| (1..=last).map(f64::from).collect::<Vec<_>>();
        // Of 100 samples the 40th and the 61st; of 11 the 2nd and the 10th; of 5 no two.
        close(half_width(&upto(100)).unwrap(), 10.5);
        close(half_width(&upto(11)).unwrap(), 4.0);
        close(half_width(&upto(5)).unwrap(), 2.0);
        close(half_width(&upto(10)).unwrap(), 3.5);
        // Where the normal distribution takes over nothing jumps.
        assert_eq!((rank(6), rank(1000), rank(1001)), (1, 469, 469));
        close(Summary::of([upto(100)]).unwrap().spread, 10.5 / 50.5);
    }

    #[test]
    fn several_launches_count_by_their_medians_whatever_their_blocks_say() {
        let summary = Summary::of((1..=10).map(|launch| vec![100.0 * f64::from(launch); 50])).unwrap();
        close(summary.median, 550.0);
        close(summary.min, 100.0);
        close(summary.spread, 350.0 / 550.0);
    }
}
