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
    /// The figures of these samples; none without a sample.
    pub(crate) fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let quantile = |part| quantile(&sorted, part);
        let median = quantile(0.5)?;
        let spread = half_width(&sorted)? / median.max(f64::MIN_POSITIVE);
        Some(Self { min: *sorted.first()?, median, p99: quantile(0.99)?, p999: quantile(0.999)?, spread })
    }
}

/// Half width of the interval that holds the median with a probability of 95 %, whatever the distribution: between the samples
/// of ranks (n -+ 1.96 sqrt n) / 2, since the number of samples below the median is binomial. Of fewer than six samples no two
/// are so far apart: then the whole range.
fn half_width(sorted: &[f64]) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 samples")]
    let count = sorted.len() as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most half the number of samples")]
    let low = (((count - 1.96 * count.sqrt()) / 2.0).max(1.0) as usize) - 1;
    Some((sorted[last - low] - sorted[low]) / 2.0)
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
        assert_eq!(Summary::of([]), None);
    }

    #[test]
    fn one_sample_is_all_figures() {
        let all = Summary { min: 7.0, median: 7.0, p99: 7.0, p999: 7.0, spread: 0.0 };
        assert_eq!(Summary::of([7.0]), Some(all));
    }

    #[test]
    fn order_does_not_matter_and_an_even_number_has_a_median_between() {
        let summary = Summary::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        close(summary.min, 1.0);
        close(summary.median, 2.5);
        close(summary.p99, 3.97);
    }

    #[test]
    fn p99_sees_the_outliers_that_the_median_does_not() {
        let mut samples: Vec<f64> = vec![10.0; 98];
        samples.extend([500.0, 500.0]);
        let summary = Summary::of(samples).unwrap();
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
        let summary = Summary::of(upto(100)).unwrap();
        close(summary.spread, 10.5 / 50.5);
    }
}
