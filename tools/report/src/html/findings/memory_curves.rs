//! Memory over peers, and over connections to one peer.

use super::section::{Found, Section};
use crate::html::chart::{Axis, Chart, Line, Point, Spread};
use crate::html::figure::{Entry, Figure, FigureTable};
use crate::html::library::{Look, Mark};
use crate::html::unit;
use crate::memory_curves::{MemoryCurve, MemoryCurvePoint, MemoryCurves, Over};
use crate::output::table::scaled;

pub(super) fn section(found: &Found<'_, MemoryCurves>) -> Section {
    let figures = found.iter().flat_map(|(run, curves)| {
        curves.overs().into_iter().map(move |over| figure(*run, curves, over)).collect::<Vec<_>>()
    });
    Section {
        anchor: "memory-curves",
        heading: "Memory of many peers",
        text: "Bytes of one end beyond those without a peer: measured as far as there was room and time, and computed \
               in proportion beyond, which is dashed.",
        figures: figures.collect(),
    }
}

fn figure(run: usize, found: &MemoryCurves, over: Over) -> Figure {
    let curves = found.curves(over);
    let lines: Vec<_> = curves.iter().enumerate().flat_map(|(number, curve)| lines(number, curve)).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let entries = curves.iter().enumerate();
    let legend =
        entries.map(|(number, it)| Entry { look: Look::of_number(number), name: it.label(), detail: String::new() });
    let title = match over {
        Over::Peers => "Over peers, each with one connection",
        Over::Connections => "Over connections to one peer",
    };
    let picture = Chart {
        id: format!("memory-{}-{run}", over.name()),
        description: format!(
            "{title}: bytes of {}.",
            curves.iter().map(MemoryCurve::label).collect::<Vec<_>>().join("; ")
        ),
        x: Axis::new(over.name(), Spread::Decimal, points().map(|point| point.x), |value| {
            unit::short(&scaled(value, ""))
        }),
        y: Axis::new("bytes", Spread::Decimal, points().map(|point| point.y), |value| unit::short(&scaled(value, "B"))),
        lines: lines.clone(),
    };
    Figure {
        title: title.into(),
        note: found.notes.iter().map(|note| format!("{note}. ")).collect(),
        picture: picture.draw(),
        legend: legend.collect(),
        table: FigureTable {
            head: vec!["curve", "", over.name(), "bytes"],
            rows: curves.iter().flat_map(|curve| curve.0).map(row).collect(),
            words: 2,
        },
        runs: vec![run],
        is_wide: false,
    }
}

/// What was measured with its marks, and the dashed rest.
fn lines(number: usize, curve: &MemoryCurve<'_>) -> Vec<Line> {
    let look = Look::of_number(number);
    let dashed = Look { dash: "dash-1", ..look.clone().with(Mark::Line) };
    let line = |look, points: &[MemoryCurvePoint]| Line {
        label: String::new(),
        look,
        points: points.iter().filter(|it| it.bytes > 0.0).map(|it| point(curve, it)).collect(),
    };
    let mut lines = vec![line(look, curve.measured()), line(dashed, curve.computed())];
    lines.retain(|line| !line.points.is_empty());
    lines
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 peers")]
fn point(curve: &MemoryCurve<'_>, it: &MemoryCurvePoint) -> Point {
    Point {
        x: it.count.max(1) as f64,
        y: it.bytes,
        band: None,
        is_accurate: true,
        told: format!("{}, {} {}: {}", curve.label(), it.count, it.over.name(), unit::bytes(it.bytes)),
    }
}

fn row(point: &MemoryCurvePoint) -> Vec<String> {
    let how = if point.computed { "computed" } else { "measured" };
    vec![
        point.curve.clone(),
        format!("{}, {how}", point.space.name()),
        point.count.to_string(),
        unit::bytes(point.bytes),
    ]
}
