//! An interface beside CCI's own: a figure for each experiment.

use crate::finding::PortalsPoint;
use crate::html::chart::{Axis, Chart, Line, Point, Spread};
use crate::html::curves::transport;
use crate::html::figure::{Entry, Figure, FigureTable};
use crate::html::library::Look;
use crate::html::unit;
use crate::output::experiments::{Experiment, Place, Unit};

/// What one run has measured of an interface.
pub(super) struct Measured<'a> {
    /// Of the section.
    pub(super) anchor: &'static str,
    /// Among those of the section.
    pub(super) number: usize,
    pub(super) run: usize,
    pub(super) transport: &'a str,
    pub(super) points: &'a [PortalsPoint],
}

/// A figure for each experiment that has points.
pub(super) fn figures(of: &Measured<'_>, experiments: &[Experiment]) -> Vec<Figure> {
    let found = experiments.iter().filter(|experiment| !experiment.found(of.points).0.is_empty());
    found.map(|experiment| figure(of, experiment)).collect()
}

fn shown(experiment: &Experiment, value: f64) -> String {
    match experiment.unit {
        Unit::Time => unit::time(value),
        Unit::Rate => unit::rate(value),
        Unit::Bandwidth => unit::bandwidth(value),
        Unit::Part | Unit::Bytes => experiment.value(value),
    }
}

/// What the values of an experiment are.
fn measure(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "time",
        Unit::Rate => "per second",
        Unit::Bandwidth => "bytes per second",
        Unit::Part => "part",
        Unit::Bytes => "bytes",
    }
}

/// The numbers of an experiment.
fn numbers(experiment: &Experiment, points: &[&PortalsPoint]) -> FigureTable {
    let rows = points.iter().map(|point| {
        let spread = 100.0 * point.spread / point.value.abs().max(f64::MIN_POSITIVE);
        vec![experiment.place(point.x), point.way.clone(), shown(experiment, point.value), format!("±{spread:.1} %")]
    });
    FigureTable { head: vec!["at", "way", measure(experiment.unit), "spread"], rows: rows.collect(), words: 2 }
}

/// A chart of an experiment with several places; the table alone of one with a single place, where
/// a chart has no curves.
fn figure(of: &Measured<'_>, experiment: &Experiment) -> Figure {
    let (points, ways) = experiment.found(of.points);
    let title = format!("{}: {}", transport(of.transport), experiment.title);
    let (note, runs) =
        (format!("Expected: {}. Processors: {}.", experiment.expected, experiment.processors), vec![of.run]);
    let table = numbers(experiment, &points);
    if points.iter().all(|point| point.x == points[0].x) {
        let (picture, table) = (table.draw(&title), FigureTable::default());
        return Figure { note, picture, legend: Vec::new(), table, runs, is_wide: false, title };
    }
    let lines = lines(experiment, &points, &ways);
    let entry = |line: &Line| Entry { look: line.look.clone(), name: line.label.clone(), detail: String::new() };
    let legend = lines.iter().map(entry).collect();
    let picture = chart(of, experiment, &title, lines).draw();
    Figure { note, picture, legend, table, runs, is_wide: false, title }
}

/// The curves. What has 0 as its place has none on an axis of doublings: it is in the numbers.
#[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
fn lines(experiment: &Experiment, points: &[&PortalsPoint], ways: &[&str]) -> Vec<Line> {
    let point = |point: &&PortalsPoint| Point {
        x: point.x as f64,
        y: point.value,
        band: None,
        is_accurate: true,
        told: format!("{}, {}: {}", experiment.place(point.x), point.way, shown(experiment, point.value)),
    };
    let line = |(at, way): (usize, &&str)| Line {
        label: (*way).into(),
        look: Look::of_number(at),
        points: points.iter().filter(|point| point.way == **way && point.x > 0).map(point).collect(),
    };
    ways.iter().enumerate().map(line).collect()
}

fn chart(of: &Measured<'_>, experiment: &Experiment, title: &str, lines: Vec<Line>) -> Chart {
    let is_bytes = experiment.place == Place::Bytes;
    let of_value = match experiment.unit {
        Unit::Time => unit::time,
        Unit::Rate => unit::rate,
        Unit::Bandwidth => unit::bandwidth,
        Unit::Part => unit::percent,
        Unit::Bytes => unit::size,
    };
    let all = || lines.iter().flat_map(|line| &line.points);
    let told: Vec<_> = all().map(|point| point.told.clone()).collect();
    let of_place = if is_bytes { unit::size } else { unit::count };
    let across = if is_bytes { "size" } else { "number" };
    let x = Axis::new(across, Spread::Binary, all().map(|point| point.x), of_place);
    let values = all().map(|point| point.y).chain([0.0]);
    let y = Axis::new(measure(experiment.unit), Spread::Linear, values, of_value);
    let id = format!("{}-{}-{}", of.anchor, experiment.name, of.number + 1);
    Chart { id, description: format!("{title}. {}.", told.join("; ")), x, y, lines }
}
