//! Accesses of the global address space of Split-C.

use super::section::{Found, Section};
use crate::finding::SplitC;
use crate::html::curves::transport;
use crate::html::figure::{Figure, FigureTable};
use crate::html::unit;
use crate::output::splitc::described;

pub(super) fn section(found: &Found<'_, SplitC>) -> Section {
    Section {
        anchor: "splitc",
        heading: "Split-C",
        text: "Accesses of the global address space, as a translated program makes them.",
        figures: found.iter().flat_map(|(run, found)| [pairs(*run, found), words(*run, found)]).collect(),
    }
}

fn figure(run: usize, title: String, table: &FigureTable) -> Figure {
    Figure {
        picture: table.draw(&title),
        title,
        note: String::new(),
        legend: Vec::new(),
        table: FigureTable::default(),
        runs: vec![run],
        is_wide: true,
    }
}

fn pairs(run: usize, found: &SplitC) -> Figure {
    let rows = found.pairs.iter().map(|pair| {
        let (what, stands_on) = described(&pair.name);
        vec![
            what.into(),
            stands_on.into(),
            unit::time(pair.ns),
            unit::time(pair.bare_ns),
            unit::time(pair.difference_ns),
            format!("{:.1}", pair.difference_ns / found.cycle_ns.max(f64::MIN_POSITIVE)),
            format!("{:.3}", pair.ratio),
        ]
    });
    let head = vec!["operation", "stands on", "time", "of that", "more", "cycles", "ratio"];
    let table = FigureTable { head, rows: rows.collect(), words: 2 };
    figure(run, format!("{}: beside what it stands on", transport(&found.transport)), &table)
}

fn words(run: usize, found: &SplitC) -> Figure {
    let row = |word: &crate::finding::SplitCWord| {
        vec![word.mapping.clone(), word.operation.clone(), word.of.clone(), unit::time(word.ns)]
    };
    let head = vec!["mapping", "operation", "type", "time"];
    let table = FigureTable { head, rows: found.words.iter().map(row).collect(), words: 3 };
    figure(run, format!("{}: operations on a word", transport(&found.transport)), &table)
}
