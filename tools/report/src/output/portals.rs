//! Portals 3.3 beside CCI's own: the tables on the terminal, and the plot.

use super::experiments::{self, Experiment, Place, Unit};
use super::sheet::Sheet;
use crate::UserError;
use crate::finding::Portals;

/// All, in the order of the table.
pub(crate) const EXPERIMENTS: [Experiment; 18] = [
    Experiment {
        name: "pingpong",
        title: "(1) half round trip of a put, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "100 ns above CCI's own at 8 B; the copies alone make the rest",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "gups",
        title: "(2) updates of 8 B at random places by put with ack, 16 under way, by processes",
        place: Place::Count,
        unit: Unit::Rate,
        expected: "what injection gives: the table fits a cache",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "node",
        title: "(2) the same within a node: 1 program updates its own table (SN), 2 each other's (VN)",
        place: Place::Count,
        unit: Unit::Rate,
        expected: "to generic SN 0.9, for an engine does the same work and hands it over; VN 0.5 by one engine \
                   (shared), which does the work of two programs",
        processors: "SN one for the program and one for an engine; VN one for each program, and what is left for \
                     one engine (shared) or two: with fewer than 3, or 4, they take turns",
        least: 2,
    },
    Experiment {
        name: "handing",
        title: "(2) time to the ack of a put to the program itself, by bytes: the way to an engine and back",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "generic: no way at all; two lines of memory (shared), or a lock and its line (accelerated): 300 ns \
                   above",
        processors: "one for the program, one for its engine",
        least: 2,
    },
    Experiment {
        name: "handing-call",
        title: "(2) time of the call that begins it, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "shared: a line is written, 50 ns; the others do the work of it under the lock",
        processors: "one for the program, one for its engine",
        least: 2,
    },
    Experiment {
        name: "throughput",
        title: "(3) bytes per second of puts with ack, 16 under way, by bytes",
        place: Place::Bytes,
        unit: Unit::Bandwidth,
        expected: "curves meet from 64 KiB on, where an offer costs little beside the copy",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "alone",
        title: "(3) bytes per second of puts with ack, one at a time, by bytes",
        place: Place::Bytes,
        unit: Unit::Bandwidth,
        expected: "0.95 of RMA of the same memory: one registration and two messages more",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "availability",
        title: "(4) part of the processor that is left to the target while 1 MiB arrives",
        place: Place::Bytes,
        unit: Unit::Part,
        expected: "generic: little, for the program copies; accelerated: 95 %",
        processors: "two for the programs, two for the engines",
        least: 4,
    },
    Experiment {
        name: "bypass",
        title: "(5) time to the ack of a put whose target makes no calls for 50 ms, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "generic: 50 ms; accelerated: as if it made calls, and a wake-up",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "depth",
        title: "(6) half round trip of 8 B behind entries that refuse, by entries of one of two walks",
        place: Place::Count,
        unit: Unit::Time,
        expected: "2 ns an entry",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "waking",
        title: "(7) time to the ack of a put to a target that sleeps in a wait, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "generic: one wake-up; accelerated: two at most, 1.3 of two futexes (bare)",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "idle",
        title: "(7) processor time of a wait for nothing, of 1",
        place: Place::Count,
        unit: Unit::Part,
        expected: "none",
        processors: "any",
        least: 1,
    },
    Experiment {
        name: "injection",
        title: "(8) puts of 8 B with ack per second, 16 under way; CCI: messages that are answered",
        place: Place::Bytes,
        unit: Unit::Rate,
        expected: "a third of CCI's own: match, events and ack",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "beside",
        title: "(9) half round trip of 8 B, generic, with an engine present and unused",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "1.02 of generic while no interface has an engine (without)",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "over",
        title: "(10) half round trip of a message, native puts and CCI over Portals, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "CCI 200 ns above a native put at 8 B: its ack, and two events more for each message",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "over-bandwidth",
        title: "(10) bytes per second of the same",
        place: Place::Bytes,
        unit: Unit::Bandwidth,
        expected: "curves meet towards 8 KiB, where copies count",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "over-rma",
        title: "(10) time to the end of a put with ack, and of an RMA write of CCI over Portals, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "CCI 200 ns above: it binds and unlinks memory for each write",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "over-overhead",
        title: "(10) time of the call that begins it, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "the same at every size: the bytes are read later",
        processors: "one for each program",
        least: 2,
    },
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
