//! The LogP parameters, and the points that they were fitted to.

use super::section::{Found, Section, origins};
use crate::finding::{Logp, LogpPoint};
use crate::html::chart::{Axis, Chart, Line, Point, Spread};
use crate::html::curves::transport;
use crate::html::figure::{Entry, Figure, FigureTable};
use crate::html::library::Look;
use crate::html::unit;
use crate::sizes::show_size;
use maud::html;

pub(super) fn section(found: &Found<'_, Logp>) -> Section {
    let mut figures = Vec::new();
    if !found.is_empty() {
        figures.push(parameters(found));
    }
    figures.extend(found.iter().enumerate().filter_map(|(number, (run, logp))| fit(number, *run, logp)));
    Section {
        anchor: "logp",
        heading: "LogP",
        text: "L: latency of the wire. o_s, o_r: processor time of a send, of a receive. g: gap between messages. G: gap for each \
               further byte of a bulk transfer. Separated by bursts of growing length with growing delays between the sends.",
        figures,
    }
}

fn parameters(found: &Found<'_, Logp>) -> Figure {
    let rows = found.iter().map(|(_, logp)| {
        vec![
            transport(&logp.transport),
            show_size(logp.size),
            unit::time(logp.l_ns),
            unit::time(logp.o_s_ns),
            unit::time(logp.o_r_ns),
            unit::time(logp.g_ns),
            format!("{:.3} ns/B", logp.g_ns_per_byte),
            format!("{:.1} %", logp.residual * 100.0),
        ]
    });
    let head = vec!["transport", "size", "L", "o_s", "o_r", "g", "G", "left over by the fit"];
    let table = FigureTable { head, rows: rows.collect(), words: 1 };
    Figure {
        title: "Parameters".into(),
        note: String::new(),
        picture: table.draw("LogP parameters"),
        legend: Vec::new(),
        table: FigureTable::default(),
        runs: origins(found),
        is_wide: true,
    }
}

/// Time per message over the delay, a line for each length of burst.
fn fit(number: usize, run: usize, logp: &Logp) -> Option<Figure> {
    let mut bursts: Vec<_> = logp.points.iter().map(|point| point.burst).collect();
    bursts.sort_unstable();
    bursts.dedup();
    let delays = || logp.points.iter().map(|point| point.delay_ns);
    if bursts.is_empty() || delays().all(|delay| Some(delay) == delays().next()) {
        return None;
    }
    let shown = shown(&bursts);
    let lines: Vec<_> = shown.iter().enumerate().map(|(at, burst)| line(at, *burst, &logp.points)).collect();
    let title = format!("{}: bursts", transport(&logp.transport));
    let axis = |value: f64| unit::short(&unit::time(value));
    let chart = Chart {
        id: format!("logp-{}", number + 1),
        description: format!(
            "{title}: time per message over the delay between sends, for bursts of {shown:?} messages."
        ),
        x: Axis::new("delay between sends", Spread::Linear, delays(), axis),
        y: Axis::new("time per message", Spread::Linear, logp.points.iter().map(|point| point.ns_per_message), axis),
        lines,
    };
    let rows = logp.points.iter().map(|point| {
        vec![unit::count(as_f64(point.burst)), unit::time(point.delay_ns), unit::time(point.ns_per_message)]
    });
    let named = |(at, burst): (usize, &u64)| Entry {
        look: Look::of_number(at),
        name: if *burst == 1 { "1 message".into() } else { format!("{burst} messages") },
        detail: String::new(),
    };
    Some(Figure {
        title,
        note: "A single message costs o_s. Where a burst is long, each costs g, or its overheads and the delay where these are \
               more."
            .into(),
        picture: html! { (chart.draw()) },
        legend: shown.iter().enumerate().map(named).collect(),
        table: FigureTable { head: vec!["burst", "delay", "time per message"], rows: rows.collect(), words: 0 },
        runs: vec![run],
        is_wide: false,
    })
}

/// At most six lengths, the shortest and the longest among them.
fn shown(bursts: &[u64]) -> Vec<u64> {
    const MOST: usize = 6;
    let last = bursts.len() - 1;
    if last < MOST {
        return bursts.to_vec();
    }
    (0..MOST).map(|at| bursts[at * last / (MOST - 1)]).collect()
}

fn line(number: usize, burst: u64, points: &[LogpPoint]) -> Line {
    let mut of_burst: Vec<_> = points.iter().filter(|point| point.burst == burst).collect();
    of_burst.sort_by(|a, b| a.delay_ns.total_cmp(&b.delay_ns));
    let point = |point: &&LogpPoint| Point {
        x: point.delay_ns,
        y: point.ns_per_message,
        band: None,
        is_accurate: true,
        told: format!("burst of {burst}, delay {}: {}", unit::time(point.delay_ns), unit::time(point.ns_per_message)),
    };
    Line { label: burst.to_string(), look: Look::of_number(number), points: of_burst.iter().map(point).collect() }
}

#[expect(clippy::cast_precision_loss, reason = "a burst is short")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
