//! Figures over blocks.

/// What a row says about times, nanoseconds per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) p99: f64,
}

impl Summary {
    /// The figures of these samples; none without a sample.
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self { min: *sorted.first()?, median: quantile(&sorted, 0.5)?, p99: quantile(&sorted, 0.99)? })
    }
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
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn one_sample_is_all_figures() {
        assert_eq!(Summary::of(&[7.0]), Some(Summary { min: 7.0, median: 7.0, p99: 7.0 }));
    }

    #[test]
    fn order_does_not_matter_and_an_even_number_has_a_median_between() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        close(summary.min, 1.0);
        close(summary.median, 2.5);
        close(summary.p99, 3.97);
    }

    #[test]
    fn p99_sees_the_outliers_that_the_median_does_not() {
        let mut samples: Vec<f64> = vec![10.0; 98];
        samples.extend([500.0, 500.0]);
        let summary = Summary::of(&samples).unwrap();
        close(summary.median, 10.0);
        close(summary.p99, 500.0);
    }
}
