//! The end that measures: runs of all ways of a figure in turn.

use super::end::{End, IN_A_ROW, LONG, MIRROR, Order};
use super::loops::{Lane, Messages};
use crate::effort::{Effort, calibrate};
use crate::interrupt;
use crate::peers::{Answer, Program};
use crate::probe::Stores;
use cci_report::UserError;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What a launch has measured of one figure: nanoseconds of each run, by each way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) experiment: String,
    /// Its place on the abscissa.
    pub(super) x: u64,
    pub(super) ways: Vec<(String, Vec<f64>)>,
}

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    OneWay,
    PingPong,
    Check,
    Dma,
}

impl Test {
    fn name(self) -> &'static str {
        match self {
            Self::OneWay => "oneway",
            Self::PingPong => "pingpong",
            Self::Check => "check",
            Self::Dma => "dma",
        }
    }
}

/// How it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Window {
        is_aligned: bool,
        flushes: bool,
        drives: bool,
    },
    Bare,
    Check,
    Load,
    Dma,
    /// As many at a time as a queue has.
    Rma,
    /// One at a time.
    RmaAlone,
    /// The program with this number.
    Program(usize),
}

const ALIGNED: Way = Way::Window { is_aligned: true, flushes: false, drives: false };
const UNALIGNED: Way = Way::Window { is_aligned: false, flushes: false, drives: false };
const FLUSHED: Way = Way::Window { is_aligned: true, flushes: true, drives: false };
/// For mirror windows: who waits does so in the library.
const LIBRARY: Way = Way::Window { is_aligned: true, flushes: true, drives: true };

/// Another library, beside which windows stand.
pub(super) struct Other {
    pub(super) name: &'static str,
    /// What it tells of itself.
    pub(super) told: String,
    pub(super) program: Program,
}

/// The end.
pub(super) struct Client<'a> {
    pub(super) end: End,
    pub(super) bare: Stores<'a>,
    /// With one or more, windows stand beside them alone.
    pub(super) programs: Vec<Other>,
    /// The ends are in name spaces of their own: ping-pongs of flushed windows alone.
    pub(super) is_apart: bool,
    pub(super) sizes: &'a [u64],
    /// Runs of each figure, and how long each lasts.
    pub(super) runs: u32,
    pub(super) run: Duration,
    /// Of all blocks.
    pub(super) number: u64,
}

impl Client<'_> {
    /// Measures all figures, and lets the server go.
    pub(super) fn measure(mut self) -> Result<Vec<Group>, UserError> {
        let mut groups = Vec::new();
        if self.is_apart {
            for size in self.sizes {
                groups.push(self.group(Test::PingPong, *size, &[LIBRARY])?);
            }
            self.end.order(Order::End)?;
            return Ok(groups);
        }
        let ways: Vec<_> = match self.programs.len() {
            0 if self.end.kind() == MIRROR => vec![ALIGNED, UNALIGNED, FLUSHED, LIBRARY, Way::Bare],
            0 => vec![ALIGNED, UNALIGNED, FLUSHED, Way::Bare],
            count => [ALIGNED].into_iter().chain((0..count).map(Way::Program)).collect(),
        };
        for test in [Test::OneWay, Test::PingPong] {
            for size in self.sizes {
                groups.push(self.group(test, *size, &ways)?);
            }
        }
        if self.programs.is_empty() {
            groups.push(self.group(Test::Check, 1, &[Way::Check, Way::Load])?);
            groups.push(self.group(Test::Dma, LONG as u64, &[Way::Dma, Way::Rma, Way::RmaAlone])?);
        }
        self.end.order(Order::End)?;
        Ok(groups)
    }

    fn name(&self, way: Way) -> String {
        match way {
            ALIGNED if !self.programs.is_empty() => "windows",
            ALIGNED => "aligned",
            UNALIGNED => "unaligned",
            LIBRARY => "library",
            Way::Window { .. } => "flushed",
            Way::Bare => "bare",
            Way::Check => "check",
            Way::Load => "load",
            Way::Dma => "dma",
            Way::Rma => "rma",
            Way::RmaAlone => "alone",
            Way::Program(at) => self.programs[at].name,
        }
        .into()
    }

    fn group(&mut self, test: Test, x: u64, ways: &[Way]) -> Result<Group, UserError> {
        let mut counts = Vec::new();
        for way in ways {
            counts.push(self.count(test, x, *way)?);
        }
        let mut runs = vec![Vec::new(); ways.len()];
        for run in 0..self.runs {
            if run > 0 && interrupt::is_asked() {
                break;
            }
            for ((way, count), runs) in ways.iter().zip(&counts).zip(&mut runs) {
                let took = self.block(test, x, *way, *count)?;
                #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
                runs.push(took.as_nanos() as f64 / *count as f64 / if test == Test::PingPong { 2.0 } else { 1.0 });
            }
        }
        let ways = ways.iter().map(|way| self.name(*way)).zip(runs).collect();
        Ok(Group { experiment: test.name().into(), x, ways })
    }

    /// How many exchanges make a run.
    fn count(&mut self, test: Test, x: u64, way: Way) -> Result<u64, UserError> {
        let effort = Effort { time: self.run, count: None, blocks: None, launches: 1, bound: 0.0 };
        let count = calibrate(&effort, |count| self.block(test, x, way, count))?;
        let took = self.block(test, x, way, count)?.as_nanos().max(1);
        let count = u128::from(count) * self.run.as_nanos() / took;
        let count = u64::try_from(count).unwrap_or(u64::MAX).clamp(1, 1 << 30);
        Ok(if matches!(way, Way::Dma | Way::Rma) { count.next_multiple_of(IN_A_ROW) } else { count })
    }

    /// So many exchanges, after some that are not timed.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    fn block(&mut self, test: Test, x: u64, way: Way, count: u64) -> Result<Duration, UserError> {
        self.number += 1;
        let is_apart = self.is_apart;
        let messages = |is_aligned, flushes, drives| Messages {
            bytes: usize::try_from(x).unwrap_or_default(),
            is_aligned,
            flushes,
            drives,
            stays: is_apart,
            stream: (test == Test::OneWay).then_some(self.number),
            warm: count.div_ceil(10),
            count,
        };
        match way {
            Way::Window { is_aligned, flushes, drives } => {
                let messages = messages(is_aligned, flushes, drives);
                messages.reset(&self.end.windows);
                self.end.order(Order::Windows(messages))?;
                Ok(lead(&messages, &self.end.windows))
            }
            Way::Bare => {
                let messages = messages(true, false, false);
                messages.reset(&self.bare);
                self.end.order(Order::Bare(messages))?;
                Ok(lead(&messages, &self.bare))
            }
            Way::Check => {
                let sequence = self.end.windows.far.sequence();
                let begin = Instant::now();
                for _ in 0..count {
                    let _ = black_box(black_box(&sequence).check());
                }
                Ok(begin.elapsed())
            }
            Way::Load => {
                let begin = Instant::now();
                for _ in 0..count {
                    black_box(Lane::load::<8>(black_box(&self.bare), 0));
                }
                Ok(begin.elapsed())
            }
            Way::Dma => {
                self.end.order(Order::Rest)?;
                self.end.transfer()?;
                let begin = Instant::now();
                for _ in 0..count.div_ceil(IN_A_ROW) {
                    self.end.transfer()?;
                }
                // Of as many as were asked for.
                let rounded = count.next_multiple_of(IN_A_ROW).max(1);
                Ok(begin.elapsed().mul_f64(count as f64 / rounded as f64))
            }
            Way::Rma | Way::RmaAlone => {
                let at_once = if way == Way::Rma { IN_A_ROW } else { 1 };
                self.end.order(Order::Rma)?;
                self.end.write(count.div_ceil(10), at_once)?;
                let begin = Instant::now();
                self.end.write(count, at_once)?;
                Ok(begin.elapsed())
            }
            Way::Program(at) => {
                let what = if test == Test::OneWay { "oneway" } else { "pingpong" };
                match self.programs[at].program.block(what, x, count, false)? {
                    Answer::Took(took) => Ok(took),
                    Answer::Cannot(why) => Err(UserError(why)),
                }
            }
        }
    }
}

/// The client's part of a block.
fn lead(messages: &Messages, lane: &impl Lane) -> Duration {
    messages.run(lane, true, false);
    let begin = Instant::now();
    messages.run(lane, true, true);
    begin.elapsed()
}
