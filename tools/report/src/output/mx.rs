//! Myrinet Express beside CCI's own: the tables on the terminal, and the plot.

use super::experiments::{self, Experiment, Place, Unit};
use super::sheet::Sheet;
use crate::UserError;
use crate::finding::Mx;

/// An experiment whose figures are times of half a round trip.
const fn half(name: &'static str, title: &'static str, place: Place, expected: &'static str) -> Experiment {
    Experiment::new(name, title, place, Unit::Time, expected)
}

/// All, in the order of the table.
pub(crate) const EXPERIMENTS: [Experiment; 14] = [
    half(
        "pingpong",
        "(1) half round trip of a message; CCI: at least 8 B, by bytes",
        Place::Bytes,
        "80 ns above CCI's own at 0 and 8 B",
    ),
    half(
        "locked",
        "(2) half round trip of a message while another thread uses each endpoint at times, by bytes",
        Place::Bytes,
        "120 ns above CCI's own at 0 and 8 B",
    ),
    half(
        "again",
        "(3) half round trip of 8 B, the same receive of so many posted",
        Place::Count,
        "10 ns above 1 posted",
    ),
    half("order", "(3) the same, receives in the order of posting", Place::Count, "60 ns above 1 posted"),
    half("random", "(3) the same, receives at random", Place::Count, "150 ns above 1 posted"),
    half(
        "wildcards",
        "(4) half round trip of 8 B, with so many receives of other masks posted",
        Place::Count,
        "15 ns above none",
    ),
    Experiment::new(
        "throughput",
        "(5) bytes per second of messages, 16 under way, by bytes",
        Place::Bytes,
        Unit::Bandwidth,
        "curves meet from 64 KiB on",
    ),
    Experiment::new(
        "alone",
        "(5) bytes per second of messages, one at a time, by bytes",
        Place::Bytes,
        Unit::Bandwidth,
        "0.95 of RMA of the same memory at 1 MiB",
    ),
    Experiment::new(
        "memory",
        "(6) memory of so many posted receives",
        Place::Count,
        Unit::Bytes,
        "at most 16.8 MB for 100,000",
    )
    .needs("any", 1),
    half(
        "over",
        "(7) half round trip of a message: MX, CCI over MX, MPI, by bytes",
        Place::Bytes,
        "CCI on UU 60 ns above MX, as in the CCI paper (Figure 4)",
    ),
    half(
        "over-locked",
        "(7) the same while another thread uses each end at times, by bytes",
        Place::Bytes,
        "CCI on UU 120 ns above MX, as in the CCI paper (Figure 4)",
    ),
    Experiment::new(
        "over-bandwidth",
        "(7) bytes per second of ping-pongs; CCI: of RMA above 1 KiB, by bytes",
        Place::Bytes,
        Unit::Bandwidth,
        "MX and CCI meet towards 1 MiB, as in the CCI paper (Figure 5)",
    ),
    half(
        "tagged",
        "(8) half round trip of a message that a receive finds by its tag, by bytes",
        Place::Bytes,
        "MX at most what others take",
    ),
    Experiment::new(
        "tagged-part",
        "(8) time of MX beside that of each other library, by bytes",
        Place::Bytes,
        Unit::Part,
        "at most 100 %",
    ),
];

/// The tables.
pub(crate) fn table(found: &Mx) -> String {
    let head = format!(
        "Myrinet Express over {} beside CCI's own (cci), {} launches, {} processors",
        found.transport, found.launches, found.processors
    );
    let head = found.others.iter().fold(head, |head, other| format!("{head}\n{other}"));
    experiments::tables(head, &EXPERIMENTS, (&found.points, "±"), found.processors)
}

/// Experiments that are drawn, as panels side by side; and those where CCI over MX, or an MPI, is
/// measured: the figures 4 and 5 of the CCI paper.
const DRAWN: [&str; 3] = ["pingpong", "throughput", "random"];
const DRAWN_BESIDE: [&str; 3] = ["pingpong", "over", "over-bandwidth"];

/// The plot as SVG: figures over bytes and over receives.
pub(super) fn svg(found: &Mx, sheet: &Sheet<'_>) -> Result<String, UserError> {
    let title = format!("Myrinet Express over {}", found.transport);
    let has_beside = found.points.iter().any(|point| point.experiment == "over");
    let drawn = if has_beside { &DRAWN_BESIDE } else { &DRAWN };
    experiments::svg(&title, (drawn, &EXPERIMENTS), &found.points, sheet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::PortalsPoint;

    fn found() -> Mx {
        let point = |experiment: &str, x, way: &str, value| PortalsPoint {
            experiment: experiment.into(),
            x,
            way: way.into(),
            value,
            spread: value / 100.0,
        };
        let points = vec![
            point("pingpong", 0, "mx", 300.0),
            point("pingpong", 8, "mx", 310.0),
            point("pingpong", 8, "cci", 200.0),
            point("throughput", 65_536, "mx", 9e9),
            point("random", 100_000, "mx", 400.0),
            point("memory", 100_000, "mx", 1.6e7),
        ];
        let others = vec!["ucx:posix: tagged; version 1.13".into()];
        Mx { transport: "sm".into(), others, launches: 3, processors: 2, points }
    }

    #[test]
    fn the_table_has_what_was_expected_and_what_was_found() {
        let text = table(&found());
        for experiment in &EXPERIMENTS {
            assert!(text.contains(experiment.title) && text.contains(experiment.expected), "{}", experiment.name);
        }
        assert!(text.contains("310.0 ns") && text.contains("1.550") && text.contains("16.00 MB"), "{text}");
        assert!(text.contains("not measured in this run") && text.contains("version 1.13"), "{text}");
    }

    #[test]
    fn the_plot_has_a_panel_for_each_experiment_that_is_drawn() {
        let mut found = found();
        for drawn in [DRAWN, DRAWN_BESIDE] {
            let text = svg(&found, &crate::output::sheet::tests::wide()).unwrap();
            for experiment in EXPERIMENTS.iter().filter(|experiment| drawn.contains(&experiment.name)) {
                let caption = experiment.title.rsplit_once(", by ").map_or(experiment.title, |(caption, _)| caption);
                assert!(text.contains(caption), "{caption}");
                // So many characters fit above a third of the page.
                assert!(caption.chars().count() < 64, "{caption}");
            }
            let beside = ["over", "over-bandwidth"].map(|experiment| PortalsPoint {
                experiment: experiment.into(),
                x: 8,
                way: "mx".into(),
                value: 300.0,
                spread: 1.0,
            });
            found.points.extend(beside);
        }
    }
}
