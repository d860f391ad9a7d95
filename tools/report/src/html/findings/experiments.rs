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

#[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
fn figure(of: &Measured<'_>, experiment: &Experiment) -> Figure {
    let (points, ways) = experiment.found(of.points);
    let point = |point: &&PortalsPoint| Point {
        x: point.x.max(1) as f64,
        y: point.value,
        band: None,
        is_accurate: true,
        told: format!("{}, {}: {}", experiment.place(point.x), point.way, shown(experiment, point.value)),
    };
    let line = |(at, way): (usize, &&str)| Line {
        label: (*way).into(),
        look: Look::of_number(at),
        points: points.iter().filter(|point| point.way == **way).map(point).collect(),
    };
    let lines: Vec<_> = ways.iter().enumerate().map(line).collect();
    let all = || lines.iter().flat_map(|line| &line.points);
    let title = format!("{}: {}", transport(of.transport), experiment.title);
    let told: Vec<_> = all().map(|point| point.told.clone()).collect();
    let is_bytes = experiment.place == Place::Bytes;
    let of_value = match experiment.unit {
        Unit::Time => unit::time,
        Unit::Rate => unit::rate,
        Unit::Bandwidth => unit::bandwidth,
        Unit::Part => unit::percent,
        Unit::Bytes => unit::size,
    };
    let rows = points.iter().map(|point| {
        let spread = 100.0 * point.spread / point.value.abs().max(f64::MIN_POSITIVE);
        vec![experiment.place(point.x), point.way.clone(), shown(experiment, point.value), format!("±{spread:.1} %")]
    });
    Figure {
        note: format!("Expected: {}. Processors: {}.", experiment.expected, experiment.processors),
        picture: Chart {
            id: format!("{}-{}-{}", of.anchor, experiment.name, of.number + 1),
            description: format!("{title}. {}.", told.join("; ")),
            x: Axis::new(
                if is_bytes { "size" } else { "number" },
                Spread::Binary,
                all().map(|point| point.x),
                if is_bytes { unit::size } else { unit::count },
            ),
            y: Axis::new("figure", Spread::Linear, all().map(|point| point.y).chain([0.0]), of_value),
            lines: lines.clone(),
        }
        .draw(),
        legend: lines
            .iter()
            .map(|line| Entry { look: line.look.clone(), name: line.label.clone(), detail: String::new() })
            .collect(),
        table: FigureTable { head: vec!["at", "way", "figure", "spread"], rows: rows.collect(), words: 2 },
        runs: vec![of.run],
        is_wide: false,
        title,
    }
}
