//! The distribution of single round trips.

use super::section::{Found, Section, origins};
use crate::finding::Jitter;
use crate::html::chart::{Axis, Chart, Line, Point, Spread};
use crate::html::curves::transport;
use crate::html::figure::{Entry, Figure, FigureTable};
use crate::html::library::{Look, Mark};
use crate::html::unit;
use crate::sizes::show_size;

pub(super) fn section(found: &Found<'_, Jitter>) -> Section {
    let figures = if found.is_empty() { Vec::new() } else { vec![figure(found)] };
    Section {
        anchor: "jitter",
        heading: "Jitter",
        text: "Single whole round trips, each timed by itself, so that one reading of the clock is part of each.",
        figures,
    }
}

fn figure(found: &Found<'_, Jitter>) -> Figure {
    let lines: Vec<_> = found
        .iter()
        .enumerate()
        .map(|(number, (_, jitter))| Line {
            label: jitter.transport.clone(),
            look: Look::of_number(number).with(Mark::Line),
            points: beyond(jitter),
        })
        .collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let about: Vec<_> = found
        .iter()
        .map(|(_, jitter)| {
            format!(
                "{}: median {}, p99 {}",
                transport(&jitter.transport),
                whole(jitter.median_ns),
                whole(jitter.p99_ns)
            )
        })
        .collect();
    let legend = found.iter().zip(&lines).map(|((_, jitter), line)| Entry {
        look: line.look.clone(),
        name: transport(&jitter.transport),
        detail: format!("{}, {} round trips", show_size(jitter.size), jitter.count),
    });
    Figure {
        title: "How many take longer".into(),
        note: "At each time, the part of the round trips that took longer.".into(),
        picture: Chart {
            id: "jitter-1".into(),
            description: format!("The part of the round trips that took longer than a time. {}.", about.join(". ")),
            x: Axis::new("round trip", Spread::Decimal, points().map(|point| point.x), |value| {
                unit::short(&unit::time(value))
            }),
            y: Axis::new("part that takes longer", Spread::Decimal, points().map(|point| point.y), part),
            lines: lines.clone(),
        }
        .draw(),
        legend: legend.collect(),
        table: FigureTable {
            head: vec!["transport", "size", "minimum", "median", "p99", "p99.9", "maximum", "clock"],
            rows: found.iter().map(|(_, jitter)| row(jitter)).collect(),
            words: 1,
        },
        runs: origins(found),
        is_wide: false,
    }
}

/// The part of the round trips beyond the end of each bucket, but for the last, beyond which there
/// is none.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 round trips")]
fn beyond(jitter: &Jitter) -> Vec<Point> {
    let all: u64 = jitter.histogram.iter().map(|(_, count)| count).sum();
    let mut left = all;
    let mut points = Vec::new();
    for (ns, count) in &jitter.histogram {
        left = left.saturating_sub(*count);
        if left > 0 && *ns > 0 {
            let y = left as f64 / all as f64;
            let told = String::new();
            points.push(Point { x: *ns as f64, y, band: None, is_accurate: true, told });
        }
    }
    points
}

fn row(jitter: &Jitter) -> Vec<String> {
    let times = [jitter.min_ns, jitter.median_ns, jitter.p99_ns, jitter.p999_ns, jitter.max_ns].map(whole);
    let mut row = vec![transport(&jitter.transport), show_size(jitter.size)];
    row.extend(times);
    row.push(unit::time(jitter.clock_ns));
    row
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 nanoseconds")]
fn whole(ns: u64) -> String {
    unit::time(ns as f64)
}

/// A part as a percentage with the digits that it needs.
fn part(value: f64) -> String {
    format!("{} %", (value * 1e8).round() / 1e6)
}
