//! Rows as comma-separated values: a line of names, then one line a row, in the order of the JSON's fields. The
//! single blocks are in the JSON only.

use crate::measure::row::Row;
use serde_json::Value;

/// The columns.
const COLUMNS: [&str; 29] = [
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

/// All rows.
pub(crate) fn text(rows: &[Row]) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for row in rows {
        let row = serde_json::to_value(row).unwrap_or_default();
        let cells = COLUMNS.map(|column| match row.get(column) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => quoted(text),
            Some(other) => other.to_string(),
        });
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

/// As RFC 4180 has it: in quotes where a comma or a quote would be taken for the end.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::plan::Measurement;
    use crate::measure::row::tests::row;

    #[test]
    fn a_line_of_names_and_a_line_a_row() {
        insta::assert_snapshot!(text(&[row(Measurement::PingPong, 8), row(Measurement::Bandwidth, 4096)]));
    }

    #[test]
    fn a_setting_with_commas_stays_one_value() {
        let row = Row { setting: Some("btl=self,sm".into()), ..row(Measurement::PingPong, 8) };
        assert!(text(&[row]).contains(",\"btl=self,sm\","));
        assert_eq!(quoted("say \"a\""), "\"say \"\"a\"\"\"");
    }

    #[test]
    fn every_field_of_a_row_has_a_column() {
        let mut row = row(Measurement::Rate, 8);
        row.memory = Some(crate::measure::plan::MemoryOrigin::Any);
        row.target = Some(crate::measure::plan::Target::Polling);
        let value = serde_json::to_value(&row).unwrap();
        let mut fields: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        fields.retain(|field| !matches!(*field, "pairs" | "launches"));
        let mut columns = COLUMNS.to_vec();
        fields.sort_unstable();
        columns.sort_unstable();
        assert_eq!(fields, columns);
    }
}
