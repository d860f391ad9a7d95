//! Portals beside CCI's own: a figure for each experiment.

use super::experiments::{Measured, figures};
use super::section::{Found, Section};
use crate::finding::Portals;
use crate::output::portals::EXPERIMENTS;

pub(super) fn section(found: &Found<'_, Portals>) -> Section {
    let of_run = |(number, (run, of)): (usize, &(usize, &Portals))| {
        let (transport, points) = (&of.transport[..], &of.points[..]);
        figures(&Measured { anchor: "portals", number, run: *run, transport, points }, &EXPERIMENTS)
    };
    Section {
        anchor: "portals",
        heading: "Portals",
        text: "Puts of Portals 3.3, beside CCI's own messages and RMA, in turn in the same run.",
        figures: found.iter().enumerate().flat_map(of_run).collect(),
    }
}
