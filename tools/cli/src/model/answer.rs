//! What a question gives: text on the terminal, and files.

use super::system::ParametersJson;
use cci_model::Parameters;
use cci_report::output::{Files, table};
use cci_report::{UserError, while_doing};
use serde_json::{Map, Value};
use std::io::{Write, stderr, stdout};

/// What documents of `cci model` are called; another shape gets another number.
pub(crate) const SCHEMA: &str = "cci-model/1";

/// A cell of a table.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Text(String),
    /// A time; shown with a unit, written in ns.
    Time(f64),
    /// A number; shown with this many decimals, written in full.
    Number(f64, usize),
    /// What there is not.
    Nothing,
}

impl Cell {
    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            // In whole units the differences that matter would be lost.
            Self::Time(ns) if *ns < 1e5 => format!("{ns:.1} ns"),
            Self::Time(ns) => table::time(*ns),
            Self::Number(value, decimals) => format!("{value:.decimals$}"),
            Self::Nothing => "-".into(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => text.clone().into(),
            Self::Time(value) | Self::Number(value, _) => (*value).into(),
            Self::Nothing => Value::Null,
        }
    }

    fn csv(&self) -> String {
        match self {
            // Topologies have commas in their names.
            Self::Text(text) if text.contains([',', '"']) => format!("\"{}\"", text.replace('"', "\"\"")),
            Self::Text(text) => text.clone(),
            Self::Time(value) | Self::Number(value, _) => value.to_string(),
            Self::Nothing => String::new(),
        }
    }
}

/// Rows under names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// As shown, and as written to files, where the unit is part of the name.
    pub(crate) columns: Vec<(&'static str, &'static str)>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, &'static str)]) -> Self {
        Self { columns: columns.to_vec(), rows: vec![] }
    }

    pub(crate) fn text(&self) -> String {
        let head = self.columns.iter().map(|(shown, _)| (*shown).to_owned()).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::shown).collect());
        let left: Vec<_> = (0..self.columns.len())
            .filter(|column| self.rows.iter().any(|row| matches!(row.get(*column), Some(Cell::Text(_)))))
            .collect();
        table::align(&std::iter::once(head).chain(rows).collect::<Vec<_>>(), &left)
    }

    fn json(&self) -> Value {
        let row = |row: &Vec<Cell>| {
            let fields = self.columns.iter().zip(row).map(|((_, name), cell)| ((*name).to_owned(), cell.json()));
            Value::Object(fields.collect())
        };
        self.rows.iter().map(row).collect()
    }

    fn csv(&self) -> String {
        let names: Vec<_> = self.columns.iter().map(|(_, name)| *name).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::csv).collect::<Vec<_>>().join(","));
        std::iter::once(names.join(",")).chain(rows).map(|line| line + "\n").collect()
    }
}

/// An answer: tables with words around them.
#[derive(Debug)]
pub(crate) struct Answer {
    text: String,
    fields: Map<String, Value>,
    csv: Option<String>,
}

impl Answer {
    /// An answer for these parameters.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let mut answer = Self::without_parameters();
        answer.field("parameters", serde_json::to_value(ParametersJson::from(parameters)).unwrap_or_default());
        answer
    }

    /// An answer that determines no parameters.
    pub(crate) fn without_parameters() -> Self {
        let mut fields = Map::new();
        fields.insert("schema".into(), SCHEMA.into());
        fields.insert("command".into(), std::env::args().collect::<Vec<_>>().into());
        Self { text: String::new(), fields, csv: None }
    }

    /// A line or more of text.
    pub(crate) fn say(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// A table, whose rows are `name` in the document. The first one is the CSV.
    pub(crate) fn table(&mut self, name: &str, table: &Table) {
        self.aside(name, table);
        self.csv.get_or_insert_with(|| table.csv());
    }

    /// A table that is never the CSV.
    pub(crate) fn aside(&mut self, name: &str, table: &Table) {
        self.text += &table.text();
        self.fields.insert(name.into(), table.json());
    }

    /// A field of the document alone.
    pub(crate) fn field(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.into(), value.into());
    }

    /// Tells it: on standard output, or beside a file that goes there on standard error.
    pub(crate) fn tell(self, files: &mut Files, plot: Option<String>) -> Result<(), UserError> {
        let told = if files.take_the_terminal() {
            stderr().write_all(self.text.as_bytes())
        } else {
            stdout().write_all(self.text.as_bytes())
        };
        told.map_err(while_doing("cannot write the answer"))?;
        if let Some(sink) = &mut files.json {
            let text = serde_json::to_string_pretty(&self.fields).map_err(while_doing("cannot write JSON"))?;
            sink.write(&(text + "\n"))?;
        }
        if let (Some(sink), Some(text)) = (&mut files.csv, &self.csv) {
            sink.write(text)?;
        }
        if let (Some(sink), Some(text)) = (&mut files.plot, &plot) {
            sink.write(text)?;
        }
        Ok(())
    }
}
