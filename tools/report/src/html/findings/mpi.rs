//! MPI beside windows of SCI: a figure for each experiment.

use super::experiments::{Measured, figures};
use super::section::{Found, Section};
use crate::finding::Mpi;
use crate::output::mpi::EXPERIMENTS;

pub(super) fn section(found: &Found<'_, Mpi>) -> Section {
    let of_run = |(number, (run, of)): (usize, &(usize, &Mpi))| {
        let (transport, points) = (&of.transport[..], &of.points[..]);
        figures(&Measured { anchor: "mpi", number, run: *run, transport, points }, &EXPERIMENTS)
    };
    Section {
        anchor: "mpi",
        heading: "MPI",
        text: "MPI beside windows of SCI, in turn in the same run: minima of the runs. The spread is how far the slowest run lies above.",
        figures: found.iter().enumerate().flat_map(of_run).collect(),
    }
}
