//! What changed between two builds beyond noise.

mod side;
mod statistic;
mod verdict;

pub use side::Side;
pub use verdict::Bar;

use crate::UserError;
use crate::output::table;
use serde::Serialize;
use verdict::{Change, Figure, Line, Verdict, judge};

/// Name and version of the document's format.
const SCHEMA: &str = "cci-compare/1";

/// Two builds side by side; as it is written as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    schema: &'static str,
    bar: Bar,
    lines: Vec<Line>,
}

impl Comparison {
    /// Holds the second side against the first.
    ///
    /// # Errors
    ///
    /// They have nothing in common.
    pub fn new(before: &Side, after: &Side, bar: Bar) -> Result<Self, UserError> {
        let lines = judge(before, after, &bar);
        if !lines.iter().any(|line| line.before.is_some() && line.after.is_some()) {
            return Err(UserError::new(
                "the two sides have no row in common: give runs of the same measurements, sizes, transports and probes",
            ));
        }
        Ok(Self { schema: SCHEMA, bar, lines })
    }

    /// Whether a row has become slower.
    ///
    /// # Errors
    ///
    /// Of no row anything can be said.
    pub fn is_slower(&self) -> Result<bool, UserError> {
        if self.lines.iter().any(|line| line.verdict.is_decided()) {
            return Ok(self.lines.iter().any(|line| line.verdict == Verdict::Slower));
        }
        Err(UserError::new(
            "no verdict is possible: no row shows by how much launches of one build differ; measure with --launches 10 or more, \
             give several files a side (A1.json,A2.json), or give by --between by how much launches differ",
        ))
    }

    /// The table, and what it rests on.
    pub fn text(&self) -> String {
        let (lines, bar) = (&self.lines, &self.bar);
        let head = ["what", "A", "B", "change", "interval", "launches", "verdict"];
        let mut cells = vec![head.map(String::from).to_vec()];
        cells.extend(lines.iter().map(|line| {
            let value =
                |figure: Option<Figure>| figure.map_or_else(|| "-".into(), |figure| format!("{:.3}", figure.value));
            let launches =
                |figure: Option<Figure>| figure.map_or_else(|| "-".into(), |figure| figure.launches.to_string());
            let change = |show: &dyn Fn(&Change) -> String| line.change.as_ref().map_or_else(|| "-".into(), show);
            vec![
                line.key.to_string(),
                value(line.before),
                value(line.after),
                change(&|change| percent(change.centre)),
                change(&|change| format!("{} .. {}", percent(change.low), percent(change.high))),
                format!("{} {}", launches(line.before), launches(line.after)),
                line.verdict.words().into(),
            ]
        }));
        let of = |verdict: Verdict| lines.iter().filter(|line| line.verdict == verdict).count();
        format!(
            "{}A and B: measured to probe, mean over the middle half of the launches' medians (without a probe: ns). Changes below {} count \
             as none; with a chance of {} or less any row is called slower or faster though nothing changed.\n{} rows: {} \
             slower, {} faster, {} the same, {} too noisy, {} not compared.\n",
            table::align(&cells, &[0, 6]),
            plain_percent(bar.smallest),
            plain_percent(bar.chance),
            lines.len(),
            of(Verdict::Slower),
            of(Verdict::Faster),
            of(Verdict::Same),
            of(Verdict::TooNoisy),
            lines.iter().filter(|line| !line.verdict.is_decided()).count(),
        )
    }
}

fn percent(part: f64) -> String {
    format!("{:+.1} %", part * 100.0)
}

fn plain_percent(part: f64) -> String {
    format!("{} %", (part * 1e4).round() / 100.0)
}
