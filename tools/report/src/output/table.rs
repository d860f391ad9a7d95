//! The table on the terminal.

pub use super::columns::align;
use super::side_by_side;
use crate::row::Row;
use crate::sizes::show_size;

/// Rows of one run.
pub fn table(rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return String::from("Nothing was measured.\n") };
    let rates = first.per_second.is_some();
    // Of jitter each operation is timed; else a single one would be shorter than the clock can
    // tell.
    let singles = first.measurement == "jitter";
    let p99 = if singles { "p99" } else { "p99 of blocks" };
    let mut head = vec!["size", "min", "median", p99, "spread"];
    if rates {
        head.extend(["per second", "bytes/s"]);
    }
    head.extend(["probe", "its p99 of blocks", "ratio"]);
    let with_peers = rows.iter().any(|row| row.setting.is_some());
    if with_peers {
        head.push("to cci");
        head.insert(1, "library");
    }
    let mut cells = vec![head.into_iter().map(String::from).collect::<Vec<_>>()];
    for row in rows {
        let mut line = vec![show_size(row.size), time(row.min_ns), time(row.median_ns), time(row.p99_ns), spread(row)];
        if rates {
            line.push(row.per_second.map_or_else(String::new, |value| scaled(value, "")));
            line.push(row.bytes_per_second.map_or_else(String::new, |value| scaled(value, "B/s")));
        }
        line.extend([row.probe_ns, row.probe_p99_ns].map(|ns| ns.map_or_else(|| "-".into(), time)));
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}"));
        line.push(ratio(row.ratio));
        if with_peers {
            line.push(ratio(side_by_side::to_cci(row, rows)));
            line.insert(1, side_by_side::name(row));
        }
        cells.push(line);
    }
    let settings = side_by_side::settings(rows);
    let vague = rows.iter().any(|row| !row.accurate);
    let note = if vague { NOTE } else { "" };
    let left: &[usize] = if with_peers { &[1] } else { &[] };
    format!("{}\n{}{note}{settings}", title(first), align(&cells, left))
}

/// Below a table with a point that is marked.
const NOTE: &str = "! not accurate: the median may as well be so much more or less\n";

/// How sure the median is.
fn spread(row: &Row) -> String {
    format!("{:.1} %{}", 100.0 * row.spread, if row.accurate { "" } else { " !" })
}

fn title(row: &Row) -> String {
    let probe = row.probe.map_or_else(String::new, |probe| format!("; probe: {}", probe.name()));
    format!("{}: {}{probe}", subject(row), unit(row))
}

/// What was measured, and how.
pub(super) fn subject(row: &Row) -> String {
    let memory = row.memory.map_or_else(String::new, |memory| format!(", {} memory", memory.name()));
    let target = row.target.map_or_else(String::new, |target| format!(", target {}", target.name()));
    let touch = if row.touch { ", every byte read" } else { "" };
    format!(
        "{} of {} over {} by {} ({}, {}, {} events, threads: {}{memory}{target}{touch})",
        row.measurement,
        row.operation,
        row.transport,
        row.abi.name(),
        row.attribute,
        row.mode,
        row.completion,
        row.threads
    )
}

/// What the times of a row are.
pub(super) fn unit(row: &Row) -> &'static str {
    match row.measurement.as_str() {
        "pingpong" => "half round trip",
        "jitter" => "single round trips",
        "overlap" => "time of an operation and of computing meanwhile",
        _ => "time per operation",
    }
}

/// Medians of a run, by size, as part of a sentence: of all sizes, or where there are many of the
/// first three and the last.
pub fn in_short(rows: &[Row]) -> String {
    const MANY: usize = 4;
    let Some(first) = rows.first() else { return String::new() };
    let figures: Vec<_> = rows.iter().map(|row| format!("{} {}", show_size(row.size), figure(row))).collect();
    let what = if first.per_second.is_some() { "speed" } else { unit(first) };
    match &figures[..] {
        [begin @ .., last] if figures.len() > MANY => format!("{what}: {}, ..., {last}", begin[..MANY - 1].join(", ")),
        all => format!("{what}: {}", all.join(", ")),
    }
}

/// The figure that a measurement is for.
fn figure(row: &Row) -> String {
    match (row.per_second, row.bytes_per_second) {
        (Some(rate), _) if row.measurement == "rate" => scaled(rate, "/s"),
        (_, Some(bytes)) => scaled(bytes, "B/s"),
        _ => time(row.median_ns),
    }
}

/// A time of nanoseconds in a unit that suits it.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.1} ns"),
        ns if ns < 1e6 => format!("{:.2} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

/// A number with a decimal prefix.
pub fn scaled(value: f64, unit: &str) -> String {
    let (value, prefix) = match value {
        value if value >= 1e9 => (value / 1e9, "G"),
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "k"),
        value => (value, ""),
    };
    format!("{value:.2} {prefix}{unit}").trim_end().to_owned()
}

/// Bytes, with a binary prefix.
pub(super) fn bytes(count: f64) -> String {
    match count {
        count if count >= 1073741824.0 => format!("{:.2} GiB", count / 1073741824.0),
        count if count >= 1048576.0 => format!("{:.2} MiB", count / 1048576.0),
        count if count >= 1024.0 => format!("{:.1} KiB", count / 1024.0),
        count => format!("{count:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Measurement;
    use crate::row::tests::row;

    #[test]
    fn a_table_of_latency() {
        insta::assert_snapshot!(table(&[row(Measurement::PingPong, 8), row(Measurement::PingPong, 4096)]));
    }

    #[test]
    fn a_table_of_bandwidth() {
        insta::assert_snapshot!(table(&[row(Measurement::Bandwidth, 65536), row(Measurement::Bandwidth, 1 << 20)]));
    }

    #[test]
    fn a_run_in_short_is_what_it_was_for_by_size() {
        let of = |measurement, sizes: &[u64]| {
            in_short(&sizes.iter().map(|size| row(measurement, *size)).collect::<Vec<_>>())
        };
        assert_eq!(of(Measurement::PingPong, &[8, 4096]), "half round trip: 8 B 100.0 ns, 4 KiB 100.0 ns");
        assert_eq!(of(Measurement::Rate, &[8]), "speed: 8 B 10.00 M/s");
        assert_eq!(of(Measurement::Bandwidth, &[1000]), "speed: 1000 B 10.00 GB/s");
        let many = "time per operation: 1 B 100.0 ns, 2 B 100.0 ns, 3 B 100.0 ns, ..., 5 B 100.0 ns";
        assert_eq!(of(Measurement::OneWay, &[1, 2, 3, 4, 5]), many);
        assert_eq!(of(Measurement::OneWay, &[]), "");
    }

    #[test]
    fn a_point_that_is_not_accurate_is_marked() {
        let sure = Row { spread: 0.012, accurate: true, ..row(Measurement::PingPong, 8) };
        let text = table(std::slice::from_ref(&sure));
        assert!(text.contains("1.2 %") && !text.contains('!'), "{text}");
        let text = table(&[sure, Row { spread: 0.2, accurate: false, ..row(Measurement::PingPong, 64) }]);
        assert!(text.contains("20.0 % !") && text.contains("! not accurate"), "{text}");
    }

    #[test]
    fn an_empty_run_says_so() {
        assert_eq!(table(&[]), "Nothing was measured.\n");
    }

    #[test]
    fn units_suit_the_number() {
        assert_eq!(time(64.25), "64.2 ns");
        assert_eq!(time(1500.0), "1.50 us");
        assert_eq!(time(2.5e6), "2.50 ms");
        assert_eq!(time(3e9), "3.00 s");
        assert_eq!(scaled(24e6, ""), "24.00 M");
        assert_eq!(scaled(5.5e10, "B/s"), "55.00 GB/s");
        assert_eq!(scaled(12.0, "B/s"), "12.00 B/s");
    }
}
