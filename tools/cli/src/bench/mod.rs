//! `cci bench`: everything that the project promises of its speed and size, with a verdict for each line.

pub(crate) mod footprint;
mod speed;
mod verdict;

use crate::arguments::{BenchArguments, Footprint};
use crate::measure::environment::{Environment, allowed, two_processors};
use crate::measure::{Sentence, while_doing};
use crate::output::{Sink, table};
use crate::perf::library_beside;
use serde::Serialize;
use std::io::{Write, stderr, stdout};
use std::time::Duration;
use verdict::{Line, Standard, Verdict};

/// Name and version of the document's format.
const SCHEMA: &str = "cci-bench/1";

/// What is written as JSON.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'a str,
    environment: &'a Environment,
    lines: &'a [Line],
}

/// Measures every line and prints the table.
pub(crate) fn bench(arguments: &BenchArguments) -> Result<(), Sentence> {
    let mut sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let environment = Environment::new(Some(two_processors()));
    if allowed().len() < 2 {
        say("Only one processor: both ends share it, and the figures say little.");
    }
    let mut lines = Vec::new();
    let mut add = |line: Line| {
        say(&line.progress());
        lines.push(line);
    };
    let library = arguments.library.clone().or_else(library_beside);
    let time = Duration::from_millis(if arguments.quick { 40 } else { 150 });
    for row in speed::rows() {
        add(row.measure(&arguments.transport, library.as_deref(), time));
    }
    for line in sizes(arguments) {
        add(line);
    }
    let text = format!("{}{}\n", text(&lines), environment.line());
    if matches!(sink, Some(Sink::Terminal)) {
        say(text.trim_end());
    } else {
        stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the table"))?;
    }
    if let Some(sink) = &mut sink {
        let report = Report { schema: SCHEMA, environment: &environment, lines: &lines };
        let json = serde_json::to_string_pretty(&report).map_err(while_doing("cannot write JSON"))?;
        sink.write(&(json + "\n"))?;
    }
    strictly(arguments.strict, &lines)
}

fn strictly(strict: bool, lines: &[Line]) -> Result<(), Sentence> {
    let missed = lines.iter().filter(|line| line.verdict.is_bad()).count();
    if strict && missed > 0 {
        return Err(Sentence(format!("{missed} of {} lines miss their bar or could not be measured", lines.len())));
    }
    Ok(())
}

fn say(text: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(stderr(), "{text}");
}

/// The lines that are no ratios: bytes, allocations, idleness.
fn sizes(arguments: &BenchArguments) -> Vec<Line> {
    let seconds = if arguments.quick { 1 } else { 10 };
    let child = |what| footprint::in_a_child(what, &arguments.transport, seconds);
    let mib = f64::from(1 << 20);
    let at_most = |bar, target| Standard::AtMost { bar, target };
    let idle = child(Footprint::Idle);
    let idle_of = |field: fn(&footprint::Figures) -> f64| idle.clone().map(|figures| field(&figures));
    vec![
        Line::new(
            "private bytes per idle connection, of 4,096",
            "B",
            at_most(Some(128.0), None),
            child(Footprint::Connection).map(|figures| figures.value),
        ),
        Line::new(
            "resident bytes per fresh endpoint",
            "B",
            at_most(Some(4.0 * mib), Some(mib)),
            child(Footprint::Endpoint).map(|figures| figures.value),
        ),
        Line::new(
            &format!("idle endpoint for {seconds} s: processor time"),
            "ms",
            // The program's own poll and the reading of its figures take some tenths of a millisecond.
            at_most(Some(1.0), None),
            idle_of(|figures| figures.value),
        ),
        Line::new(
            &format!("idle endpoint for {seconds} s: context switches of library threads"),
            "",
            at_most(Some(0.0), None),
            idle_of(|figures| figures.switches),
        ),
        Line::new(
            "allocations over 100,000 send, receive, return",
            "",
            at_most(Some(0.0), None),
            child(Footprint::Allocations).map(|figures| figures.value),
        ),
    ]
}

fn text(lines: &[Line]) -> String {
    let head = ["what", "measured", "bar", "target", "verdict"].map(String::from).to_vec();
    let cells: Vec<_> = std::iter::once(head).chain(lines.iter().map(Line::cells)).collect();
    let mut text = table::align(&cells, &[0, 4]);
    for line in lines {
        if let Verdict::Failed(why) = &line.verdict {
            text += &format!("{}: {why}\n", line.what);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<Line> {
        vec![
            Line::new("latency", "x", Standard::AtMost { bar: Some(1.6), target: Some(1.3) }, Ok(1.2)),
            Line::new("rate", "x", Standard::AtLeast { bar: Some(0.5), target: Some(0.8) }, Ok(0.4)),
            Line::new("size", "B", Standard::AtMost { bar: Some(128.0), target: None }, Err(Sentence::new("why"))),
        ]
    }

    #[test]
    fn the_table_and_the_reasons_below_it() {
        insta::assert_snapshot!(text(&lines()));
    }

    #[test]
    fn a_missed_bar_counts_only_where_it_is_asked_for() {
        assert!(strictly(false, &lines()).is_ok());
        assert!(strictly(true, &lines()).unwrap_err().0.contains("2 of 3"));
        assert!(strictly(true, &lines()[..1]).is_ok());
    }
}
