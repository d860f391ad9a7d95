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
mod section;
mod splitc;
mod tables;

use super::Run;
use crate::finding::Finding;
use section::Found;

pub(super) use section::Section;

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
