//! Active Messages by several mappings: the paper's tables, then and now.

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

/// The tables.
pub(super) fn table(found: &Mappings) -> String {
    let head = ["mapping", "credits", "bytes", "half round trip", "to native VI", "cycles", "L", "o_s", "o_r", "g"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(found.points.iter().map(|point| row(found, point)));
    rows.extend(THEN.map(|(name, [half, difference, l, o_s, o_r, g])| {
        let us = |value: f64| time(1e3 * value);
        let rest = [us(l), us(o_s), us(o_r), us(g)];
        [vec![name.into(), "-".into(), "-".into(), us(half), us(difference), "-".into()], rest.to_vec()].concat()
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
        "Active Messages by mapping over {}, {} of payload, and the figures of then\n{}\n{}\nBulk data, MB/s, 8 requests under way\n{}",
        found.transport,
        show_size(found.payload),
        align(&rows, &[0]),
        align(&native, &[0]),
        align(&bulk(found), &[0])
    )
}

fn row(found: &Mappings, point: &MappingPoint) -> Vec<String> {
    let cycles = |ns: f64| format!("{:.0}", ns / found.cycle_ns.max(f64::MIN_POSITIVE));
    vec![
        point.name.clone(),
        point.credits.map_or_else(|| "-".into(), |credits| credits.to_string()),
        show_size(point.wire_bytes),
        time(point.half_ns),
        point.difference_ns.map_or_else(|| "-".into(), time),
        point.difference_ns.map_or_else(|| "-".into(), cycles),
        time(point.l_ns),
        time(point.o_s_ns),
        time(point.o_r_ns),
        time(point.g_ns),
    ]
}

/// A line for each size, a column for each mapping.
fn bulk(found: &Mappings) -> Vec<Vec<String>> {
    let lines: Vec<_> = found.points.iter().map(|point| (&point.name, point.credits)).collect();
    let name = |(name, credits): &(&String, Option<u16>)| {
        let is_swept = lines.iter().filter(|(other, _)| other == name).count() > 1;
        credits.filter(|_| is_swept).map_or_else(|| (*name).clone(), |credits| format!("{name}, {credits}"))
    };
    let mut rows = vec![[vec!["bytes".into()], lines.iter().map(name).collect()].concat()];
    let mut sizes: Vec<u64> = found.bulk.iter().map(|point| point.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for bytes in sizes {
        let cell = |(name, credits): &(&String, Option<u16>)| {
            let mut of = found.bulk.iter().filter(|point| point.name == **name && point.credits == *credits);
            of.find(|point| point.bytes == bytes).map_or_else(String::new, |point| format!("{:.1}", point.mb_per_s))
        };
        rows.push([vec![show_size(bytes)], lines.iter().map(cell).collect()].concat());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::BulkPoint;

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
        let bulk = |name: &str, credits| BulkPoint { name: name.into(), credits, bytes: 1024, mb_per_s: 750.0 };
        let found = Mappings {
            transport: "sm".into(),
            cycle_ns: 0.5,
            payload: 8,
            points: vec![native.clone(), v3(8), v3(16)],
            bulk: vec![bulk("via", None), bulk("v3", Some(8))],
        };
        let text = table(&found);
        for part in ["200", "v3, LANai 7", "5.40 us", "VI, ServerNet II", "750.0", "v3, 16"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
