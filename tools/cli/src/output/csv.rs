//! Rows as comma-separated values: a line of names, then one line a row, in the order of the JSON's fields.

use crate::measure::row::Row;
use serde_json::Value;

/// The columns.
const COLUMNS: [&str; 23] = [
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
    "probe",
    "probe_ns",
    "ratio",
    "per_second",
    "bytes_per_second",
    "library",
    "abi",
    "mode",
    "threads",
    "completion",
    "touch",
    "memory",
    "target",
];

/// All rows. No value has a comma or a quote in it: names and numbers only.
pub(crate) fn text(rows: &[Row]) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for row in rows {
        let row = serde_json::to_value(row).unwrap_or_default();
        let cells = COLUMNS.map(|column| match row.get(column) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        });
        text += &cells.join(",");
        text.push('\n');
    }
    text
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
    fn every_field_of_a_row_has_a_column() {
        let mut row = row(Measurement::Rate, 8);
        row.memory = Some(crate::measure::plan::MemoryOrigin::Any);
        row.target = Some(crate::measure::plan::Target::Polling);
        let value = serde_json::to_value(&row).unwrap();
        let mut fields: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let mut columns = COLUMNS.to_vec();
        fields.sort_unstable();
        columns.sort_unstable();
        assert_eq!(fields, columns);
    }
}
