//! `cci bench`: everything that the project promises of its speed and size, with a verdict for each
//! line.

mod network;
mod page;
mod patterns;
mod speed;
mod streams;
mod verdict;

use crate::arguments::BenchArguments;
use crate::conclusion::at_end;
use cci::Scope;
use cci_perf::device::library_beside;
use cci_perf::machine;
use cci_perf::machine::{allowed, two_processors};
use cci_perf::methods::footprint::Footprint;
use cci_perf::methods::{connections, footprint};
use cci_perf::reach;
use cci_report::environment::Environment;
use cci_report::output::{Sink, table};
use cci_report::{UserError, while_doing};
use serde::Serialize;
use std::io::{Write, stderr, stdout};
use std::time::Duration;
use streams::STREAMS;
use verdict::{Line, Standard, Verdict};

/// Name and version of the document's format.
const SCHEMA: &str = "cci-bench/1";
/// What is measured, as far as it is in this build.
const TRANSPORTS: [&str; 4] = ["sm", "sock", STREAMS, WAYS];
/// The transport over the others: what it adds to them is measured.
const WAYS: &str = "auto";

/// What is written as JSON.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'a str,
    environment: &'a Environment,
    lines: &'a [Line],
}

/// The transports that can be measured.
pub(crate) fn transports() -> impl Iterator<Item = &'static str> {
    TRANSPORTS.into_iter().filter(|transport| cci::driver(transport).is_some())
}

/// Measures every line and prints the table.
pub(crate) fn bench(arguments: &BenchArguments) -> Result<(), UserError> {
    let mut sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let environment = machine::here(Some(two_processors()));
    if allowed().len() < 2 {
        say("Only one processor: both ends share it, and the figures are of little use.");
    }
    let mut lines = Vec::new();
    for transport in transports() {
        if arguments.transport.as_deref().is_none_or(|asked| asked == transport) {
            of_transport(transport, arguments, |line| {
                say(&format!("{transport}: {}", line.progress()));
                lines.push(Line { transport, ..line });
            });
        }
    }
    let environment = at_end(environment);
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
    if let (Some(page), Some(commit)) = (&arguments.page, &arguments.commit) {
        page::write(&page::Target { page, commit }, &environment, &lines)?;
    }
    strictly(arguments.strict, &lines)
}

/// Measures every line of a transport.
fn of_transport(transport: &str, arguments: &BenchArguments, mut add: impl FnMut(Line)) {
    if transport == WAYS {
        patterns::ways(transport).into_iter().chain(sizes(transport, arguments.quick)).for_each(add);
        return;
    }
    let library = arguments.library.clone().or_else(library_beside);
    let time = Duration::from_millis(if arguments.quick { 40 } else { 150 });
    let over_network = reach::scope(transport) == Some(Scope::Network);
    let by_datagrams = over_network && transport != STREAMS;
    let rows = match (over_network, by_datagrams) {
        (_, true) => network::rows(),
        (true, false) => streams::rows(),
        (false, false) => speed::rows(arguments.quick),
    };
    let mut runs: Vec<_> = rows.into_iter().map(|row| row.runs(library.as_deref(), time)).collect();
    if by_datagrams {
        runs.extend(network::of_computing_target(time));
    }
    speed::measure(&runs, |text| say(&format!("{transport}: {text}")), &mut add);
    let others = if over_network {
        let mut lines = idle_connections(transport, arguments.quick);
        if by_datagrams {
            lines.extend(patterns::turns(transport, arguments.quick));
            lines.extend(patterns::changing(transport, arguments.quick));
        }
        lines
    } else {
        vec![Line::new(
            "private bytes per idle connection, of 4,096",
            "B",
            Standard::AtMost { bar: Some(128.0), target: None },
            footprint::in_a_child(Footprint::Connection, transport, 0).map(|figures| figures.value),
        )]
    };
    others.into_iter().for_each(&mut add);
    patterns::additions(transport, arguments.quick).into_iter().for_each(&mut add);
    add(patterns::wakeup(transport, arguments.quick));
    patterns::many_peers(transport, arguments.quick).into_iter().for_each(&mut add);
    sizes(transport, arguments.quick).into_iter().for_each(&mut add);
}

/// The lines of very many idle connections.
fn idle_connections(transport: &str, quick: bool) -> Vec<Line> {
    let (count, name) = if quick { (10_000, "10,000") } else { (100_000, "100,000") };
    let figures = connections::in_a_child(transport, &[count]);
    let bytes = figures.clone().and_then(|figures| figures.private_per_connection());
    let cost = figures.and_then(|figures| figures.cost());
    // What the endpoint itself takes counts too: only of very many is a share of it small.
    let bytes_standard = Standard::AtMost { bar: Some(256.0).filter(|_| !quick), target: Some(160.0) };
    vec![
        Line::new(&format!("private bytes per idle connection, of {name} of one endpoint"), "B", bytes_standard, bytes),
        Line::new(
            &format!("a call that finds nothing, with {name} idle connections, to one"),
            "x",
            // Equal, as well as it can be measured.
            Standard::AtMost { bar: Some(1.1), target: None },
            cost,
        ),
    ]
}

fn strictly(strict: bool, lines: &[Line]) -> Result<(), UserError> {
    let missed = lines.iter().filter(|line| line.verdict.is_bad()).count();
    if strict && missed > 0 {
        return Err(UserError(format!("{missed} of {} lines miss their bar or could not be measured", lines.len())));
    }
    Ok(())
}

fn say(text: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(stderr(), "{text}");
}

/// The lines that are no ratios: bytes, allocations, idleness.
fn sizes(transport: &str, quick: bool) -> Vec<Line> {
    let seconds = if quick { 1 } else { 10 };
    let child = |what| footprint::in_a_child(what, transport, seconds);
    let mib = f64::from(1 << 20);
    let at_most = |bar, target| Standard::AtMost { bar, target };
    let [idle, bare] = footprint::idle_beside_a_sleeper(transport, seconds);
    let idle_of = |field: fn(&footprint::Figures) -> f64| idle.clone().map(|figures| field(&figures));
    vec![
        Line::new(
            "resident bytes per fresh endpoint",
            "B",
            at_most(Some(if transport == WAYS { 2.5 } else { 4.0 } * mib), Some(mib)),
            child(Footprint::Endpoint).map(|figures| figures.value),
        ),
        Line::new(
            &format!("idle endpoint for {seconds} s: wake-ups"),
            "",
            at_most(Some(0.0), None),
            idle_of(|figures| figures.wakes),
        ),
        Line::new(
            &format!("idle endpoint for {seconds} s: processor time beyond that of a bare sleeper"),
            "ms",
            // One sleep in poll() takes 0.03 to 0.5 ms of either, by the state of the processor
            // that wakes.
            at_most(Some(1.0), None),
            beyond(idle.clone(), bare.clone()),
        ),
        Line::new(
            &format!("bare sleeper for {seconds} s: processor time"),
            "ms",
            at_most(None, None),
            bare.map(|figures| figures.value),
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

/// What the endpoint has used beyond the bare sleeper, which may have met the worse moment to wake.
fn beyond(
    idle: Result<footprint::Figures, UserError>,
    bare: Result<footprint::Figures, UserError>,
) -> Result<f64, UserError> {
    Ok((idle?.value - bare?.value).max(0.0))
}

fn text(lines: &[Line]) -> String {
    let head = ["over", "what", "measured", "runs", "bar", "target", "verdict"].map(String::from).to_vec();
    let cells: Vec<_> = std::iter::once(head).chain(lines.iter().map(Line::cells)).collect();
    let mut text = table::align(&cells, &[0, 1, 6]);
    for line in lines {
        if let Verdict::Failed(why) = &line.verdict {
            text += &format!("{}, {}: {why}\n", line.transport, line.what);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<Line> {
        let lines = [
            Line::new("latency", "x", Standard::AtMost { bar: Some(1.6), target: Some(1.3) }, Ok(1.2)),
            Line::of_runs(
                "rate",
                "x",
                Standard::AtLeast { bar: Some(0.5), target: Some(0.8) },
                Ok(vec![0.4, 0.9, 0.3]),
            ),
            Line::new("size", "B", Standard::AtMost { bar: Some(128.0), target: None }, Err(UserError::new("why"))),
        ];
        lines.map(|line| Line { transport: "sm", ..line }).into()
    }

    #[test]
    fn the_table_and_the_reasons_below_it() {
        insta::assert_snapshot!(text(&lines()));
    }

    #[test]
    fn what_a_bare_sleeper_takes_too_is_not_the_endpoints() {
        let of = |value| Ok(footprint::Figures { value, ..footprint::Figures::default() });
        assert!((beyond(of(0.75), of(0.25)).unwrap() - 0.5).abs() < 1e-9);
        assert!(beyond(of(0.1), of(0.2)).unwrap().abs() < 1e-9);
        assert!(beyond(of(0.1), Err(UserError::new("why"))).is_err());
    }

    #[test]
    fn a_missed_bar_counts_only_where_it_is_asked_for() {
        assert!(strictly(false, &lines()).is_ok());
        assert!(strictly(true, &lines()).unwrap_err().0.contains("2 of 3"));
        assert!(strictly(true, &lines()[..1]).is_ok());
    }
}
