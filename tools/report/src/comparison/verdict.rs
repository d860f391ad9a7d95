//! What is said of each key.

use super::side::{Series, Side};
use super::statistic::{Difference, Estimate, holm, median, middle_half};
use crate::documents::Key;
use fastrand::Rng;
use serde::Serialize;

/// The same every time, so that the same documents give the same verdicts.
const SEED: u64 = 0x5eed_c0de;

/// What counts as a change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bar {
    /// The smallest change that counts, as a part: 0.03 is 3 %.
    pub smallest: f64,
    /// Probability of any false alarm in the whole table.
    pub chance: f64,
    /// Standard deviation between launches of one build, where a side has one launch.
    pub between: Option<f64>,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    Slower,
    Faster,
    Same,
    /// A change of twice the smallest that counts could hide in the noise.
    TooNoisy,
    /// One launch at least on a side does not show what launches of one build differ by.
    OneLaunch,
    /// So few blocks that they do not show their own spread.
    TooFewBlocks,
    OnlyBefore,
    OnlyAfter,
}

impl Verdict {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Slower => "SLOWER",
            Self::Faster => "faster",
            Self::Same => "same",
            Self::TooNoisy => "too noisy",
            Self::OneLaunch => "one launch",
            Self::TooFewBlocks => "too few blocks",
            Self::OnlyBefore => "only in A",
            Self::OnlyAfter => "only in B",
        }
    }

    /// Whether anything was held against anything.
    pub(super) fn is_decided(self) -> bool {
        matches!(self, Self::Slower | Self::Faster | Self::Same | Self::TooNoisy)
    }
}

/// One side of a key, in short.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figure {
    /// Measured to probe; nanoseconds without a probe.
    pub(super) value: f64,
    pub(super) launches: usize,
    pub(super) blocks: usize,
}

/// How far B is from A, as parts of A: 0.05 is 5 % slower.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    pub(super) centre: f64,
    /// The interval that all rows of the table keep to together, but with the probability of a
    /// false alarm.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Probability of such a difference, or a larger one, where there is none.
    pub(crate) chance: f64,
    /// The same, corrected for the number of comparisons.
    pub(super) corrected: f64,
}

/// One key.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) key: Key,
    pub(super) before: Option<Figure>,
    pub(super) after: Option<Figure>,
    pub(super) change: Option<Change>,
    pub(super) verdict: Verdict,
}

/// Judges every key of either side.
pub(super) fn judge(before: &Side, after: &Side, bar: &Bar) -> Vec<Line> {
    let differences: Vec<_> = before.0.iter().map(|(key, series)| difference(series, after.get(key)?, bar)).collect();
    let chances: Vec<_> = differences.iter().flatten().map(Difference::chance).collect();
    let mut corrected = holm(&chances).into_iter();
    let mut lines = Vec::new();
    for ((key, series), difference) in before.0.iter().zip(differences) {
        let other = after.get(key);
        let change = difference.zip(difference.and_then(|_| corrected.next()));
        let change = change.map(|(difference, corrected)| change_of(&difference, corrected, chances.len(), bar));
        let verdict = match (other, &change) {
            (None, _) => Verdict::OnlyBefore,
            (Some(_), Some(change)) => verdict(change, bar),
            (Some(other), None) if is_known(series, bar) && is_known(other, bar) => Verdict::TooFewBlocks,
            (Some(_), None) => Verdict::OneLaunch,
        };
        lines.push(Line { key: key.clone(), before: Some(figure(series)), after: other.map(figure), change, verdict });
    }
    let added = after.0.iter().filter(|(key, _)| before.get(key).is_none());
    lines.extend(added.map(|(key, series)| Line {
        key: key.clone(),
        before: None,
        after: Some(figure(series)),
        change: None,
        verdict: Verdict::OnlyAfter,
    }));
    lines
}

/// Whether it is known by how much launches of this build differ.
fn is_known(series: &Series, bar: &Bar) -> bool {
    // Virtual time knows no noise, and shows it: all blocks are equal.
    let mut blocks = series.launches.iter().flatten();
    let first = blocks.next();
    let is_exact = series.launches.iter().flatten().count() > 1 && blocks.all(|block| Some(block) == first);
    series.launches.len() > 1 || bar.between.is_some() || is_exact
}

fn difference(before: &Series, after: &Series, bar: &Bar) -> Option<Difference> {
    if !is_known(before, bar) || !is_known(after, bar) {
        return None;
    }
    let mut random = Rng::with_seed(SEED);
    let mut of = |series: &Series| Estimate::of(&series.launches, bar.between.unwrap_or(0.0).ln_1p(), &mut random);
    Some(Difference::between(&of(before)?, &of(after)?))
}

fn change_of(difference: &Difference, corrected: f64, comparisons: usize, bar: &Bar) -> Change {
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 rows")]
    let half = difference.half_width(bar.chance / comparisons.max(1) as f64);
    let part = |logarithm: f64| logarithm.exp_m1();
    Change {
        centre: part(difference.centre),
        low: part(difference.centre - half),
        high: part(difference.centre + half),
        chance: difference.chance(),
        corrected,
    }
}

fn verdict(change: &Change, bar: &Bar) -> Verdict {
    let is_shown = change.corrected <= bar.chance;
    if is_shown && change.centre >= bar.smallest {
        Verdict::Slower
    // A third less is as far as a half more.
    } else if is_shown && -change.centre >= bar.smallest / (1.0 + bar.smallest) {
        Verdict::Faster
    } else if change.high < 2.0 * bar.smallest && change.low > -2.0 * bar.smallest {
        Verdict::Same
    } else {
        Verdict::TooNoisy
    }
}

fn figure(series: &Series) -> Figure {
    let mut medians: Vec<_> = series.launches.iter().filter_map(|launch| median(&mut launch.clone())).collect();
    Figure {
        value: middle_half(&mut medians).map_or(f64::NAN, f64::exp),
        launches: series.launches.len(),
        blocks: series.launches.iter().map(Vec::len).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::statistic::tests::Build;
    use super::*;
    use crate::names::Measurement;
    use crate::row::tests::row;

    const BAR: Bar = Bar { smallest: 0.03, chance: 0.01, between: None };
    const BUILD: Build = Build { launches: 20, blocks: 16, between: 0.012, within: 0.03, memory: 0.5 };

    fn side(sizes: std::ops::Range<u64>, mut launches: impl FnMut(u64) -> Vec<Vec<f64>>) -> Side {
        let of = |size| (Key::of(&row(Measurement::PingPong, size)), Series { launches: launches(size) });
        Side(sizes.map(of).collect())
    }

    fn verdicts(before: &Side, after: &Side) -> Vec<Verdict> {
        judge(before, after, &BAR).into_iter().map(|line| line.verdict).collect()
    }

    #[test]
    fn tables_of_the_same_build_raise_no_alarm() {
        let mut random = Rng::with_seed(11);
        let mut table = || side(0..6, |_| BUILD.measure(0.5, &mut random));
        for _ in 0..20 {
            let verdicts = verdicts(&table(), &table());
            assert!(!verdicts.iter().any(|it| matches!(it, Verdict::Slower | Verdict::Faster)), "{verdicts:?}");
        }
    }

    #[test]
    fn five_percent_more_in_one_row_of_six_are_found_and_the_others_are_not_blamed() {
        let mut random = Rng::with_seed(12);
        for _ in 0..10 {
            let before = side(0..6, |_| BUILD.measure(0.5, &mut random));
            let slower = |size| if size == 3 { 0.5 + 0.05_f64.ln_1p() } else { 0.5 };
            let after = side(0..6, |size| BUILD.measure(slower(size), &mut random));
            let there = verdicts(&before, &after);
            assert_eq!(there.iter().filter(|it| **it == Verdict::Slower).count(), 1, "{there:?}");
            assert_eq!(there[3], Verdict::Slower);
            assert_eq!(verdicts(&after, &before)[3], Verdict::Faster, "the other way round");
        }
    }

    #[test]
    fn what_is_certain_but_small_is_no_change_and_what_is_large_but_uncertain_is_noise() {
        let exact = |value: f64| side(0..1, move |_| vec![vec![value; 4]; 3]);
        assert_eq!(verdicts(&exact(0.0), &exact(0.029_f64.ln_1p())), [Verdict::Same]);
        assert_eq!(verdicts(&exact(0.0), &exact(0.031_f64.ln_1p())), [Verdict::Slower]);
        assert_eq!(verdicts(&exact(0.031_f64.ln_1p()), &exact(0.0)), [Verdict::Faster]);
        let loud = |value: f64| side(0..1, move |_| [-0.3, 0.0, 0.3].map(|launch| vec![launch + value; 4]).to_vec());
        assert_eq!(verdicts(&loud(0.0), &loud(0.3)), [Verdict::TooNoisy]);
    }

    #[test]
    fn one_launch_says_nothing_unless_it_is_known_what_launches_differ_by_or_that_they_do_not() {
        let one = |value: f64| side(0..1, move |_| vec![(0..40).map(|at| value + 0.01 * f64::from(at % 5)).collect()]);
        assert_eq!(verdicts(&one(0.0), &one(0.1)), [Verdict::OneLaunch]);
        let of = |between| judge(&one(0.0), &one(0.1), &Bar { between: Some(between), ..BAR })[0].verdict;
        assert_eq!(of(0.005), Verdict::Slower);
        assert_eq!(of(0.1), Verdict::TooNoisy);
        let virtual_time = |value: f64| side(0..1, move |_| vec![vec![value; 20]]);
        assert_eq!(verdicts(&virtual_time(0.0), &virtual_time(0.0)), [Verdict::Same]);
        assert_eq!(verdicts(&virtual_time(0.0), &virtual_time(0.1)), [Verdict::Slower]);
        let between = Bar { between: Some(0.01), ..BAR };
        let single = side(0..1, |_| vec![vec![0.0]]);
        assert_eq!(judge(&single, &single, &between)[0].verdict, Verdict::TooFewBlocks);
    }

    #[test]
    fn rows_of_one_side_only_are_told_and_cost_the_others_nothing() {
        let exact = |sizes: std::ops::Range<u64>| side(sizes, |_| vec![vec![0.0; 4]; 3]);
        assert_eq!(verdicts(&exact(0..2), &exact(1..3)), [Verdict::OnlyBefore, Verdict::Same, Verdict::OnlyAfter]);
    }
}
