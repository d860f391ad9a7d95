//! Axes: where a value is, and which values are written beside them.

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::html) enum Spread {
    /// Equal ratios are equal lengths; labels at powers of two.
    Binary,
    /// The same with labels at powers of ten, or at 1, 2 and 5 of each where there are few.
    Decimal,
    /// Equal differences are equal lengths, from zero.
    Linear,
}

/// An axis.
#[derive(Clone, Debug)]
pub(in crate::html) struct Axis {
    /// What it shows, with its unit if the labels have none.
    pub(in crate::html) name: String,
    spread: Spread,
    low: f64,
    high: f64,
    show: fn(f64) -> String,
}

/// Labels that there is room for.
const MOST: usize = 7;

impl Axis {
    /// An axis that shows these values; those that are no positive numbers have no place on a
    /// logarithmic axis.
    pub(in crate::html) fn new(
        name: &str,
        spread: Spread,
        values: impl IntoIterator<Item = f64>,
        show: fn(f64) -> String,
    ) -> Self {
        let usable = |value: &f64| value.is_finite() && (*value > 0.0 || spread == Spread::Linear);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(usable) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (1.0, 2.0);
        }
        match spread {
            Spread::Linear => (low, high) = (low.min(0.0), if high > 0.0 { high * 1.06 } else { 1.0 }),
            // A single size stands in the middle.
            Spread::Binary if low >= high => (low, high) = (low / 2.0, high * 2.0),
            Spread::Binary => {}
            Spread::Decimal => (low, high) = (low / 1.15, high * 1.15),
        }
        Self { name: name.into(), spread, low, high, show }
    }

    /// The part of the axis that lies below a value: 0 at its beginning, 1 at its end.
    pub(in crate::html) fn part(&self, value: f64) -> f64 {
        match self.spread {
            Spread::Linear => (value - self.low) / (self.high - self.low),
            Spread::Binary | Spread::Decimal => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// The values with labels, and these.
    pub(in crate::html) fn labels(&self) -> Vec<(f64, String)> {
        let values = match self.spread {
            Spread::Binary => self.powers_of_two(),
            Spread::Decimal => self.decimal(),
            Spread::Linear => self.linear(),
        };
        values.into_iter().map(|value| (value, (self.show)(value))).collect()
    }

    fn is_inside(&self, value: f64) -> bool {
        let slack = 1e-9 * value.abs();
        value >= self.low - slack && value <= self.high + slack
    }

    fn powers_of_two(&self) -> Vec<f64> {
        let all: Vec<_> = (-20..64).map(|power| 2_f64.powi(power)).filter(|value| self.is_inside(*value)).collect();
        thinned(&all)
    }

    fn decimal(&self) -> Vec<f64> {
        let steps = |parts: &[f64]| -> Vec<f64> {
            let of = |power: i32| parts.iter().map(move |part| part * 10_f64.powi(power));
            (-12..=18).flat_map(of).filter(|value| self.is_inside(*value)).collect()
        };
        let fine = [&[1.0][..], &[1.0, 3.0], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0]];
        let found = fine.iter().map(|parts| steps(parts)).find(|values| values.len() >= 3);
        found.map_or_else(|| self.linear(), |values| thinned(&values))
    }

    fn linear(&self) -> Vec<f64> {
        let width = self.high - self.low;
        let unit = 10_f64.powf((width / 4.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|part| part * unit).into_iter().find(|step| width / step <= 6.0);
        let step = step.unwrap_or(width);
        let first = (self.low / step).ceil();
        (0..=MOST)
            .map(|at| (first + f64::from(u8::try_from(at).unwrap_or(0))) * step)
            .filter(|it| self.is_inside(*it))
            .collect()
    }
}

/// Every second, third, ... value, so that there are not too many.
fn thinned(values: &[f64]) -> Vec<f64> {
    values.iter().copied().step_by(values.len().div_ceil(MOST).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(value: f64) -> String {
        format!("{value}")
    }

    fn labels(spread: Spread, values: &[f64]) -> Vec<String> {
        let axis = Axis::new("", spread, values.iter().copied(), plain);
        axis.labels().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn labels_are_round_and_neither_none_nor_many() {
        assert_eq!(labels(Spread::Binary, &[8.0, 64.0, 256.0]), ["8", "16", "32", "64", "128", "256"]);
        assert_eq!(labels(Spread::Decimal, &[90.0, 30_000.0]), ["100", "1000", "10000"]);
        assert_eq!(labels(Spread::Decimal, &[90.0, 800.0]), ["100", "200", "500"]);
        assert_eq!(labels(Spread::Linear, &[3.0]), ["0", "1", "2", "3"]);
        for spread in [Spread::Binary, Spread::Decimal, Spread::Linear] {
            for values in [&[1.0, 1e9][..], &[7.0], &[1.0, 1.01], &[250.0, 260.0], &[], &[0.0], &[f64::NAN]] {
                let count = labels(spread, values).len();
                assert!((1..=MOST).contains(&count), "{spread:?} {values:?}: {count}");
            }
        }
    }

    #[test]
    fn parts_lie_between_the_ends_and_grow_with_the_value() {
        for spread in [Spread::Binary, Spread::Decimal, Spread::Linear] {
            let axis = Axis::new("", spread, [8.0, 64.0, 8192.0], plain);
            let parts = [8.0, 64.0, 8192.0].map(|value| axis.part(value));
            assert!(parts[0] >= 0.0 && parts[0] < parts[1] && parts[1] < parts[2] && parts[2] <= 1.0, "{parts:?}");
        }
        let axis = Axis::new("", Spread::Binary, [16.0, 64.0], plain);
        assert!((axis.part(32.0) - 0.5).abs() < 1e-12);
    }
}
