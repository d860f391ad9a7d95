//! The cells that one endpoint takes of its runs.

use super::{QUARANTINE, Run};
use crate::{Connection, globals};
use std::collections::VecDeque;

/// The cells of one endpoint.
#[derive(Default)]
pub(in crate::endpoint) struct Cells {
    runs: Vec<&'static Run>,
    /// Cells of the last run that this endpoint has not used yet.
    fresh: &'static [Connection],
    /// Freed, in this order.
    free: VecDeque<&'static Connection>,
    /// Taken and not given back.
    used: usize,
}

impl Cells {
    /// A cell: as new, or as it was when it was given back, here or by an endpoint that is gone.
    ///
    /// # Errors
    ///
    /// No memory.
    pub(in crate::endpoint) fn take(&mut self) -> rustix::io::Result<&'static Connection> {
        let rested = if self.free.len() > QUARANTINE { self.free.pop_front() } else { None };
        let cell = rested.map_or_else(|| self.take_fresh(), Ok)?;
        self.used += 1;
        Ok(cell)
    }

    fn take_fresh(&mut self) -> rustix::io::Result<&'static Connection> {
        if self.fresh.is_empty() {
            let (_, globals) = globals()?;
            let run = globals.connections.take();
            self.runs.push(run);
            self.fresh = &run.0;
        }
        let (cell, rest) = self.fresh.split_first().ok_or(rustix::io::Errno::NOMEM)?;
        self.fresh = rest;
        Ok(cell)
    }

    /// Gives a cell back that was taken here.
    pub(in crate::endpoint) fn give(&mut self, cell: &'static Connection) {
        self.used -= 1;
        self.free.push_back(cell);
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        // A run with a cell that was not given back is nobody else's ever.
        if self.used == 0
            && let Ok((_, globals)) = globals()
        {
            self.runs.drain(..).for_each(|run| globals.connections.give(run));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RUN;
    use super::{Cells, QUARANTINE, Run};
    use crate::Connection;
    use std::collections::BTreeSet;

    /// The pair of lines in which the first or the last byte of a cell is.
    fn lines(cell: &Connection) -> [usize; 2] {
        let first = std::ptr::from_ref(cell).addr();
        [first, first + size_of::<Connection>() - 1].map(|byte| byte / align_of::<Run>())
    }

    #[test]
    fn two_endpoints_have_no_line_in_common() {
        let mut both = [Cells::default(), Cells::default()];
        let mut seen = [BTreeSet::new(), BTreeSet::new()];
        for _ in 0..3 * RUN {
            for (cells, seen) in both.iter_mut().zip(&mut seen) {
                seen.extend(lines(cells.take().expect("memory")));
            }
        }
        assert!(seen[0].is_disjoint(&seen[1]));
    }

    #[test]
    fn a_cell_rests_before_it_is_used_again_and_goes_to_the_next_endpoint() {
        let mut cells = Cells::default();
        let first: *const Connection = cells.take().expect("memory");
        let mut turn = || {
            let cell = cells.take().expect("memory");
            cells.give(cell);
            std::ptr::from_ref(cell)
        };
        let seen: BTreeSet<_> = (0..10 * QUARANTINE).map(|_| turn()).collect();
        assert!(!seen.contains(&first), "it is in use");
        assert!(seen.len() > QUARANTINE && seen.len() <= QUARANTINE + RUN, "{} cells for one in use", seen.len());
    }

    #[test]
    fn the_runs_of_an_endpoint_that_is_gone_are_used_again() {
        let mut seen = BTreeSet::new();
        for _ in 0..10 * QUARANTINE {
            let mut cells = Cells::default();
            let cell = cells.take().expect("memory");
            seen.insert(std::ptr::from_ref(cell));
            cells.give(cell);
        }
        assert!(seen.len() <= 4 * QUARANTINE, "{} cells for one in use", seen.len());
    }
}
