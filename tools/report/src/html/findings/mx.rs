//! Myrinet Express beside CCI's own: a figure for each experiment.

use super::experiments::{Measured, figures};
use super::section::{Found, Section};
use crate::finding::Mx;
use crate::output::mx::EXPERIMENTS;

pub(super) fn section(found: &Found<'_, Mx>) -> Section {
    let of_run = |(number, (run, of)): (usize, &(usize, &Mx))| {
        let (transport, points) = (&of.transport[..], &of.points[..]);
        figures(&Measured { anchor: "mx", number, run: *run, transport, points }, &EXPERIMENTS)
    };
    Section {
        anchor: "mx",
        heading: "Myrinet Express",
        text: "Messages of Myrinet Express, beside CCI's own messages and RMA, in turn in the same run.",
        figures: found.iter().enumerate().flat_map(of_run).collect(),
    }
}
