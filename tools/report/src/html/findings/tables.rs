//! Findings of a few numbers: random access, mappings of Active Messages, and idleness.

use super::section::{Found, Section, origins};
use crate::finding::{Gups, Idle, MappingPoint, Mappings, Via, ViaPoint};
use crate::html::curves::transport;
use crate::html::figure::{Figure, FigureTable};
use crate::html::unit;

pub(super) fn gups(found: &Found<'_, Gups>) -> Section {
    let row = |gups: &Gups| {
        #[expect(clippy::cast_precision_loss, reason = "a table that fits into memory")]
        let table = gups.table_bytes as f64;
        vec![
            transport(&gups.transport),
            gups.operation.clone(),
            unit::bytes(table),
            gups.updates.to_string(),
            unit::time(gups.seconds * 1e9),
            format!("{:.6}", gups.gups),
            gups.errors.to_string(),
        ]
    };
    let head = vec!["transport", "operation", "table", "updates", "took", "GUPS", "wrong places"];
    Section {
        anchor: "gups",
        heading: "Random access",
        text: "HPCC RandomAccess: 10⁹ updates of random places of a table per second; the table is looked through afterwards.",
        figures: one_table("Updates", head, 2, found, |gups| vec![row(gups)]),
    }
}

pub(super) fn mappings(found: &Found<'_, Mappings>) -> Section {
    let rows = |mappings: &Mappings| {
        let row = |point: &MappingPoint| {
            vec![
                transport(&mappings.transport),
                point.name.clone(),
                point.credits.map_or_else(String::new, |credits| credits.to_string()),
                point.wire_bytes.to_string(),
                unit::time(point.half_ns),
                point.difference_ns.map_or_else(String::new, unit::time),
                unit::time(point.lone_ns),
                unit::time(point.l_ns),
                unit::time(point.o_s_ns),
                unit::time(point.o_r_ns),
                unit::time(point.g_ns),
            ]
        };
        mappings.points.iter().map(row).collect()
    };
    let head = vec![
        "transport",
        "mapping",
        "credits",
        "bytes",
        "half round trip",
        "to native VI",
        "lone",
        "L",
        "o_s",
        "o_r",
        "g",
    ];
    Section {
        anchor: "mappings",
        heading: "Mappings of Active Messages",
        text: "A short message by each mapping, beside native VI (via) with as many bytes.",
        figures: one_table("Mappings", head, 2, found, rows),
    }
}

pub(super) fn via(found: &Found<'_, Via>) -> Section {
    Section {
        anchor: "via",
        heading: "The VI Architecture",
        text: "Native VIs beside CCI's own messages and RMA, and Active Messages by v3 beside native VIs.",
        figures: compared("VIs", found, |via| (&via.transport, &via.points)),
    }
}

/// One table of ways beside what they are compared with: a transport and its rows.
pub(super) fn compared<'a, T>(
    title: &str,
    found: &Found<'a, T>,
    of: impl Fn(&'a T) -> (&'a str, &'a [ViaPoint]),
) -> Vec<Figure> {
    let rows = |found: &'a T| {
        let (transport_name, points) = of(found);
        let row = |point: &ViaPoint| {
            let mut cells = crate::output::via::row(point);
            cells.insert(0, transport(transport_name));
            cells
        };
        points.iter().map(row).collect()
    };
    let head = vec!["transport", "way", "bytes", "time", "beside", "its time", "figure", "bar", "target", "verdict"];
    one_table(title, head, 2, found, rows)
}

pub(super) fn idle(found: &Found<'_, Idle>) -> Section {
    let row = |idle: &Idle| {
        vec![
            transport(&idle.transport),
            format!("{:.1} s", idle.seconds),
            format!("{:.2} ms", idle.processor_ms),
            format!("{:.2} ms", idle.bare_processor_ms),
            idle.wakes.to_string(),
            idle.switches.to_string(),
        ]
    };
    let head = vec!["transport", "idled", "processor time", "of a bare sleeper", "wake-ups", "context switches"];
    Section {
        anchor: "idle",
        heading: "Idle",
        text: "What an endpoint uses that has nothing to do, beside a process that sleeps without one.",
        figures: one_table("An idle endpoint", head, 1, found, |idle| vec![row(idle)]),
    }
}

/// One table with the rows of all runs.
fn one_table<'a, T>(
    title: &str,
    head: Vec<&'static str>,
    words: usize,
    found: &Found<'a, T>,
    rows: impl Fn(&'a T) -> Vec<Vec<String>>,
) -> Vec<Figure> {
    if found.is_empty() {
        return Vec::new();
    }
    let table = FigureTable { head, rows: found.iter().flat_map(|(_, found)| rows(found)).collect(), words };
    vec![Figure {
        title: title.into(),
        note: String::new(),
        picture: table.draw(title),
        legend: Vec::new(),
        table: FigureTable::default(),
        runs: origins(found),
        is_wide: true,
    }]
}
