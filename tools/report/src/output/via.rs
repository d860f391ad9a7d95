//! Native VIs beside what they stand on: the table on the terminal.

use super::table::{align, time};
use crate::finding::{Via, ViaPoint, ViaTold};
use crate::sizes::show_size;

/// The table.
pub(crate) fn table(found: &Via) -> String {
    format!(
        "VIs over {}, {} launches; time: half of a round trip, of a write the whole\n{}",
        found.transport,
        found.launches,
        rows(&found.points)
    )
}

/// Rows below their head.
pub(crate) fn rows(points: &[ViaPoint]) -> String {
    let head = ["way", "bytes", "time", "beside", "time", "figure", "bar", "target", "verdict"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(points.iter().map(row));
    align(&rows, &[0, 3, 8])
}

/// The cells of a row.
pub(crate) fn row(point: &ViaPoint) -> Vec<String> {
    let spread = |ns: f64, spread: f64| format!("{} ±{:.1} %", time(ns), 100.0 * spread / ns.max(f64::MIN_POSITIVE));
    let limit = |limit: Option<f64>| {
        let sign = if point.told == ViaTold::Speed { "≥" } else { "≤" };
        limit.map_or_else(|| "-".into(), |limit| format!("{sign} {limit}"))
    };
    vec![
        point.name.clone(),
        show_size(point.bytes),
        spread(point.ns, point.spread_ns),
        point.reference.clone(),
        spread(point.reference_ns, point.reference_spread_ns),
        match point.told {
            ViaTold::Cycles => format!("{:.0} ±{:.0} cycles more", point.figure, point.figure_spread),
            ViaTold::Speed => format!("{:.3} ±{:.3} of its speed", point.figure, point.figure_spread),
            ViaTold::Time => format!("{:.3} ±{:.3} of its time", point.figure, point.figure_spread),
            ViaTold::Nanoseconds => format!("{:.1} ±{:.1} ns", point.figure, point.figure_spread),
            ViaTold::More => format!("{:.0} ±{:.0} ns more", point.figure, point.figure_spread),
        },
        limit(point.bar),
        limit(point.target),
        point.is_reached().map_or("said", |reached| if reached { "reached" } else { "missed" }).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_figure_beside_its_bar() {
        let short = ViaPoint {
            name: "send, reliable delivery, polled".into(),
            bytes: 8,
            ns: 260.0,
            spread_ns: 2.6,
            reference: "message of CCI".into(),
            reference_ns: 180.0,
            reference_spread_ns: 1.8,
            figure: 160.0,
            figure_spread: 4.0,
            bar: Some(150.0),
            target: Some(80.0),
            ..ViaPoint::default()
        };
        let write = ViaPoint {
            name: "RDMA write".into(),
            bytes: 1 << 20,
            told: ViaTold::Speed,
            figure: 0.99,
            bar: Some(0.95),
            target: None,
            ..short.clone()
        };
        let crowd = ViaPoint { told: ViaTold::Time, figure: 1.02, bar: None, target: None, ..short.clone() };
        let points = vec![short, write, crowd];
        insta::assert_snapshot!(table(&Via { transport: "sm".into(), cycle_ns: 0.5, launches: 6, points }));
    }
}
