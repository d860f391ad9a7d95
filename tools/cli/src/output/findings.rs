//! Findings on the terminal.

use super::table::{align, time};
use crate::measure::finding::{Finding, Jitter, Overlap};
use crate::sizes::show_size;

/// A finding as people read it; nothing for a kind that has no text.
pub(crate) fn text(finding: &Finding) -> String {
    match finding {
        Finding::Jitter(found) => jitter(found),
        Finding::Overlap(found) => overlap(found),
        Finding::Memory(_)
        | Finding::Threads(_)
        | Finding::Idle(_)
        | Finding::Gups(_)
        | Finding::Logp(_)
        | Finding::Breakdown(_)
        | Finding::Unknown => String::new(),
    }
}

/// Cells with a head, aligned.
fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut cells = vec![head.map(String::from).to_vec()];
    cells.extend(rows.map(Vec::from));
    align(&cells, &[])
}

/// Lines of the longest bar.
const BAR: u64 = 40;

/// The distribution, in steps of a factor of the root of 2.
#[expect(clippy::cast_precision_loss, reason = "times below 2^52 ns")]
fn jitter(found: &Jitter) -> String {
    let step = |ns: u64| (2.0 * (ns.max(1) as f64).log2()).floor();
    let mut steps: Vec<(f64, u64)> = Vec::new();
    for (ns, count) in &found.histogram {
        match steps.last_mut() {
            Some((of, sum)) if (*of - step(*ns)).abs() < 0.5 => *sum += count,
            _ => steps.push((step(*ns), *count)),
        }
    }
    let most = steps.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let rows = steps.iter().map(|(of, count)| {
        let ends = [0.5 * of, 0.5 * (of + 1.0)].map(|power| time(power.exp2()));
        [format!("{} to {}", ends[0], ends[1]), count.to_string(), "#".repeat(bar(*count, most))]
    });
    let mut cells = vec![["round trip", "count", ""].map(String::from).to_vec()];
    cells.extend(rows.map(Vec::from));
    format!(
        "{} round trips of {} over {}, each timed (one reading of the clock, {}, is in each); longest {}\n{}",
        found.count,
        show_size(found.size),
        found.transport,
        time(found.clock_ns),
        time(found.max_ns as f64),
        align(&cells, &[0, 2])
    )
}

/// Length of a bar: at least one, where there is anything.
fn bar(count: u64, most: u64) -> usize {
    usize::try_from((count.saturating_mul(BAR)).div_ceil(most.max(1))).unwrap_or(0)
}

fn overlap(found: &Overlap) -> String {
    let rows = found.points.iter().map(|point| {
        [
            show_size(point.size),
            time(point.transfer_ns),
            time(point.compute_ns),
            time(point.both_ns),
            format!("{:.0} %", 100.0 * point.overlap),
        ]
    });
    let head = ["size", "transfer alone", "computing alone", "both", "hidden"];
    format!(
        "How much of a transfer ({} over {}) hides behind computing\n{}",
        found.operation,
        found.transport,
        table(head, rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::finding::OverlapPoint;

    #[test]
    fn a_distribution_is_drawn_in_steps() {
        let found = Jitter {
            transport: "sm".into(),
            size: 8,
            count: 1102,
            min_ns: 600,
            median_ns: 610,
            p99_ns: 900,
            p999_ns: 5000,
            max_ns: 5000,
            clock_ns: 25.0,
            histogram: vec![(600, 500), (610, 500), (900, 100), (5000, 2)],
        };
        insta::assert_snapshot!(text(&Finding::Jitter(found)));
    }

    #[test]
    fn what_hides_is_a_percentage() {
        let points = vec![OverlapPoint::new(4096, &[[1000.0, 1000.0, 1200.0]])];
        let found = Overlap { transport: "sock".into(), operation: "write".into(), points };
        insta::assert_snapshot!(text(&Finding::Overlap(found)));
    }
}
