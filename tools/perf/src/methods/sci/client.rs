//! The end that measures: runs of all ways of a figure in turn.

use super::end::{End, IN_A_ROW, LONG, MIRROR, Order};
use super::loops::{Lane, MIDDLE, Messages, SMALL};
use super::mirrors::Brought;
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
    /// Of 8 bytes there and back, of a word until it is confirmed, and of all bytes of a window:
    /// over mirror windows of so many bytes.
    Turn,
    Confirm,
    Change,
}

impl Test {
    fn name(self) -> &'static str {
        match self {
            Self::OneWay => "oneway",
            Self::PingPong => "pingpong",
            Self::Check => "check",
            Self::Dma => "dma",
            Self::Turn => "turn",
            Self::Confirm => "confirm",
            Self::Change => "change",
        }
    }

    /// An exchange is two messages.
    fn is_there_and_back(self) -> bool {
        matches!(self, Self::PingPong | Self::Turn)
    }
}

/// The windows of so many bytes.
fn windows_of(len: u64) -> usize {
    1 + usize::from(len != SMALL as u64)
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
    /// RMA writes in place of windows.
    Written,
    Confirmed,
    /// Messages of CCI in place of windows, and their answers.
    Answered,
    Changed(Brought),
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
            if self.end.kind() == MIRROR {
                self.measure_mirrors(&mut groups)?;
            }
        }
        self.end.order(Order::End)?;
        Ok(groups)
    }

    /// What mirror windows alone have, by the bytes of a window.
    fn measure_mirrors(&mut self, groups: &mut Vec<Group>) -> Result<(), UserError> {
        let lens = [SMALL, MIDDLE].map(|len| len as u64);
        for len in lens {
            groups.push(self.group(Test::Turn, len, &[LIBRARY, FLUSHED, ALIGNED, Way::Written])?);
        }
        for len in lens {
            groups.push(self.group(Test::Confirm, len, &[Way::Confirmed, Way::RmaAlone, Way::Answered])?);
        }
        let changed = [Brought::Flushed, Brought::Confirmed].map(Way::Changed);
        groups.push(self.group(Test::Change, lens[1], &[changed[0], changed[1], Way::RmaAlone])?);
        self.watched(groups)
    }

    /// The median and the 99th percentile of messages to an owner that makes no call. A launch has
    /// one of each.
    fn watched(&self, groups: &mut Vec<Group>) -> Result<(), UserError> {
        // Ten times as long as another figure: a message takes a millisecond.
        let time = self.run * self.runs * 10;
        let count = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut found = Vec::new();
        for (way, is_free) in [("free", true), ("shared", false)] {
            found.push((way, self.end.send_watched(count, is_free, &self.bare)?));
        }
        for (at, percent) in [50, 99].into_iter().enumerate() {
            let ways = found.iter().map(|(way, figures)| ((*way).into(), vec![figures[at]])).collect();
            groups.push(Group { experiment: "watched".into(), x: percent, ways });
        }
        Ok(())
    }

    fn name(&self, test: Test, way: Way) -> String {
        match way {
            ALIGNED if !self.programs.is_empty() => "windows",
            ALIGNED if test == Test::Turn => "unflushed",
            ALIGNED => "aligned",
            UNALIGNED => "unaligned",
            LIBRARY => "library",
            Way::Window { .. } => "flushed",
            Way::Bare => "bare",
            Way::Check => "check",
            Way::Load => "load",
            Way::Dma => "dma",
            Way::RmaAlone if test == Test::Dma => "alone",
            Way::Rma | Way::RmaAlone | Way::Written => "rma",
            Way::Confirmed => "window",
            Way::Answered => "message",
            Way::Changed(Brought::Flushed) => "flushed",
            Way::Changed(Brought::Confirmed) => "confirmed",
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
                runs.push(took.as_nanos() as f64 / *count as f64 / if test.is_there_and_back() { 2.0 } else { 1.0 });
            }
        }
        let ways = ways.iter().map(|way| self.name(test, *way)).zip(runs).collect();
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
        let is_turn = test == Test::Turn;
        let messages = |is_aligned, flushes, drives| Messages {
            bytes: if is_turn { 8 } else { usize::try_from(x).unwrap_or_default() },
            is_aligned,
            flushes,
            drives,
            windows: if is_turn { windows_of(x) } else { 0 },
            stays: is_turn || self.is_apart,
            stream: (test == Test::OneWay).then_some(self.number),
            warm: count.div_ceil(10),
            count,
        };
        let end = &self.end;
        match way {
            Way::Window { is_aligned, flushes, drives } => {
                let messages = messages(is_aligned, flushes, drives);
                let windows = &end.windows[messages.windows];
                lead(end, &messages, windows, Order::Windows)
            }
            Way::Bare => lead(end, &messages(true, false, false), &self.bare, Order::Bare),
            Way::Written => lead(end, &messages(true, false, true), &end.writes()?, Order::Written),
            Way::Confirmed => end.confirm_words(windows_of(x), self.number, count),
            Way::Answered => end.answer_messages(count),
            Way::Changed(brought) => end.change_all(windows_of(x), count, brought),
            Way::RmaAlone => {
                let len = if test == Test::Confirm { 8 } else { x };
                end.write_alone(usize::try_from(len).unwrap_or_default(), count)
            }
            Way::Check => {
                let sequence = end.long().far.sequence();
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
                end.order(Order::Rest)?;
                end.transfer()?;
                let begin = Instant::now();
                for _ in 0..count.div_ceil(IN_A_ROW) {
                    end.transfer()?;
                }
                // Of as many as were asked for.
                let rounded = count.next_multiple_of(IN_A_ROW).max(1);
                Ok(begin.elapsed().mul_f64(count as f64 / rounded as f64))
            }
            Way::Rma => {
                end.order(Order::Rma)?;
                end.write(LONG, count.div_ceil(10), IN_A_ROW)?;
                let begin = Instant::now();
                end.write(LONG, count, IN_A_ROW)?;
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

/// The client's part of a block, after its order.
fn lead(
    end: &End,
    messages: &Messages,
    lane: &impl Lane,
    order: impl FnOnce(Messages) -> Order,
) -> Result<Duration, UserError> {
    messages.reset(lane);
    end.order(order(*messages))?;
    messages.run(lane, true, false);
    let begin = Instant::now();
    messages.run(lane, true, true);
    let took = begin.elapsed();
    // The ends of the last messages are not those of the next block.
    lane.flush();
    Ok(took)
}
