//! Threads, and transfers that hide behind computation.

use super::section::{Found, Section};
use crate::finding::{Overlap, OverlapPoint, Threads, ThreadsPoint};
use crate::html::chart::{Axis, Chart, Line, Point, Spread};
use crate::html::curves::transport;
use crate::html::figure::{Entry, Figure, FigureTable};
use crate::html::library::Look;
use crate::html::unit;
use crate::sizes::show_size;

pub(super) fn threads(found: &Found<'_, Threads>) -> Section {
    Section {
        anchor: "threads",
        heading: "Threads",
        text: "Operations per second of all threads together: on one endpoint, and on one endpoint each.",
        figures: found.iter().enumerate().map(|(number, (run, threads))| of_threads(number, *run, threads)).collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few threads")]
fn of_threads(number: usize, run: usize, threads: &Threads) -> Figure {
    let line = |at: usize, label: &str, rate: fn(&ThreadsPoint) -> f64| Line {
        label: label.into(),
        look: Look::of_number(at),
        points: threads
            .points
            .iter()
            .map(|point| Point {
                x: point.threads as f64,
                y: rate(point),
                band: None,
                is_accurate: true,
                told: format!("{} threads, {label}: {}", point.threads, unit::rate(rate(point))),
            })
            .collect(),
    };
    let own = line(0, "one each", |point| point.own_per_second);
    let shared = line(1, "shared", |point| point.shared_per_second);
    let lines = vec![own, shared];
    let points = || lines.iter().flat_map(|line| &line.points);
    let title = format!("{}: {} of {}", transport(&threads.transport), threads.operation, show_size(threads.size));
    let rows = threads.points.iter().map(|point| {
        vec![point.threads.to_string(), unit::rate(point.own_per_second), unit::rate(point.shared_per_second)]
    });
    let described =
        rows.clone().map(|row| format!("{} threads: {} and {}", row[0], row[1], row[2])).collect::<Vec<_>>();
    let entry = |line: &Line| Entry {
        look: line.look.clone(),
        name: format!("{} endpoint", line.label.replace("one each", "own")),
        detail: String::new(),
    };
    Figure {
        note: String::new(),
        picture: Chart {
            id: format!("threads-{}", number + 1),
            description: format!("{title}; own endpoints, and a shared one. {}.", described.join("; ")),
            x: Axis::new("threads", Spread::Binary, points().map(|point| point.x), unit::count),
            y: Axis::new("operations per second", Spread::Linear, points().map(|point| point.y), |value| {
                unit::short(&unit::rate(value))
            }),
            lines: lines.clone(),
        }
        .draw(),
        legend: lines.iter().map(entry).collect(),
        table: FigureTable { head: vec!["threads", "own endpoints", "a shared one"], rows: rows.collect(), words: 0 },
        runs: vec![run],
        is_wide: false,
        title,
    }
}

pub(super) fn overlap(found: &Found<'_, Overlap>) -> Section {
    Section {
        anchor: "overlap",
        heading: "Overlap",
        text: "How much of a transfer hides behind computation: 100 % when computing and transferring together take no longer than \
               the longer of both alone.",
        figures: found.iter().enumerate().map(|(number, (run, overlap))| of_overlap(number, *run, overlap)).collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
fn of_overlap(number: usize, run: usize, overlap: &Overlap) -> Figure {
    let point = |point: &OverlapPoint| Point {
        x: point.size.max(1) as f64,
        y: point.overlap,
        band: None,
        is_accurate: true,
        told: format!("{}: {} of the transfer hides", show_size(point.size), unit::percent(point.overlap)),
    };
    let line =
        Line { label: String::new(), look: Look::of_number(0), points: overlap.points.iter().map(point).collect() };
    let title = format!("{}: {}", transport(&overlap.transport), overlap.operation);
    let told: Vec<_> = line.points.iter().map(|point| point.told.clone()).collect();
    let rows = overlap.points.iter().map(|point| {
        let times = [point.transfer_ns, point.compute_ns, point.both_ns].map(unit::time);
        [vec![show_size(point.size)], times.to_vec(), vec![unit::percent(point.overlap)]].concat()
    });
    Figure {
        note: String::new(),
        picture: Chart {
            id: format!("overlap-{}", number + 1),
            description: format!("{title}, part of the transfer that hides, over size. {}.", told.join("; ")),
            x: Axis::new("size", Spread::Binary, line.points.iter().map(|point| point.x), unit::size),
            y: Axis::new(
                "hidden part of the transfer",
                Spread::Linear,
                line.points.iter().map(|point| point.y).chain([1.0]),
                unit::percent,
            ),
            lines: vec![line.clone()],
        }
        .draw(),
        legend: Vec::new(),
        table: FigureTable {
            head: vec!["size", "transfer", "computing", "both", "hidden"],
            rows: rows.collect(),
            words: 0,
        },
        runs: vec![run],
        is_wide: false,
        title,
    }
}
