//! Portals 3.3 beside CCI's own: the tables on the terminal, and the plot.

use super::experiments::{self, Experiment, Place, Unit};
use super::sheet::Sheet;
use crate::UserError;
use crate::finding::Portals;

/// All, in the order of the table.
pub(crate) const EXPERIMENTS: [Experiment; 18] = [
    Experiment::new(
        "pingpong",
        "(1) half round trip of a put, by bytes",
        Place::Bytes,
        Unit::Time,
        "100 ns above CCI's own at 8 B; the copies alone make the rest",
    ),
    Experiment::new(
        "gups",
        "(2) updates of 8 B at random places by put with ack, 16 under way, by processes",
        Place::Count,
        Unit::Rate,
        "what injection gives: the table fits a cache",
    ),
    Experiment::new(
        "node",
        "(2) the same within a node: 1 program updates its own table (SN), 2 each other's (VN)",
        Place::Count,
        Unit::Rate,
        "to generic SN 0.9, for an engine does the same work and hands it over; VN 0.5 by one engine \
                   (shared), which does the work of two programs",
    )
    .needs(
        "SN one for the program and one for an engine; VN one for each program, and what is left for \
                     one engine (shared) or two: with fewer than 3, or 4, they take turns",
        2,
    ),
    Experiment::new(
        "handing",
        "(2) time to the ack of a put to the program itself, by bytes: the way to an engine and back",
        Place::Bytes,
        Unit::Time,
        "generic: no way at all; two lines of memory (shared), or a lock and its line (accelerated): 300 ns \
                   above",
    )
    .needs("one for the program, one for its engine", 2),
    Experiment::new(
        "handing-call",
        "(2) time of the call that begins it, by bytes",
        Place::Bytes,
        Unit::Time,
        "shared: a line is written, 50 ns; the others do the work of it under the lock",
    )
    .needs("one for the program, one for its engine", 2),
    Experiment::new(
        "throughput",
        "(3) bytes per second of puts with ack, 16 under way, by bytes",
        Place::Bytes,
        Unit::Bandwidth,
        "curves meet from 64 KiB on, where an offer costs little beside the copy",
    ),
    Experiment::new(
        "alone",
        "(3) bytes per second of puts with ack, one at a time, by bytes",
        Place::Bytes,
        Unit::Bandwidth,
        "0.95 of RMA of the same memory: one registration and two messages more",
    ),
    Experiment::new(
        "availability",
        "(4) part of the processor that is left to the target while 1 MiB arrives",
        Place::Bytes,
        Unit::Part,
        "generic: little, for the program copies; accelerated: 95 %",
    )
    .needs("two for the programs, two for the engines", 4),
    Experiment::new(
        "bypass",
        "(5) time to the ack of a put whose target makes no calls for 50 ms, by bytes",
        Place::Bytes,
        Unit::Time,
        "generic: 50 ms; accelerated: as if it made calls, and a wake-up",
    ),
    Experiment::new(
        "depth",
        "(6) half round trip of 8 B behind entries that refuse, by entries of one of two walks",
        Place::Count,
        Unit::Time,
        "2 ns an entry",
    ),
    Experiment::new(
        "waking",
        "(7) time to the ack of a put to a target that sleeps in a wait, by bytes",
        Place::Bytes,
        Unit::Time,
        "generic: one wake-up; accelerated: two at most, 1.3 of two futexes (bare)",
    ),
    Experiment::new("idle", "(7) processor time of a wait for nothing, of 1", Place::Count, Unit::Part, "none")
        .needs("any", 1),
    Experiment::new(
        "injection",
        "(8) puts of 8 B with ack per second, 16 under way; CCI: messages that are answered",
        Place::Bytes,
        Unit::Rate,
        "a third of CCI's own: match, events and ack",
    ),
    Experiment::new(
        "beside",
        "(9) half round trip of 8 B, generic, with an engine present and unused",
        Place::Bytes,
        Unit::Time,
        "1.02 of generic while no interface has an engine (without)",
    ),
    Experiment::new(
        "over",
        "(10) half round trip of a message, native puts and CCI over Portals, by bytes",
        Place::Bytes,
        Unit::Time,
        "CCI 200 ns above a native put at 8 B: its ack, and two events more for each message",
    ),
    Experiment::new(
        "over-bandwidth",
        "(10) bytes per second of the same",
        Place::Bytes,
        Unit::Bandwidth,
        "curves meet towards 8 KiB, where copies count",
    ),
    Experiment::new(
        "over-rma",
        "(10) time to the end of a put with ack, and of an RMA write of CCI over Portals, by bytes",
        Place::Bytes,
        Unit::Time,
        "CCI 200 ns above: it binds and unlinks memory for each write",
    ),
    Experiment::new(
        "over-overhead",
        "(10) time of the call that begins it, by bytes",
        Place::Bytes,
        Unit::Time,
        "the same at every size: the bytes are read later",
    ),
];

/// The tables.
pub(crate) fn table(found: &Portals) -> String {
    let head = format!(
        "Portals 3.3 over {} beside CCI's own (cci), {} launches, {} processors",
        found.transport, found.launches, found.processors
    );
    let notes = |experiment: &Experiment| {
        if experiment.name == "node" { to_generic(found, experiment) } else { without_engines(found, experiment) }
    };
    experiments::tables_with_notes(head, &EXPERIMENTS, (&found.points, "±"), (found.processors, &notes))
}

/// Experiments of two programs that poll, which need a processor more for the engine of each.
const POLLED: [&str; 6] = ["pingpong", "gups", "throughput", "alone", "depth", "injection"];
/// Processors for two programs and their engines.
const ENGINES: u64 = 4;

/// How many times as fast an engine was than generic Portals, by the slides: one process an engine,
/// and two.
const OF_SLIDES: [(u64, f64); 2] = [(1, 1.27), (2, 1.90)];

/// The ratios beside those of the slides.
fn to_generic(found: &Portals, experiment: &Experiment) -> Option<String> {
    let (points, ways) = experiment.found(&found.points);
    let of = |x: u64, way: &str| points.iter().find(|point| point.x == x && point.way == way).map(|point| point.value);
    let rows = OF_SLIDES.iter().filter_map(|(x, slides)| {
        let generic = of(*x, "generic")?.max(f64::MIN_POSITIVE);
        let others = ways.iter().filter(|way| **way != "generic");
        let ratios: Vec<_> = others.filter_map(|way| Some(format!("{way} {:.2}", of(*x, way)? / generic))).collect();
        (!ratios.is_empty()).then(|| format!("{x}: {} (slides {slides:.2})", ratios.join(", ")))
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| format!("to generic, {}", rows.join("; ")))
}

/// Why an experiment of a run with accelerated interfaces has no figures of them.
fn without_engines(found: &Portals, experiment: &Experiment) -> Option<String> {
    let is_asked = found.points.iter().any(|point| point.way == "accelerated");
    let is_missing = is_asked && found.processors < ENGINES && POLLED.contains(&experiment.name);
    is_missing.then(|| {
        let here = found.processors;
        format!("accelerated: not measured: needs {ENGINES} processors (two for the programs, two for the engines), here are {here}")
    })
}

/// Experiments that are drawn, as panels side by side.
const DRAWN: [&str; 3] = ["pingpong", "throughput", "depth"];

/// The plot as SVG: figures over bytes and over entries.
pub(super) fn svg(found: &Portals, sheet: &Sheet<'_>) -> Result<String, UserError> {
    let title = format!("Portals 3.3 over {}", found.transport);
    experiments::svg(&title, (&DRAWN, &EXPERIMENTS), &found.points, sheet)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::finding::PortalsPoint;

    fn found() -> Portals {
        let point = |experiment: &str, x, way: &str, value| PortalsPoint {
            experiment: experiment.into(),
            x,
            way: way.into(),
            value,
            spread: value / 100.0,
        };
        let mut points = vec![
            point("pingpong", 0, "generic", 300.0),
            point("pingpong", 8, "generic", 310.0),
            point("pingpong", 8, "cci", 200.0),
            point("throughput", 65536, "generic", 9e9),
            point("throughput", 65536, "cci", 1e10),
            point("idle", 1, "generic", 0.00002),
            point("idle", 1, "accelerated", 0.00001),
            point("node", 1, "generic", 4e6),
            point("node", 1, "shared", 2e6),
            point("beside", 8, "without", 300.0),
            point("beside", 8, "generic", 306.0),
        ];
        points.extend([(0, 300.0), (1024, 1324.0)].map(|(x, value)| point("depth", x, "generic", value)));
        Portals { transport: "sm".into(), launches: 3, processors: 2, points }
    }

    #[test]
    fn the_table_has_what_was_expected_and_why_a_figure_is_not_there() {
        insta::assert_snapshot!(table(&found()));
    }

    #[test]
    fn the_plot_has_a_panel_for_each_experiment_that_is_drawn() {
        let text = svg(&found(), &crate::output::sheet::tests::wide()).unwrap();
        for experiment in EXPERIMENTS.iter().filter(|experiment| DRAWN.contains(&experiment.name)) {
            let (caption, across) = experiment.title.rsplit_once(", by ").unwrap();
            assert!(text.contains(caption) && text.contains(across), "{}", experiment.title);
            // So many characters fit above a third of the page.
            assert!(caption.chars().count() < 64, "{caption}");
        }
        crate::output::plot::tests::assert_drawn_for_both_grounds(crate::finding::Finding::Portals(found()));
    }
}
