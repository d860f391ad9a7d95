//! Findings on the terminal.

use super::table::{align, bytes, scaled, time};
use super::{am, breakdown, gups, logp, mappings, memory_curves, mpi, mx, portals, sci, splitc, via};
use crate::finding::{Finding, Idle, Jitter, Memory, Overlap, Threads};
use crate::sizes::show_size;

/// A finding as people read it; nothing for a kind that has no text.
pub fn text(finding: &Finding) -> String {
    match finding {
        Finding::Jitter(found) => jitter(found),
        Finding::Overlap(found) => overlap(found),
        Finding::Memory(found) => memory(found),
        Finding::MemoryCurves(found) => memory_curves::text(found),
        Finding::Threads(found) => threads(found),
        Finding::Idle(found) => idle(found),
        Finding::Gups(found) => gups::table(found),
        Finding::Logp(found) => logp::table(found),
        Finding::Breakdown(found) => breakdown::table(found),
        Finding::Am(found) => am::table(found),
        Finding::Mappings(found) => mappings::table(found),
        Finding::SplitC(found) => splitc::table(found),
        Finding::Via(found) => via::table(found),
        Finding::Portals(found) => portals::table(found),
        Finding::Mx(found) => mx::table(found),
        Finding::Sci(found) => sci::table(found),
        Finding::Mpi(found) => mpi::table(found),
        Finding::Unknown => String::new(),
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

#[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
fn memory(found: &Memory) -> String {
    let rows = found.points.iter().map(|point| {
        let each = point.connections.saturating_sub(1).max(1) as f64;
        [
            point.connections.to_string(),
            bytes(point.private_bytes),
            bytes(point.private_bytes / each),
            bytes(point.resident_bytes),
            bytes(point.resident_bytes / each),
        ]
    });
    let head = ["connections", "private", "for each", "resident", "for each"];
    format!(
        "Memory over {}: a fresh endpoint has {} resident, {} of them private; with connections beyond one\n{}",
        found.transport,
        bytes(found.endpoint_resident_bytes),
        bytes(found.endpoint_private_bytes),
        table(head, rows)
    )
}

fn threads(found: &Threads) -> String {
    let first = found.points.first().map(|point| [point.shared_per_second, point.own_per_second]);
    let rows = found.points.iter().map(|point| {
        let speeds = [point.shared_per_second, point.own_per_second];
        let times = |of: usize| first.filter(|first| first[of] > 0.0).map_or(0.0, |first| speeds[of] / first[of]);
        [
            point.threads.to_string(),
            scaled(speeds[0], ""),
            format!("{:.2}", times(0)),
            scaled(speeds[1], ""),
            format!("{:.2}", times(1)),
        ]
    });
    let head = ["threads", "of one endpoint", "to one thread", "each of its own", "to one thread"];
    format!(
        "Operations per second ({} of {} over {}) of all threads together\n{}",
        found.operation,
        show_size(found.size),
        found.transport,
        table(head, rows)
    )
}

fn idle(found: &Idle) -> String {
    format!(
        "An idle endpoint over {} for {} s: {:.2} ms of processor time (a bare sleeper {:.2} ms), {} wake-ups, {} context \
         switches of the library's threads\n",
        found.transport, found.seconds, found.processor_ms, found.bare_processor_ms, found.wakes, found.switches
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{MemoryPoint, OverlapPoint, ThreadsPoint};

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

    #[test]
    fn memory_threads_and_idleness() {
        let points = vec![
            MemoryPoint { connections: 11, private_bytes: 2000.0, resident_bytes: 4096.0 },
            MemoryPoint { connections: 10_001, private_bytes: 2.5e6, resident_bytes: 5e6 },
        ];
        let memory = Memory {
            transport: "sm".into(),
            endpoint_private_bytes: 300_000.0,
            endpoint_resident_bytes: 1_500_000.0,
            points,
        };
        let points = [(1, 10e6, 11e6), (2, 8e6, 20e6)].map(|(threads, shared_per_second, own_per_second)| {
            ThreadsPoint { threads, shared_per_second, own_per_second }
        });
        let threads = Threads { transport: "sock".into(), operation: "send".into(), size: 8, points: points.to_vec() };
        let idle = Idle {
            transport: "sm".into(),
            seconds: 5.0,
            processor_ms: 0.31,
            bare_processor_ms: 0.3,
            wakes: 0,
            switches: 0,
        };
        let all = [Finding::Memory(memory), Finding::Threads(threads), Finding::Idle(idle)];
        insta::assert_snapshot!(all.iter().map(text).collect::<String>());
    }
}
