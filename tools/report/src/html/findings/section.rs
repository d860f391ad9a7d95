//! What each section is made of and from.

use crate::html::figure::Figure;

/// A section of the page.
pub(in crate::html) struct Section {
    pub(in crate::html) anchor: &'static str,
    pub(in crate::html) heading: &'static str,
    /// What is to be known for reading it.
    pub(in crate::html) text: &'static str,
    pub(in crate::html) figures: Vec<Figure>,
}

/// Findings of one kind with the numbers of their runs.
pub(super) type Found<'a, T> = Vec<(usize, &'a T)>;

/// The numbers of the runs, each once.
pub(super) fn origins<T>(found: &Found<'_, T>) -> Vec<usize> {
    let mut runs: Vec<_> = found.iter().map(|(run, _)| *run).collect();
    runs.dedup();
    runs
}
