//! Memory over connections.

use super::section::{Found, Section, origins};
use crate::finding::{Memory, MemoryPoint};
use crate::html::chart::{Axis, Chart, Line, Point, Spread};
use crate::html::curves::transport;
use crate::html::figure::{Entry, Figure, FigureTable};
use crate::html::library::Look;
use crate::html::unit;

pub(super) fn section(found: &Found<'_, Memory>) -> Section {
    let figures = if found.is_empty() { Vec::new() } else { vec![figure(found)] };
    Section {
        anchor: "memory",
        heading: "Memory",
        text: "What an endpoint takes, and what the process takes beyond that with more and more connections of one endpoint.",
        figures,
    }
}

/// What is drawn of a point: its name, and its bytes.
type Bytes = (&'static str, fn(&MemoryPoint) -> f64);
const PRIVATE: Bytes = ("private", |point| point.private_bytes);
const RESIDENT: Bytes = ("resident", |point| point.resident_bytes);

fn figure(found: &Found<'_, Memory>) -> Figure {
    let mut lines = Vec::new();
    let mut legend = Vec::new();
    for (number, (_, memory)) in found.iter().enumerate() {
        for (dash, (name, bytes)) in [("", PRIVATE), ("dash-2", RESIDENT)] {
            let look = Look { dash, ..Look::of_number(number) };
            lines.push(Line {
                label: if dash.is_empty() { memory.transport.clone() } else { String::new() },
                look: look.clone(),
                points: memory
                    .points
                    .iter()
                    .filter(|point| bytes(point) > 0.0)
                    .map(|it| point(memory, name, bytes, it))
                    .collect(),
            });
            legend.push(Entry { look, name: format!("{} {name}", memory.transport), detail: String::new() });
        }
    }
    lines.retain(|line| !line.points.is_empty());
    let points = || lines.iter().flat_map(|line| &line.points);
    let sentence = |(_, memory): &(usize, &Memory)| {
        let last = memory.points.last().map_or_else(String::new, |point| {
            format!("; {} private with {} connections", unit::bytes(point.private_bytes), point.connections)
        });
        format!(
            "{}: an endpoint {} private{last}",
            transport(&memory.transport),
            unit::bytes(memory.endpoint_private_bytes)
        )
    };
    let about: Vec<_> = found.iter().map(sentence).collect();
    let chart = Chart {
        id: "memory-1".into(),
        description: format!("Memory over connections. {}.", about.join(". ")),
        x: Axis::new("connections", Spread::Decimal, points().map(|point| point.x), |value| {
            unit::short(&crate::output::table::scaled(value, ""))
        }),
        y: Axis::new("bytes", Spread::Binary, points().map(|point| point.y), unit::size),
        lines: lines.clone(),
    };
    Figure {
        title: "Over connections".into(),
        note: "Beyond the endpoint with one connection.".into(),
        picture: chart.draw(),
        legend,
        table: FigureTable {
            head: vec!["transport", "connections", "private", "resident", "private each"],
            rows: found.iter().flat_map(|(_, memory)| rows(memory)).collect(),
            words: 1,
        },
        runs: origins(found),
        is_wide: false,
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 connections")]
fn point(memory: &Memory, name: &str, bytes: fn(&MemoryPoint) -> f64, point: &MemoryPoint) -> Point {
    Point {
        x: point.connections.max(1) as f64,
        y: bytes(point),
        band: None,
        is_accurate: true,
        told: format!("{}, {} connections: {} {name}", memory.transport, point.connections, unit::bytes(bytes(point))),
    }
}

/// The endpoint alone, then each number of connections.
fn rows(memory: &Memory) -> Vec<Vec<String>> {
    let alone = vec![
        memory.transport.clone(),
        "endpoint alone".into(),
        unit::bytes(memory.endpoint_private_bytes),
        unit::bytes(memory.endpoint_resident_bytes),
        "–".into(),
    ];
    let of = |point: &MemoryPoint| {
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 connections")]
        let each = point.private_bytes / point.connections.max(1) as f64;
        vec![
            memory.transport.clone(),
            point.connections.to_string(),
            unit::bytes(point.private_bytes),
            unit::bytes(point.resident_bytes),
            unit::bytes(each),
        ]
    };
    std::iter::once(alone).chain(memory.points.iter().map(of)).collect()
}
