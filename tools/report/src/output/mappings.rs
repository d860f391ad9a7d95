//! Active Messages by several mappings: the paper's tables, then and now.

use super::parts;
use super::table::{align, time};
use crate::finding::{MappingPoint, Mappings};
use crate::sizes::show_size;

/// The figures of then, in microseconds: name, half round trip, difference to native VI, L, o_s,
/// o_r, g. Begel, Buonadonna, Culler and Gay, Table 2; the second version has none.
const THEN: [(&str, [f64; 6]); 3] = [
    ("v1, LANai 4", [53.0, 19.9, 45.0, 2.7, 5.3, 48.0]),
    ("v1, LANai 7", [39.2, 9.0, 33.2, 3.2, 2.8, 34.7]),
    ("v3, LANai 7", [35.6, 5.4, 29.6, 3.1, 2.9, 30.0]),
];
/// Native VI then: half round trip in microseconds, megabytes per second. The paper's Table 1.
const NATIVE_THEN: [(&str, f64, f64); 4] = [
    ("VI, LANai 4", 33.1, 62.8),
    ("VI, LANai 7", 30.2, 68.3),
    ("VI, Giganet cLAN", 24.0, 70.0),
    ("VI, ServerNet II", 7.4, 180.0),
];

/// The size of the paper's Table 5, and its figures in microseconds: all, a copy, a short receive.
const COPIED: u64 = 1 << 10;
const BULK_THEN: [f64; 3] = [18.5, 4.0, 14.5];

/// The tables.
pub(super) fn table(found: &Mappings) -> String {
    let head = [
        "mapping",
        "credits",
        "bytes",
        "half round trip",
        "to native VI",
        "cycles",
        "lone",
        "L",
        "o_s",
        "o_r",
        "g",
        "store",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(found.points.iter().map(|point| row(found, point)));
    rows.extend(THEN.map(|(name, [half, difference, l, o_s, o_r, g])| {
        let us = |value: f64| time(1e3 * value);
        let rest = [us(l), us(o_s), us(o_r), us(g), "-".into()];
        [vec![name.into(), "-".into(), "-".into(), us(half), us(difference), "-".into(), "-".into()], rest.to_vec()]
            .concat()
    }));
    let head = ["native VI", "half round trip", "MB/s"];
    let mut native = vec![head.map(String::from).to_vec()];
    if let Some(now) = found.points.iter().find(|point| point.difference_ns.is_none()) {
        let best = found.bulk.iter().filter(|point| point.name == now.name).map(|point| point.mb_per_s);
        let best = best.fold(0.0, f64::max);
        native.push(vec![format!("VI, {}", found.transport), time(now.half_ns), format!("{best:.1}")]);
    }
    native.extend(NATIVE_THEN.map(|(name, half, rate)| vec![name.into(), time(1e3 * half), format!("{rate:.1}")]));
    format!(
        "Active Messages by mapping over {}, {} of payload, and the figures of then\n{}\n{}\nBulk data, MB/s, 8 requests under way\n{}{}{}",
        found.transport,
        show_size(found.payload),
        align(&rows, &[0]),
        align(&native, &[0]),
        align(&bulk(found), &[0]),
        differences(found),
        parts::table(&found.parts, found.cycle_ns, &parts::REQUEST)
    )
}

/// The paper's Table 5: what a bulk message of 1 KiB takes more than by native VI.
fn differences(found: &Mappings) -> String {
    let per_message = |name: &str, credits, every| {
        let mut of = found.bulk.iter().filter(|point| point.bytes == COPIED && point.name == name);
        let point = of.find(|point| point.credits == credits && point.update_every == every)?;
        #[expect(clippy::cast_precision_loss, reason = "a size")]
        Some(COPIED as f64 * 1e3 / point.mb_per_s.max(f64::MIN_POSITIVE))
    };
    let native = found.points.iter().find(|point| point.difference_ns.is_none());
    let Some((native, bare)) = native.and_then(|native| Some((native, per_message(&native.name, None, None)?))) else {
        return String::new();
    };
    let mut rows =
        vec![["mapping", "more than native VI", "a copy", "a short receive", "the rest"].map(String::from).to_vec()];
    for point in found.points.iter().filter(|point| point.difference_ns.is_some()) {
        let Some(all) = per_message(&point.name, point.credits, point.update_every) else { continue };
        let more = all - bare;
        let cells = [more, found.copy_ns, native.g_ns, more - found.copy_ns - native.g_ns].map(time);
        rows.push([vec![label(found, &point.name, point.credits, point.update_every)], cells.to_vec()].concat());
    }
    let [all, copy, receive] = BULK_THEN.map(|us| time(1e3 * us));
    rows.push(vec!["v3, LANai 7".into(), all, copy, receive, time(0.0)]);
    format!("\nA bulk message of {}; a short receive: the gap of native VI\n{}", show_size(COPIED), align(&rows, &[0]))
}

/// The name of a line, with what it is swept over.
pub(super) fn label(found: &Mappings, name: &str, credits: Option<u16>, every: Option<u16>) -> String {
    let mut of = found.points.iter().filter(|point| point.name == name);
    let first = of.next();
    let (sweeps_credits, sweeps_every) = of.fold((false, false), |(credits, every), point| {
        (
            credits | (Some(point.credits) != first.map(|first| first.credits)),
            every | (Some(point.update_every) != first.map(|first| first.update_every)),
        )
    });
    let mut label = name.to_owned();
    if let Some(credits) = credits.filter(|_| sweeps_credits) {
        label += &format!(", k {credits}");
    }
    if let Some(every) = every.filter(|_| sweeps_every) {
        label += &format!(", n {every}");
    }
    label
}

fn row(found: &Mappings, point: &MappingPoint) -> Vec<String> {
    let cycles = |ns: f64| format!("{:.0}", ns / found.cycle_ns.max(f64::MIN_POSITIVE));
    vec![
        label(found, &point.name, None, point.update_every),
        point.credits.map_or_else(|| "-".into(), |credits| credits.to_string()),
        show_size(point.wire_bytes),
        time(point.half_ns),
        point.difference_ns.map_or_else(|| "-".into(), time),
        point.difference_ns.map_or_else(|| "-".into(), cycles),
        time(point.lone_ns),
        time(point.l_ns),
        time(point.o_s_ns),
        time(point.o_r_ns),
        time(point.g_ns),
        point.store_ns.map_or_else(|| "-".into(), time),
    ]
}

/// A line for each size, a column for each mapping.
fn bulk(found: &Mappings) -> Vec<Vec<String>> {
    let lines: Vec<_> = found.points.iter().map(|point| (&point.name, point.credits, point.update_every)).collect();
    let heads = lines.iter().map(|(name, credits, every)| label(found, name, *credits, *every));
    let mut rows = vec![std::iter::once("bytes".into()).chain(heads).collect::<Vec<_>>()];
    for bytes in sizes(found) {
        let cell = |(name, credits, every): &(&String, Option<u16>, Option<u16>)| {
            let mut of = found.bulk.iter().filter(|point| point.bytes == bytes && point.name == **name);
            let point = of.find(|point| point.credits == *credits && point.update_every == *every);
            point.map_or_else(String::new, |point| format!("{:.1}", point.mb_per_s))
        };
        rows.push([vec![show_size(bytes)], lines.iter().map(cell).collect()].concat());
    }
    rows
}

/// Sizes of bulk data, each once.
fn sizes(found: &Mappings) -> Vec<u64> {
    let mut sizes: Vec<u64> = found.bulk.iter().map(|point| point.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{BulkPoint, MappingPart};

    #[test]
    fn then_and_now_stand_in_one_table() {
        let native = MappingPoint { name: "via".into(), wire_bytes: 24, half_ns: 400.0, ..MappingPoint::default() };
        let v3 = |credits| MappingPoint {
            name: "v3".into(),
            credits: Some(credits),
            half_ns: 500.0,
            difference_ns: Some(100.0),
            ..native.clone()
        };
        let bulk = |name: &str, credits| BulkPoint {
            name: name.into(),
            credits,
            bytes: 1024,
            mb_per_s: 750.0,
            ..BulkPoint::default()
        };
        let part = |category: &str, name: &str, ns| MappingPart {
            mapping: "v3".into(),
            category: category.into(),
            name: name.into(),
            ns,
        };
        let found = Mappings {
            transport: "sm".into(),
            cycle_ns: 0.5,
            payload: 8,
            points: vec![native.clone(), v3(8), v3(16)],
            bulk: vec![bulk("via", None), bulk("v3", Some(8))],
            copy_ns: 40.0,
            parts: vec![part("Base VI", "PostSend", 100.0), part("Flow control", "send bookkeeping", 300.0)],
        };
        let text = table(&found);
        let parts = ["A short request and its reply by v3: 400.0 ns", "25.0 %", "6.1 %", "14.4 %", "18.50 us"];
        for part in ["200", "v3, LANai 7", "5.40 us", "VI, ServerNet II", "750.0", "v3, k 16"].into_iter().chain(parts)
        {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
