//! The ends of all ways: the one that asks takes blocks in turn, the other one answers.

use super::end::Vis;
use super::own::Own;
use super::row::{ROWS, Row, Way};
use crate::methods::am::{self, Active};
use crate::methods::blocks::in_turn;
use cci_am_via::ViaMapping;
use cci_report::UserError;
use std::time::{Duration, Instant};

/// For each row, by its way and by its reference, the nanoseconds of a message of each block.
/// Blocks of one number are neighbours in time.
pub(super) type Samples = Vec<[Vec<f64>; 2]>;

/// All of them.
pub(super) struct Ends {
    pub(super) own: Own,
    pub(super) polled: Vis,
    pub(super) queue: Vis,
    pub(super) reception: Vis,
    pub(super) wide: Vis,
    pub(super) many: Vis,
    pub(super) active: Active<ViaMapping>,
}

impl Ends {
    /// Measures all rows for so long each, and lets the other end go.
    pub(super) fn measure(mut self, time: Duration) -> Result<Samples, UserError> {
        let samples = ROWS.iter().map(|row| self.row(row, time)).collect();
        self.own.turn_to(None)?;
        samples
    }

    fn row(&mut self, row: &Row, time: Duration) -> Result<[Vec<f64>; 2], UserError> {
        let ways = [row.way, row.reference];
        let exchanges = in_turn(&ways, time, |way, count| self.block(way, count))?;
        Ok([0, 1].map(|at| exchanges[at].iter().map(|ns| ns / ways[at].messages()).collect()))
    }

    /// So many exchanges by this way, after some that are not timed.
    fn block(&mut self, way: Way, count: u64) -> Result<Duration, UserError> {
        if !matches!(way, Way::Own | Way::Rma) {
            self.own.turn_to(Some(way))?;
            self.enter(way);
        }
        self.run(way, count.div_ceil(10))?;
        let begin = Instant::now();
        self.run(way, count)?;
        let took = begin.elapsed();
        match way {
            Way::Own | Way::Rma => {}
            Way::V3 => self.active.turn_to(Some(am::Way::Send))?,
            _ => self.vis(way).go_back()?,
        }
        Ok(took)
    }

    /// Has both ends begin with the same VI of many.
    fn enter(&mut self, way: Way) {
        if matches!(way, Way::Many | Way::OneOfMany) {
            self.many.spread(way == Way::Many);
        }
    }

    /// The VIs of a way that is one of native VI.
    fn vis(&mut self, way: Way) -> &mut Vis {
        match way {
            Way::Queue => &mut self.queue,
            Way::Reception => &mut self.reception,
            Way::Wide => &mut self.wide,
            Way::Many | Way::OneOfMany => &mut self.many,
            _ => &mut self.polled,
        }
    }

    fn run(&mut self, way: Way, count: u64) -> Result<(), UserError> {
        match way {
            Way::Own => self.own.run(count),
            Way::Rma => self.own.write(count),
            Way::V3 => self.active.short(count),
            Way::Write => self.polled.write(count),
            _ => self.vis(way).run(count),
        }
    }

    /// Answers until the other end is done.
    pub(super) fn serve(mut self) -> Result<(), UserError> {
        while let Some(way) = self.own.serve()? {
            self.enter(way);
            match way {
                Way::Own | Way::Rma => {}
                Way::V3 => drop(self.active.serve()?),
                _ => self.vis(way).serve()?,
            }
        }
        Ok(())
    }
}
