//! The end that measures: blocks by Myrinet Express and by CCI's own in turn.

use super::shots::{DEPTHS, Load, Shot, shots};
use super::side::{Side, Turn};
use crate::measure::usage::Usage;
use crate::methods::am::{Own, Way};
use crate::methods::blocks::{Sample, in_turn};
use crate::methods::middle;
use crate::methods::over::Over;
use crate::peers::Program;
use cci_report::UserError;
use std::time::{Duration, Instant};

/// By what the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Mx {
        is_shared: bool,
    },
    Own(Way),
    /// CCI over MX.
    Over {
        is_shared: bool,
    },
    /// Not at all: the other end sleeps while a program of another library runs.
    Program,
}

impl At {
    fn name(self) -> &'static str {
        match self {
            Self::Mx { .. } => "mx",
            Self::Own(_) | Self::Over { .. } => "cci",
            Self::Program => "",
        }
    }
}

/// Another library.
pub(super) struct Other {
    pub(super) name: &'static str,
    /// What it tells of itself.
    pub(super) told: String,
    pub(super) program: Program,
}

/// The end.
pub(super) struct Client {
    pub(super) side: Side,
    own: Own,
    pub(super) over: Option<Over>,
    pub(super) others: Vec<Other>,
    at: At,
}

impl Client {
    pub(super) fn new(side: Side, own: Own, over: Option<Over>, others: Vec<Other>) -> Self {
        Self { side, own, over, others, at: At::Mx { is_shared: false } }
    }

    /// Measures all figures for so long each, and lets the server go.
    pub(super) fn measure(mut self, time: Duration) -> Result<Vec<Sample>, UserError> {
        let mut samples = Vec::new();
        // First: what was freed would be used again.
        let depth = DEPTHS[DEPTHS.len() - 1];
        let value = self.memory(depth)?;
        samples.push(Sample::new("memory", depth, "mx", value));
        for shot in shots() {
            self.shot(&shot, time, &mut samples)?;
        }
        self.measure_beside(time, &mut samples)?;
        self.turn_to(At::Mx { is_shared: false })?;
        self.side.turn_to(Turn::End)?;
        Ok(samples)
    }

    /// Bytes of this process's memory that so many posted receives take.
    fn memory(&mut self, count: u64) -> Result<f64, UserError> {
        // The first reading takes memory itself.
        Usage::now()?;
        let before = Usage::now()?;
        self.side.deepen(count)?;
        let taken = Usage::now()?.since(before).own;
        self.side.deepen(0)?;
        Ok(taken)
    }

    fn shot(&mut self, shot: &Shot, time: Duration, samples: &mut Vec<Sample>) -> Result<(), UserError> {
        let own = shot.own.map(|own| At::Own(own.ways()[1]));
        let first = At::Mx { is_shared: matches!(shot.load, Load::Shared(_)) };
        let ways: Vec<_> = [first].into_iter().chain(own).collect();
        let times = in_turn(&ways, time, |way, count| self.block(shot, way, count))?;
        for (way, times) in ways.iter().zip(times) {
            let value = middle(times.into_iter().map(|ns| shot.value(ns)).collect());
            samples.push(Sample::new(shot.experiment, shot.x, way.name(), value));
        }
        Ok(())
    }

    /// So many exchanges by this way, after some that are not timed.
    fn block(&mut self, shot: &Shot, at: At, count: u64) -> Result<Duration, UserError> {
        self.turn_to(at)?;
        self.run(shot, at, count.div_ceil(10))?;
        let begin = Instant::now();
        self.run(shot, at, count)?;
        Ok(begin.elapsed())
    }

    fn run(&mut self, shot: &Shot, at: At, count: u64) -> Result<(), UserError> {
        match (at, &shot.own) {
            (At::Own(way), Some(own)) => self.own.run(own, way, count),
            (At::Own(_), None) | (At::Over { .. } | At::Program, _) => Ok(()),
            (At::Mx { .. }, _) => self.side.run(shot.load, count),
        }
    }

    pub(super) fn turn_to(&mut self, next: At) -> Result<(), UserError> {
        if self.at == next {
            return Ok(());
        }
        if let At::Own(now) = self.at {
            let next = if let At::Own(next) = next { Some(next) } else { None };
            self.own.turn_to(now, next)?;
            // Where it goes from the end of CCI's own.
            self.at = next.map_or(At::Mx { is_shared: false }, At::Own);
        }
        if let At::Over { .. } = self.at {
            let is_shared = matches!(next, At::Over { is_shared: true });
            self.end_over()?.share(is_shared)?;
            if !matches!(next, At::Over { .. }) {
                self.end_over()?.leave()?;
                self.at = At::Mx { is_shared: false };
            }
        }
        if matches!(self.at, At::Mx { .. } | At::Program) && self.at != next {
            self.side.turn_to(match next {
                At::Mx { is_shared: false } => Turn::Mx,
                At::Mx { is_shared: true } => Turn::Shared,
                At::Own(way) => Turn::Own(way as u8),
                At::Over { .. } => Turn::Over,
                At::Program => Turn::Sleep,
            })?;
            if let At::Over { is_shared } = next {
                self.end_over()?.share(is_shared)?;
            }
        }
        self.at = next;
        Ok(())
    }
}
