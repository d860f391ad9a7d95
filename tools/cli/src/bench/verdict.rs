//! A line of the table: what, measured, bar, target, verdict.

use cci_perf::methods::middle;
use cci_report::UserError;
use serde::Serialize;

/// What a figure is held against. Without a bar there is nothing to miss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standard {
    AtMost { bar: Option<f64>, target: Option<f64> },
    AtLeast { bar: Option<f64>, target: Option<f64> },
}

/// How a line stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Nothing to miss: a figure to know.
    Told,
    Ok,
    TargetReached,
    MissesBar,
    /// Could not be measured, for this reason.
    Failed(String),
}

impl Verdict {
    /// Whether a strict run fails by it.
    pub(crate) fn is_bad(&self) -> bool {
        matches!(self, Self::MissesBar | Self::Failed(_))
    }

    fn text(&self) -> &'static str {
        match self {
            Self::Told => "-",
            Self::Ok => "ok",
            Self::TargetReached => "ok, target reached",
            Self::MissesBar => "MISSES bar",
            Self::Failed(_) => "NOT MEASURED",
        }
    }
}

impl Standard {
    fn judge(self, value: f64) -> Verdict {
        let (bar, target, meets): (_, _, fn(f64, f64) -> bool) = match self {
            Self::AtMost { bar, target } => (bar, target, |value, limit| value <= limit),
            Self::AtLeast { bar, target } => (bar, target, |value, limit| value >= limit),
        };
        if target.is_some_and(|target| meets(value, target)) {
            Verdict::TargetReached
        } else if bar.is_some_and(|bar| !meets(value, bar)) {
            Verdict::MissesBar
        } else if bar.is_some() {
            Verdict::Ok
        } else {
            Verdict::Told
        }
    }

    fn cells(self, unit: &str) -> [String; 2] {
        let (sign, bar, target) = match self {
            Self::AtMost { bar, target } => ("<=", bar, target),
            Self::AtLeast { bar, target } => (">=", bar, target),
        };
        [bar, target].map(|limit| limit.map_or_else(String::new, |limit| format!("{sign} {}", show(limit, unit))))
    }
}

/// A figure with its unit.
fn show(value: f64, unit: &str) -> String {
    match unit {
        "x" => format!("{value:.2} x"),
        "B" if value >= f64::from(1 << 20) => format!("{:.2} MiB", value / f64::from(1 << 20)),
        "B" if value >= f64::from(1 << 10) => format!("{:.1} KiB", value / f64::from(1 << 10)),
        "B" => format!("{value:.0} B"),
        "" => format!("{value:.0}"),
        unit => format!("{value:.2} {unit}"),
    }
}

/// A measured line.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) transport: &'static str,
    pub(crate) what: String,
    pub(crate) value: Option<f64>,
    /// Lowest and highest of the runs of which `value` is the middle.
    pub(crate) runs: Option<[f64; 2]>,
    pub(crate) unit: &'static str,
    pub(crate) standard: Standard,
    pub(crate) verdict: Verdict,
}

impl Line {
    /// Judges a figure, or notes why there is none. Which transport it is of is not known here.
    pub(crate) fn new(what: &str, unit: &'static str, standard: Standard, value: Result<f64, UserError>) -> Self {
        let verdict = match &value {
            Ok(value) => standard.judge(*value),
            Err(why) => Verdict::Failed(why.0.clone()),
        };
        Self { transport: "", what: what.into(), value: value.ok(), runs: None, unit, standard, verdict }
    }

    /// Judges the middle of several runs.
    pub(crate) fn of_runs(
        what: &str,
        unit: &'static str,
        standard: Standard,
        runs: Result<Vec<f64>, UserError>,
    ) -> Self {
        let range = runs.as_ref().ok().and_then(|runs| {
            let (lowest, highest) = (runs.iter().copied().reduce(f64::min)?, runs.iter().copied().reduce(f64::max)?);
            Some([lowest, highest])
        });
        Self { runs: range, ..Self::new(what, unit, standard, runs.map(middle)) }
    }

    /// Cells of the table.
    pub(crate) fn cells(&self) -> Vec<String> {
        let value = self.value.map_or_else(|| "-".into(), |value| show(value, self.unit));
        let [bar, target] = self.standard.cells(self.unit);
        let runs = self.runs.map_or_else(String::new, |[lowest, highest]| format!("{lowest:.2} to {highest:.2}"));
        vec![self.transport.into(), self.what.clone(), value, runs, bar, target, self.verdict.text().into()]
    }

    /// A row of a table in a page; a bar that is missed is bold.
    pub(crate) fn markdown(&self) -> String {
        let [_, what, value, _, bar, target, _] = <[String; 7]>::try_from(self.cells()).unwrap_or_default();
        let bar = if self.verdict == Verdict::MissesBar { format!("**{bar}**") } else { bar };
        format!("| {what} | {value} | {bar} | {target} |\n")
    }

    /// What is told while the others are still being measured.
    pub(crate) fn progress(&self) -> String {
        let value = self.value.map_or_else(|| "-".into(), |value| show(value, self.unit));
        format!("{}: {value}, {}", self.what, self.verdict.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_at_and_beside_the_limits() {
        let most = Standard::AtMost { bar: Some(1.6), target: Some(1.3) };
        assert_eq!(most.judge(1.3), Verdict::TargetReached);
        assert_eq!(most.judge(1.31), Verdict::Ok);
        assert_eq!(most.judge(1.6), Verdict::Ok);
        assert_eq!(most.judge(1.61), Verdict::MissesBar);
        let least = Standard::AtLeast { bar: Some(0.5), target: Some(0.8) };
        assert_eq!(least.judge(0.8), Verdict::TargetReached);
        assert_eq!(least.judge(0.79), Verdict::Ok);
        assert_eq!(least.judge(0.49), Verdict::MissesBar);
    }

    #[test]
    fn the_run_in_the_middle_counts_and_the_others_are_shown() {
        let standard = Standard::AtMost { bar: Some(2.0), target: None };
        let line = Line::of_runs("what", "x", standard, Ok(vec![9.0, 1.0, 2.0, 1.5, 8.0]));
        assert_eq!((line.value, line.runs, line.verdict), (Some(2.0), Some([1.0, 9.0]), Verdict::Ok));
        let line = Line::of_runs("what", "x", standard, Err(UserError::new("why")));
        assert_eq!((line.value, line.runs, line.verdict), (None, None, Verdict::Failed("why".into())));
    }

    #[test]
    fn without_a_bar_nothing_is_missed() {
        let target_only = Standard::AtLeast { bar: None, target: Some(0.9) };
        assert_eq!(target_only.judge(0.1), Verdict::Told);
        assert_eq!(target_only.judge(0.95), Verdict::TargetReached);
        assert!(!Verdict::Told.is_bad());
    }

    #[test]
    fn units() {
        assert_eq!(show(1.234, "x"), "1.23 x");
        assert_eq!(show(128.0, "B"), "128 B");
        assert_eq!(show(3.5 * 1024.0 * 1024.0, "B"), "3.50 MiB");
        assert_eq!(show(0.0, ""), "0");
        assert_eq!(show(0.125, "ms"), "0.12 ms");
    }
}
