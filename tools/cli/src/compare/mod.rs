//! `cci perf compare`: what changed between two builds beyond noise.

pub(crate) mod arguments;
mod side;
mod statistic;
mod verdict;

use crate::documents;
use crate::measure::{UserError, while_doing};
use crate::output::{Sink, table};
use arguments::CompareArguments;
use serde::Serialize;
use side::Side;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use verdict::{Bar, Change, Figure, Line, Verdict, judge};

/// Name and version of the format of `--json`.
const SCHEMA: &str = "cci-compare/1";

/// What is written as JSON.
#[derive(Serialize)]
struct Comparison<'a> {
    schema: &'a str,
    bar: Bar,
    lines: &'a [Line],
}

/// Compares. The status is 0 when nothing is slower, 1 when something is, 2 when that cannot be said.
pub(crate) fn compare(arguments: &CompareArguments) -> ExitCode {
    match compared(arguments) {
        Ok(lines) if lines.iter().any(|line| line.verdict == Verdict::Slower) => ExitCode::from(1),
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("cci: {}.", why.0.trim_end_matches('.')));
            ExitCode::from(2)
        }
    }
}

fn compared(arguments: &CompareArguments) -> Result<Vec<Line>, UserError> {
    let (before, after) = (side(&arguments.before)?, side(&arguments.after)?);
    let mut sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let bar = Bar { smallest: arguments.smallest, chance: arguments.chance, between: arguments.between };
    let lines = judge(&before, &after, &bar);
    if !lines.iter().any(|line| line.before.is_some() && line.after.is_some()) {
        return Err(UserError::new(
            "the two sides have no row in common: give runs of the same measurements, sizes, transports and probes",
        ));
    }
    let text = text(&lines, &bar);
    if matches!(sink, Some(Sink::Terminal)) {
        say(text.trim_end());
    } else {
        stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the table"))?;
    }
    if let Some(sink) = &mut sink {
        let json = serde_json::to_string_pretty(&Comparison { schema: SCHEMA, bar, lines: &lines });
        sink.write(&(json.map_err(while_doing("cannot write JSON"))? + "\n"))?;
    }
    if lines.iter().any(|line| line.verdict.is_decided()) {
        return Ok(lines);
    }
    Err(UserError::new(
        "no verdict is possible: no row shows by how much launches of one build differ; measure with --launches 10 or more, \
         give several files a side (A1.json,A2.json), or give by --between by how much launches differ",
    ))
}

/// Reads the documents of a side.
fn side(paths: &[PathBuf]) -> Result<Side, UserError> {
    let mut side = Side::default();
    for path in paths {
        let document = documents::read(path)?;
        let name = path.display().to_string();
        if let Some(why) = &document.interrupted {
            say(&format!("{name} is partial, its run ended early: {why}"));
        }
        side.take(&document, &name)?;
    }
    Ok(side)
}

/// The table, and what it rests on.
fn text(lines: &[Line], bar: &Bar) -> String {
    let head = ["what", "A", "B", "change", "interval", "launches", "verdict"];
    let mut cells = vec![head.map(String::from).to_vec()];
    cells.extend(lines.iter().map(|line| {
        let value = |figure: Option<Figure>| figure.map_or_else(|| "-".into(), |figure| format!("{:.3}", figure.value));
        let launches = |figure: Option<Figure>| figure.map_or_else(|| "-".into(), |figure| figure.launches.to_string());
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

fn percent(part: f64) -> String {
    format!("{:+.1} %", part * 100.0)
}

fn plain_percent(part: f64) -> String {
    format!("{} %", (part * 1e4).round() / 100.0)
}

fn say(text: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(stderr(), "{text}");
}
