//! Windows of SCI beside bare memory: a figure for each experiment, and the rows with bars.

use super::experiments::{Measured, figures};
use super::section::{Found, Section};
use super::tables;
use crate::finding::Sci;
use crate::output::sci::EXPERIMENTS;

pub(super) fn section(found: &Found<'_, Sci>) -> Section {
    let of_run = |(number, (run, of)): (usize, &(usize, &Sci))| {
        let (transport, points) = (&of.transport[..], &of.points[..]);
        figures(&Measured { anchor: "sci", number, run: *run, transport, points }, &EXPERIMENTS)
    };
    let mut all: Vec<_> = found.iter().enumerate().flat_map(of_run).collect();
    all.extend(tables::compared("Windows", found, |sci| (&sci.transport, &sci.rows)));
    Section {
        anchor: "sci",
        heading: "SCI",
        text: "Windows of SCI beside bare memory, in turn in the same run: minima of the runs. The spread is how far the slowest run lies above.",
        figures: all,
    }
}
