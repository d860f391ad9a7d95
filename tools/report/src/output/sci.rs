//! Windows of SCI beside bare memory: the tables on the terminal, and the plot.

use super::experiments::{self, Experiment, Place, Unit};
use super::sheet::Sheet;
use super::via;
use crate::UserError;
use crate::finding::{PortalsPoint, Sci};

/// Runs that differ by more are worth a warning, of 1.
const WIDE: f64 = 0.1;

const fn timed(name: &'static str, title: &'static str, place: Place, expected: &'static str) -> Experiment {
    Experiment::new(name, title, place, Unit::Time, expected).needs("one for each program", 1)
}

/// How many there are of shared windows.
const OF_SHARED: usize = 4;

/// All, in the order of the table. The last ones are of mirror windows alone.
pub(crate) const EXPERIMENTS: [Experiment; 8] = [
    timed(
        "oneway",
        "(1) a message of a one-way stream, by bytes",
        Place::Bytes,
        "the bare memory's: no call is between",
    ),
    timed(
        "pingpong",
        "(2) half round trip of a message, by bytes",
        Place::Bytes,
        "1.0 of the bare memory's, 1.1 at most",
    ),
    timed("check", "(3) a sequence check", Place::Count, "2 ns"),
    timed("dma", "(4) a transfer of a DMA queue, RMA writes beside it, by bytes", Place::Bytes, "1.0 of RMA"),
    timed(
        "turn",
        "(5) half round trip of 8 bytes over a mirror window, by bytes of the window",
        Place::Bytes,
        "4 KiB: 1.15 of RMA writes, 1.3 at most, where who waits calls the library",
    ),
    timed(
        "confirm",
        "(6) one changed line until it is confirmed, by bytes of the window",
        Place::Bytes,
        "4 KiB: 2 times an RMA write at most; 64 KiB: 3 us more",
    ),
    timed(
        "change",
        "(7) all bytes of a mirror window changed, by bytes of the window",
        Place::Bytes,
        "1.5 times an RMA write, 1.8 at most",
    ),
    timed(
        "watched",
        "(8) 8 bytes to an owner that makes no call, median and 99th percentile, by percentile",
        Place::Count,
        "10 us with a free processor for its threads; without, the pieces of the system's scheduler",
    ),
];

/// Those that windows of this kind have.
fn experiments_of(window: &str) -> &'static [Experiment] {
    if window == "mirror" { &EXPERIMENTS } else { &EXPERIMENTS[..OF_SHARED] }
}

/// Figures whose runs differ by much.
fn wide(points: &[PortalsPoint]) -> usize {
    points.iter().filter(|point| point.spread > WIDE * point.value).count()
}

/// The tables.
pub(crate) fn table(found: &Sci) -> String {
    let head = format!(
        "Windows of SCI ({}) over {}, {} launches, {} processors; of {} runs the minimum, and how far the slowest lies above",
        found.window, found.transport, found.launches, found.processors, found.runs
    );
    let mut text = experiments::tables(head, experiments_of(&found.window), (&found.points, "+"), found.processors);
    let wide = wide(&found.points);
    if wide > 0 {
        text += &format!(
            "\n\nRuns of {wide} of {} figures differ by more than 10 %: measure on a machine that does nothing else.",
            found.points.len()
        );
    }
    if !found.rows.is_empty() {
        let rows = via::rows(&found.rows);
        text += &format!("\n\nMedians of the runs, beside what they stand on\n{}", rows.trim_end());
    }
    text + "\n"
}

/// Experiments that are drawn, as panels side by side. The last one is of mirror windows alone.
const DRAWN: [&str; 3] = ["oneway", "pingpong", "turn"];

/// The plot as SVG: figures over bytes.
pub(super) fn svg(found: &Sci, sheet: &Sheet<'_>) -> Result<String, UserError> {
    let title = format!("Windows of SCI ({}) over {}", found.window, found.transport);
    let drawn = if found.window == "mirror" { &DRAWN[..] } else { &DRAWN[..2] };
    experiments::svg(&title, (drawn, &EXPERIMENTS), &found.points, sheet)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::finding::{ViaPoint, ViaTold};

    pub(crate) fn found() -> Sci {
        let point = |experiment: &str, x, way: &str, value, spread| PortalsPoint {
            experiment: experiment.into(),
            x,
            way: way.into(),
            value,
            spread,
        };
        let points = vec![
            point("pingpong", 8, "aligned", 66.0, 1.0),
            point("pingpong", 65_536, "aligned", 9000.0, 10.0),
            point("pingpong", 8, "bare", 60.0, 30.0),
            point("oneway", 8, "aligned", 2.0, 0.0),
            point("check", 1, "check", 1.5, 0.0),
            point("check", 1, "load", 0.5, 0.0),
        ];
        let row = ViaPoint {
            name: "a sequence check".into(),
            ns: 1.5,
            reference: "a bare load".into(),
            reference_ns: 0.5,
            told: ViaTold::Nanoseconds,
            figure: 1.5,
            bar: Some(5.0),
            target: Some(2.0),
            ..ViaPoint::default()
        };
        let (transport, window) = ("sm".into(), "shared".into());
        Sci { transport, window, launches: 3, runs: 15, processors: 2, rows: vec![row], points }
    }

    #[test]
    fn the_table_has_minima_beside_the_bare_ones_and_warns_of_wide_spreads() {
        let text = table(&found());
        for expected in
            ["to bare", "66.0 ns +1.5 %", "1.100", "to load", "Runs of 1 of 6 figures", "1.5 ±0.0 ns", "≤ 5"]
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(text.contains("reached") && text.contains("not measured in this run"), "{text}");
        assert!(!table(&Sci { points: vec![], rows: vec![], ..found() }).contains("Runs of"));
    }

    #[test]
    fn the_plot_has_a_panel_for_each_test() {
        let text = svg(&found(), &crate::output::sheet::tests::wide()).unwrap();
        assert!(text.contains("half round trip") && text.contains("one-way stream"), "{text}");
    }
}
