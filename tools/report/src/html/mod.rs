//! Runs as one HTML page that needs nothing else.

mod chart;
mod curves;
mod figure;
mod findings;
mod headline;
mod library;
mod page;
mod run;
mod runs;
#[cfg(test)]
mod tests;
mod unit;

use crate::row::Document;

pub use page::page_beside;
pub use run::Run;

/// The page of a run that has just ended.
pub fn page_of(document: &Document) -> String {
    page::page(&[Run { document: document.clone(), source: String::new() }], &[])
}
