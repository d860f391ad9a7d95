//! A figure: a chart or bars, what they show, their numbers as a table, and the runs that they come
//! from.

use super::chart::swatch;
use super::library::Look;
use super::runs::Runs;
use maud::{Markup, html};

/// A figure.
pub(super) struct Figure {
    pub(super) title: String,
    /// What its axes and marks mean, where that is not obvious.
    pub(super) note: String,
    pub(super) picture: Markup,
    pub(super) legend: Vec<Entry>,
    pub(super) table: FigureTable,
    /// The numbers of the runs, from 0.
    pub(super) runs: Vec<usize>,
    /// It is a table, and takes the width of the page.
    pub(super) is_wide: bool,
}

/// A line of a legend.
pub(super) struct Entry {
    pub(super) look: Look,
    pub(super) name: String,
    pub(super) detail: String,
}

/// A table.
#[derive(Default)]
pub(super) struct FigureTable {
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// Columns that hold words and stand to the left.
    pub(super) words: usize,
}

impl FigureTable {
    /// The table, in a frame that scrolls by itself where it is wider than the page.
    pub(super) fn draw(&self, about: &str) -> Markup {
        let class = |column: usize| if column < self.words { "word" } else { "number" };
        html! {
            div class="scroll" role="region" aria-label=(about) tabindex="0" {
                table {
                    thead { tr { @for (column, head) in self.head.iter().enumerate() { th scope="col" class=(class(column)) { (head) } } } }
                    tbody {
                        @for row in &self.rows {
                            tr { @for (column, cell) in row.iter().enumerate() { td class=(class(column)) { (cell) } } }
                        }
                    }
                }
            }
        }
    }
}

impl Figure {
    pub(super) fn draw(&self, runs: &Runs<'_>) -> Markup {
        html! {
            figure class=[self.is_wide.then_some("wide")] {
                h3 { (self.title) }
                (self.picture)
                @if !self.legend.is_empty() {
                    ul class="legend" {
                        @for entry in &self.legend {
                            li { (swatch(&entry.look)) " " (entry.name) @if !entry.detail.is_empty() { " " small { (entry.detail) } } }
                        }
                    }
                }
                figcaption {
                    @if !self.note.is_empty() { p { (self.note) } }
                    @if !self.table.rows.is_empty() {
                        details { summary { "The numbers" } (self.table.draw(&self.title)) }
                    }
                    (runs.origin(&self.runs))
                }
            }
        }
    }
}
