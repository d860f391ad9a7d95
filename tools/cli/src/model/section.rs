//! An answer of `cci model` as a part of the report's page.

use super::against::figure_of;
use super::answer::SCHEMA;
use cci_report::{UserError, while_doing};
use maud::{Markup, PreEscaped, html};
use serde_json::{Map, Value};
use std::path::Path;

/// A document that `cci model` wrote with `--json`.
#[derive(Debug)]
pub(crate) struct Section {
    document: Value,
    name: String,
}

impl Section {
    /// Reads it.
    pub(crate) fn read(path: &Path) -> Result<Self, UserError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(while_doing(&format!("cannot read {name}")))?;
        Self::of(&text, &name)
    }

    fn of(text: &str, name: &str) -> Result<Self, UserError> {
        let document: Value = serde_json::from_str(text)
            .map_err(|error| UserError(format!("{name} is no JSON: {error}; give what cci model ... --json wrote")))?;
        match document.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => Ok(Self { document, name: name.into() }),
            other => Err(UserError(format!(
                "{name} has schema {}, and this program reads {SCHEMA}: give what cci model ... --json wrote",
                other.unwrap_or("none")
            ))),
        }
    }

    /// Its tables, and model against measurement if it has both.
    pub(crate) fn draw(&self) -> Markup {
        let words = self.document.get("command").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // Where the program lies says nothing.
        let words: Vec<_> = words.iter().skip(1).filter_map(Value::as_str).collect();
        let validation = figure_of(&self.document);
        html! {
            p class="text" { code { "cci " (words.join(" ")) } " (" (self.name) ")" }
            @if let Some(svg) = &validation { div class="wide" { (PreEscaped(svg)) } }
            @for (name, value) in self.document.as_object().into_iter().flatten() {
                @match value {
                    Value::Array(rows) if !rows.is_empty() && rows.iter().all(Value::is_object) => {
                        (table(name, rows.iter().filter_map(Value::as_object).collect()))
                    }
                    Value::Object(row) => (table(name, vec![row])),
                    Value::String(note) if name == "note" => p class="text" { (note) },
                    _ => {}
                }
            }
        }
    }
}

fn table(name: &str, rows: Vec<&Map<String, Value>>) -> Markup {
    let mut columns: Vec<_> = rows.first().into_iter().flat_map(|row| row.keys()).collect();
    // The document has them by name; what a row is called stands first.
    columns.sort_by_key(|column| !rows.iter().any(|row| row.get(*column).is_some_and(Value::is_string)));
    html! {
        div class="wide" {
            table {
                caption { (name.replace('_', " ")) }
                tr { @for column in &columns { th { (column) } } }
                @for row in &rows {
                    tr { @for column in &columns { td { (cell(row.get(*column))) } } }
                }
            }
        }
    }
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "–".into(),
        Some(Value::String(text)) => text.clone(),
        // Three decimals are more than any measurement has.
        Some(Value::Number(number)) => {
            number.as_f64().map_or_else(|| number.to_string(), |number| ((number * 1e3).round() / 1e3).to_string())
        }
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drawn(document: &Value) -> String {
        Section::of(&document.to_string(), "a&b.json").unwrap().draw().into_string()
    }

    #[test]
    fn tables_become_tables_and_no_markup_gets_through() {
        let html = drawn(&json!({
            "schema": SCHEMA,
            "command": ["/usr/bin/cci", "model", "crossover"],
            "parameters": {"l_p_ns": 7.0},
            "crossovers": [{"from": "ring", "to": "<torus>", "nodes": 18.208_955}, {"from": "a", "to": "b", "nodes": null}],
            "note": "as \"printed\"",
        }));
        assert_eq!(html.matches("<table>").count(), 2);
        assert!(html.contains("<th>from</th><th>to</th><th>nodes</th>"), "{html}");
        assert!(html.contains("<td>18.209</td>") && html.contains("&lt;torus&gt;") && !html.contains("<torus>"));
        assert!(html.contains("a&amp;b.json") && html.contains("cci model crossover") && !html.contains("/usr/bin"));
    }

    #[test]
    fn a_validation_is_drawn() {
        let row =
            json!({ "path": "ring:4", "hops": 2, "message_bytes": 64, "measured_ns": 4200.0, "predicted_ns": 4244.0 });
        let html = drawn(&json!({ "schema": SCHEMA, "validation": [row] }));
        assert_eq!(html.matches("<svg").count(), 1);
        assert!(!drawn(&json!({ "schema": SCHEMA })).contains("<svg"));
    }

    #[test]
    fn another_document_is_refused_with_what_to_give() {
        for text in ["", "{}", "[]", "{\"schema\": \"cci-perf/2\"}"] {
            let why = Section::of(text, "old.json").unwrap_err().0;
            assert!(why.contains("old.json") && why.contains("cci model ... --json"), "{text}: {why}");
        }
    }
}
