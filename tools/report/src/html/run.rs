//! What the page is about.

use crate::row::Document;

/// A run of the page.
pub struct Run {
    /// What it gave.
    pub document: Document,
    /// The file that it was read from; empty when it was read from none.
    pub source: String,
}
