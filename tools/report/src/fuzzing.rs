//! The readers of documents and of sizes, for the fuzz targets. No part of the interface.

use crate::comparison::{Bar, Comparison, Side};
use crate::output::sheet::Shape;
use crate::output::{csv, findings, plot, table};
use crate::row::Document;
use crate::{html, sizes};

/// A document of a measurement, as all outputs show it and as a comparison takes it.
pub fn document(bytes: &[u8]) {
    let Ok(document) = Document::parse(&String::from_utf8_lossy(bytes), "a.json") else { return };
    let _ = (csv::text(&document), table::table(&document.rows), table::in_short(&document.rows));
    document.findings.iter().for_each(|finding| drop(findings::text(finding)));
    let _ = html::page_of(&document);
    let _ = plot::svg(&document, Shape::Wide);
    let (mut before, mut after) = (Side::default(), Side::default());
    if before.take(&document, "a.json").is_ok()
        && after.take(&document, "b.json").is_ok()
        && let Ok(comparison) = Comparison::new(&before, &after, Bar { smallest: 0.03, chance: 0.01, between: None })
    {
        let _ = (comparison.text(), comparison.is_slower());
    }
}

/// Sizes, counts, keys, times and shares, as options have them.
pub fn words(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = (sizes::parse_sizes(&text), sizes::parse_counts(&text), sizes::parse_key(&text));
    let _ = (sizes::parse_time(&text), sizes::parse_percent(&text));
    let _ = sizes::parse_size(&text).map(sizes::show_size);
}
