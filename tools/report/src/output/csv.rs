//! Results as comma-separated values: a line of names, then one line a row, in the order of the
//! JSON's fields. The single blocks and the notes of a finding are in the JSON only. A run without
//! rows gives the table of its finding.

use crate::finding::Finding;
use crate::row::{Document, Row};
use serde_json::Value;

/// The columns.
const COLUMNS: [&str; 30] = [
    "measurement",
    "transport",
    "attribute",
    "operation",
    "size",
    "count",
    "blocks",
    "min_ns",
    "median_ns",
    "p99_ns",
    "p999_ns",
    "spread",
    "accurate",
    "probe",
    "probe_ns",
    "probe_p99_ns",
    "ratio",
    "per_second",
    "bytes_per_second",
    "library",
    "setting",
    "abi",
    "mode",
    "threads",
    "completion",
    "touch",
    "memory",
    "target",
    "window",
    "bidirectional",
];

/// The rows; of a run that gave none its finding.
pub(crate) fn text(document: &Document) -> String {
    match (&document.rows[..], &document.findings[..]) {
        ([], [finding, ..]) => of_finding(finding),
        (rows, _) => of_rows(rows),
    }
}

fn of_rows(rows: &[Row]) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for row in rows {
        let row = serde_json::to_value(row).unwrap_or_default();
        text += &line(COLUMNS.map(|column| cell(&row, column)));
    }
    text
}

/// The columns of a finding: those of the whole, and of a list in it what the list is called and
/// the columns of its parts.
type Columns = (&'static [&'static str], Option<(&'static str, &'static [&'static str])>);

fn columns(finding: &Finding) -> Columns {
    match finding {
        Finding::Memory(_) => (
            &["transport", "endpoint_private_bytes", "endpoint_resident_bytes"],
            Some(("points", &["connections", "private_bytes", "resident_bytes"])),
        ),
        Finding::MemoryCurves(_) => (&[], Some(("points", &["curve", "over", "space", "count", "bytes", "computed"]))),
        Finding::Threads(_) => {
            (&["transport", "operation", "size"], Some(("points", &["threads", "shared_per_second", "own_per_second"])))
        }
        Finding::Overlap(_) => (
            &["transport", "operation"],
            Some(("points", &["size", "transfer_ns", "compute_ns", "both_ns", "overlap"])),
        ),
        Finding::Idle(_) => (&["transport", "seconds", "processor_ms", "bare_processor_ms", "wakes", "switches"], None),
        Finding::Logp(_) => (
            &[
                "transport",
                "size",
                "attribute",
                "L_ns",
                "o_s_ns",
                "o_r_ns",
                "g_ns",
                "G_ns_per_byte",
                "round_trip_ns",
                "turn_ns",
                "window",
                "window_bound",
                "residual",
            ],
            Some(("points", &["burst", "delay_ns", "ns_per_message"])),
        ),
        Finding::Breakdown(_) => {
            (&["transport", "size", "total_ns", "probe", "probe_ns"], Some(("shares", &["name", "ns", "meaning"])))
        }
        Finding::Gups(_) => (
            &[
                "transport",
                "operation",
                "table_bytes",
                "updates",
                "seconds",
                "gups",
                "processes",
                "probe_gups",
                "errors",
            ],
            None,
        ),
        Finding::Mappings(_) => (
            &["transport", "cycle_ns", "payload"],
            Some((
                "points",
                &[
                    "name",
                    "credits",
                    "update_every",
                    "wire_bytes",
                    "half_ns",
                    "difference_ns",
                    "lone_ns",
                    "l_ns",
                    "o_s_ns",
                    "o_r_ns",
                    "g_ns",
                    "store_ns",
                ],
            )),
        ),
        Finding::Via(_) => (
            &["transport", "cycle_ns", "launches"],
            Some((
                "points",
                &[
                    "name",
                    "bytes",
                    "ns",
                    "spread_ns",
                    "reference",
                    "reference_ns",
                    "reference_spread_ns",
                    "told",
                    "figure",
                    "figure_spread",
                    "bar",
                    "target",
                ],
            )),
        ),
        Finding::SplitC(_) => (
            &["transport", "cycle_ns"],
            Some(("pairs", &["mapping", "name", "ns", "bare_ns", "difference_ns", "ratio"])),
        ),
        Finding::Portals(_) | Finding::Mx(_) => {
            (&["transport", "launches", "processors"], Some(("points", &["experiment", "x", "way", "value", "spread"])))
        }
        // Rows and programs are in the JSON only.
        Finding::Sci(_) | Finding::Mpi(_) => (
            &["transport", "window", "launches", "runs", "processors"],
            Some(("points", &["experiment", "x", "way", "value", "spread"])),
        ),
        Finding::Am(_) => (
            &["transport", "cycle_ns", "launches", "peer"],
            Some((
                "points",
                &[
                    "name",
                    "bytes",
                    "window",
                    "am_ns",
                    "am_spread_ns",
                    "own",
                    "own_ns",
                    "own_spread_ns",
                    "difference_ns",
                    "difference_spread_ns",
                    "ratio",
                    "ratio_spread",
                    "peer_ns",
                    "to_peer",
                ],
            )),
        ),
        Finding::Jitter(_) => {
            (&["transport", "size", "count", "min_ns", "median_ns", "p99_ns", "p999_ns", "max_ns", "clock_ns"], None)
        }
        Finding::Unknown => (&[], None),
    }
}

/// A line for each part, with what is said of the whole in front.
fn of_finding(finding: &Finding) -> String {
    let (whole, list) = columns(finding);
    let value = serde_json::to_value(finding).unwrap_or_default();
    let (list, of_part) = list.unzip();
    let nothing = [Value::Null];
    let parts = list.and_then(|list| value.get(list)?.as_array()).map_or(&nothing[..], Vec::as_slice);
    let of_part = of_part.unwrap_or_default();
    let mut text = line(whole.iter().chain(of_part).map(|column| (*column).to_owned()));
    for part in parts {
        let cells = whole.iter().map(|column| cell(&value, column));
        text += &line(cells.chain(of_part.iter().map(|column| cell(part, column))));
    }
    text
}

fn cell(of: &Value, column: &str) -> String {
    match of.get(column) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => quoted(text),
        Some(other) => other.to_string(),
    }
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    cells.into_iter().collect::<Vec<_>>().join(",") + "\n"
}

/// As RFC 4180 has it: in quotes where a comma or a quote would be taken for the end.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Measurement;
    use crate::row::tests::row;

    #[test]
    fn a_line_of_names_and_a_line_a_row() {
        insta::assert_snapshot!(of_rows(&[row(Measurement::PingPong, 8), row(Measurement::Bandwidth, 4096)]));
    }

    #[test]
    fn a_setting_with_commas_stays_one_value() {
        let row = Row { setting: Some("btl=self,sm".into()), ..row(Measurement::PingPong, 8) };
        assert!(of_rows(&[row]).contains(",\"btl=self,sm\","));
        assert_eq!(quoted("say \"a\""), "\"say \"\"a\"\"\"");
    }

    #[test]
    fn every_field_of_a_row_has_a_column() {
        let mut row = row(Measurement::Rate, 8);
        row.memory = Some(crate::names::MemoryOrigin::Any);
        row.target = Some(crate::names::Target::Polling);
        let value = serde_json::to_value(&row).unwrap();
        let mut fields: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        fields.retain(|field| !matches!(*field, "pairs" | "launches"));
        let mut columns = COLUMNS.to_vec();
        fields.sort_unstable();
        columns.sort_unstable();
        assert_eq!(fields, columns);
    }

    /// One of each kind that a run without rows gives, as JSON.
    const FINDINGS: [&str; 8] = [
        r#"{"kind":"memory","transport":"sm","endpoint_private_bytes":1.5,"endpoint_resident_bytes":2.0,"points":[
            {"connections":10,"private_bytes":3.0,"resident_bytes":4.0},{"connections":20,"private_bytes":5.0,"resident_bytes":6.0}]}"#,
        r#"{"kind":"memory-curves","points":[
            {"curve":"tcp","over":"peers","space":"kernel","count":10,"bytes":3.5,"computed":false}],"notes":[]}"#,
        r#"{"kind":"threads","transport":"sm","operation":"send","size":8,"points":[
            {"threads":1,"shared_per_second":1.0,"own_per_second":2.0}]}"#,
        r#"{"kind":"idle","transport":"sm","seconds":5.0,"processor_ms":0.5,"bare_processor_ms":0.25,"wakes":1,"switches":2}"#,
        r#"{"kind":"logp","transport":"sm","size":8,"attribute":"RO","L_ns":1.0,"o_s_ns":2.0,"o_r_ns":3.0,"g_ns":4.0,
            "G_ns_per_byte":5.0,"round_trip_ns":6.0,"turn_ns":null,"window":8,"window_bound":false,"residual":0.5,
            "points":[{"burst":1,"delay_ns":0.0,"ns_per_message":7.0}]}"#,
        r#"{"kind":"breakdown","transport":"sm","size":8,"total_ns":1.0,"probe":"line","probe_ns":2.0,
            "shares":[{"name":"semantics","ns":3.0,"meaning":"flags, and state"}]}"#,
        r#"{"kind":"gups","transport":"sm","operation":"send","table_bytes":1024,"updates":2,"seconds":1.0,"gups":0.5,
            "processes":2,"probe_gups":0.75,"errors":0}"#,
        r#"{"kind":"portals","transport":"sm","launches":6,"processors":2,"points":[
            {"experiment":"depth","x":32,"way":"generic","value":300.0,"spread":2.0}]}"#,
    ];

    #[test]
    fn a_run_without_rows_gives_a_line_for_each_part_of_its_finding() {
        let tables = FINDINGS.map(|json| of_finding(&serde_json::from_str(json).unwrap()));
        insta::assert_snapshot!(tables.join("\n"));
    }

    #[test]
    fn every_field_of_a_finding_has_a_column() {
        for json in FINDINGS {
            let finding: Finding = serde_json::from_str(json).unwrap();
            let (whole, list) = columns(&finding);
            let value = serde_json::to_value(&finding).unwrap();
            let mut fields: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
            // Sentences are in the JSON only.
            fields.retain(|field| !["kind", "notes"].contains(field) && Some(*field) != list.map(|(name, _)| name));
            let mut columns = whole.to_vec();
            fields.sort_unstable();
            columns.sort_unstable();
            assert_eq!(fields, columns);
            let Some((name, of_part)) = list else { continue };
            let mut fields: Vec<_> = value[name][0].as_object().unwrap().keys().map(String::as_str).collect();
            let mut columns = of_part.to_vec();
            fields.sort_unstable();
            columns.sort_unstable();
            assert_eq!(fields, columns);
        }
    }
}
