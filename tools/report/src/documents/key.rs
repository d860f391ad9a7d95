//! What a row is about: everything in it that is no figure.

use crate::row::Row;
use crate::sizes::show_size;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The fields that say what was measured, in the order of their weight, each with what it is when
/// nothing else was asked for.
const FIELDS: [(&str, &str); 16] = [
    ("measurement", ""),
    ("transport", ""),
    ("operation", "send"),
    ("library", "cci"),
    ("setting", ""),
    ("attribute", "RO"),
    ("mode", "polling"),
    ("threads", "many"),
    ("completion", "reaped"),
    ("abi", "rust"),
    ("touch", "false"),
    ("memory", "library"),
    ("target", "polling"),
    ("window", "0"),
    ("bidirectional", "false"),
    ("probe", ""),
];

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// In the order of [`FIELDS`]; empty where the row has none.
    values: [String; FIELDS.len()],
    size: Option<u64>,
}

impl Key {
    /// Of a row.
    pub fn of(row: &Row) -> Self {
        let row_value = serde_json::to_value(row).unwrap_or_default();
        let values = FIELDS.map(|(field, _)| match row_value.get(field) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        });
        Self { values, size: Some(row.size) }
    }

    /// The same for all sizes.
    pub fn of_any_size(&self) -> Self {
        Self { size: None, ..self.clone() }
    }

    /// The same without a field.
    pub fn without(mut self, field: &str) -> Self {
        for ((name, _), value) in FIELDS.iter().zip(&mut self.values) {
            if *name == field {
                value.clear();
            }
        }
        self
    }

    /// What is out of the ordinary, as words with commas between them; empty if nothing is.
    pub fn peculiarities(&self) -> String {
        let fields = FIELDS.iter().zip(&self.values).skip(3).take(FIELDS.len() - 4);
        let told = fields.filter(|((_, usual), value)| !value.is_empty() && value != usual);
        told.map(|((field, _), value)| words(field, value)).collect::<Vec<_>>().join(", ")
    }

    fn get(&self, field: &str) -> &str {
        FIELDS.iter().zip(&self.values).find(|((name, _), _)| *name == field).map_or("", |(_, value)| value)
    }
}

/// A field and its value as people say it.
fn words(field: &str, value: &str) -> String {
    match field {
        "library" | "setting" | "attribute" | "mode" | "completion" => value.into(),
        "threads" => "for one thread".into(),
        "abi" => "by the C library".into(),
        "touch" => "every byte read".into(),
        "memory" => format!("{value} memory"),
        "target" => format!("target {value}"),
        "window" => format!("at most {value} in flight"),
        "bidirectional" => "both directions".into(),
        other => format!("{other} {value}"),
    }
}

/// Reads as a sentence's subject: `pingpong of send, 8 B, over sm (blocking)`.
impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.get("measurement"), self.get("operation"))?;
        if let Some(size) = self.size {
            write!(f, ", {}", show_size(size))?;
        }
        write!(f, ", over {}", self.get("transport"))?;
        let peculiarities = self.peculiarities();
        if peculiarities.is_empty() { Ok(()) } else { write!(f, " ({peculiarities})") }
    }
}

/// An object of the fields that it has.
impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = FIELDS.iter().zip(&self.values).filter(|(_, value)| !value.is_empty());
        let mut map: serde_json::Map<_, _> =
            fields.map(|((field, _), value)| ((*field).to_owned(), Value::String(value.clone()))).collect();
        if let Some(size) = self.size {
            map.insert("size".into(), size.into());
        }
        map.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Measurement, MemoryOrigin, Target};
    use crate::row::tests::row;

    /// The fields of a row that may differ between two runs of the same.
    const FIGURES: [&str; 16] = [
        "count",
        "blocks",
        "min_ns",
        "median_ns",
        "p99_ns",
        "p999_ns",
        "spread",
        "accurate",
        "probe_ns",
        "probe_p99_ns",
        "ratio",
        "per_second",
        "bytes_per_second",
        "pairs",
        "launches",
        "size",
    ];

    #[test]
    fn every_field_of_a_row_is_part_of_the_key_or_a_figure() {
        let mut row = row(Measurement::Rate, 8);
        (row.memory, row.target) = (Some(MemoryOrigin::Any), Some(Target::Polling));
        let value = serde_json::to_value(&row).unwrap();
        let mut fields: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let mut known: Vec<_> = FIELDS.iter().map(|(field, _)| *field).chain(FIGURES).collect();
        fields.sort_unstable();
        known.sort_unstable();
        assert_eq!(fields, known);
    }

    #[test]
    fn a_key_reads_as_words_and_tells_what_is_out_of_the_ordinary() {
        let mut row = row(Measurement::PingPong, 4096);
        assert_eq!(Key::of(&row).to_string(), "pingpong of send, 4 KiB, over sm");
        (row.mode, row.window, row.touch) = ("blocking".into(), 4, true);
        let key = Key::of(&row);
        assert_eq!(key.peculiarities(), "blocking, every byte read, at most 4 in flight");
        assert!(key.to_string().ends_with("over sm (blocking, every byte read, at most 4 in flight)"));
    }

    #[test]
    fn keys_differ_by_what_was_measured_and_not_by_what_came_of_it() {
        let (mut one, other) = (row(Measurement::PingPong, 8), row(Measurement::PingPong, 8));
        one.median_ns = 7.0;
        assert_eq!(Key::of(&one), Key::of(&other));
        one.library = "ucx".into();
        assert_ne!(Key::of(&one), Key::of(&other));
        assert_eq!(Key::of(&one).without("library"), Key::of(&other).without("library"));
        one.size = 9;
        assert_ne!(Key::of(&one).without("library"), Key::of(&other).without("library"));
        assert_eq!(Key::of(&one).without("library").of_any_size(), Key::of(&other).without("library").of_any_size());
    }
}
