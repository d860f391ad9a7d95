//! Results that are no rows over size: a section for each kind that is there.

mod am;
mod breakdown;
mod experiments;
mod jitter;
mod logp;
mod memory;
mod memory_curves;
mod mpi;
mod mx;
mod portals;
mod scaling;
mod sci;
mod splitc;
mod tables;

use super::Run;
use super::figure::Figure;
use crate::finding::Finding;

/// A section of the page.
pub(super) struct Section {
    pub(super) anchor: &'static str,
    pub(super) heading: &'static str,
    /// What is to be known for reading it.
    pub(super) text: &'static str,
    pub(super) figures: Vec<Figure>,
}

/// Findings of one kind with the numbers of their runs.
type Found<'a, T> = Vec<(usize, &'a T)>;

/// The sections that there are, in the order of the page.
pub(super) fn sections(runs: &[Run]) -> Vec<Section> {
    macro_rules! found {
        ($kind:ident) => {
            found(runs, |finding| match finding {
                Finding::$kind(found) => Some(found),
                _ => None,
            })
        };
    }
    let sections = [
        logp::section(&found!(Logp)),
        breakdown::section(&found!(Breakdown)),
        memory::section(&found!(Memory)),
        memory_curves::section(&found!(MemoryCurves)),
        jitter::section(&found!(Jitter)),
        scaling::threads(&found!(Threads)),
        scaling::overlap(&found!(Overlap)),
        am::section(&found!(Am)),
        tables::mappings(&found!(Mappings)),
        splitc::section(&found!(SplitC)),
        tables::via(&found!(Via)),
        portals::section(&found!(Portals)),
        mx::section(&found!(Mx)),
        sci::section(&found!(Sci)),
        mpi::section(&found!(Mpi)),
        tables::gups(&found!(Gups)),
        tables::idle(&found!(Idle)),
    ];
    sections.into_iter().filter(|section| !section.figures.is_empty()).collect()
}

fn found<'a, T>(runs: &'a [Run], pick: impl Fn(&'a Finding) -> Option<&'a T>) -> Found<'a, T> {
    let of = |(number, run): (usize, &'a Run)| {
        run.document.findings.iter().filter_map(&pick).map(move |found| (number, found)).collect::<Vec<_>>()
    };
    runs.iter().enumerate().flat_map(of).collect()
}

/// The numbers of the runs, each once.
fn origins<T>(found: &Found<'_, T>) -> Vec<usize> {
    let mut runs: Vec<_> = found.iter().map(|(run, _)| *run).collect();
    runs.dedup();
    runs
}
