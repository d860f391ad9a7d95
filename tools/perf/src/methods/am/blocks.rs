//! The end that measures: blocks of all ways in turn.

use super::active::Active;
use super::own::Own;
use super::shot::{SHOTS, Shot, Way};
use crate::effort::{Effort, calibrate};
use crate::interrupt;
use crate::peers::{Answer, Program};
use cci_report::UserError;
use std::time::{Duration, Instant};

/// For each shot, each of its ways, the nanoseconds of an exchange of each block. Blocks of one
/// number are neighbours in time.
pub(super) type Samples = Vec<Vec<Vec<f64>>>;

/// Blocks of each way, at least.
const LEAST: usize = 3;

/// The end.
pub(super) struct Client {
    active: Active,
    own: Own,
    peer: Option<Program>,
    /// By which the other end answers now.
    way: Way,
}

impl Client {
    pub(super) fn new(active: Active, own: Own, peer: Option<Program>) -> Self {
        Self { active, own, peer, way: Way::Active }
    }

    /// Measures all shots for so long each, and lets the other end go.
    pub(super) fn measure(mut self, time: Duration) -> Result<Samples, UserError> {
        let samples = SHOTS.iter().map(|shot| self.shot(shot, time)).collect();
        self.turn_to(None)?;
        samples
    }

    fn shot(&mut self, shot: &Shot, time: Duration) -> Result<Vec<Vec<f64>>, UserError> {
        let mut ways = shot.ways().to_vec();
        if self.peer.is_some() && shot.of_peer().is_some() {
            ways.push(Way::Peer);
        }
        let effort = Effort { time, count: None, blocks: None, launches: 1, bound: 0.0 };
        let count = calibrate(&effort, |count| self.block(shot, Way::Active, count))?;
        let mut samples = vec![Vec::new(); ways.len()];
        let begin = Instant::now();
        while samples[0].len() < LEAST || begin.elapsed() < time && !interrupt::is_asked() {
            for (way, samples) in ways.iter().zip(&mut samples) {
                let took = self.block(shot, *way, count)?;
                #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
                samples.push(took.as_nanos() as f64 / count as f64);
            }
        }
        Ok(samples)
    }

    /// So many exchanges by this way, after some that are not timed.
    fn block(&mut self, shot: &Shot, way: Way, count: u64) -> Result<Duration, UserError> {
        self.turn_to(Some(way))?;
        if let (Way::Peer, Some(peer), Some(bytes)) = (way, &mut self.peer, shot.of_peer()) {
            return match peer.block("pingpong", bytes, count, false)? {
                Answer::Took(took) => Ok(took),
                Answer::Cannot(why) => Err(UserError(why)),
            };
        }
        self.run(shot, way, count.div_ceil(10))?;
        let begin = Instant::now();
        self.run(shot, way, count)?;
        Ok(begin.elapsed())
    }

    fn run(&mut self, shot: &Shot, way: Way, count: u64) -> Result<(), UserError> {
        if way == Way::Active { self.active.run(shot, count) } else { self.own.run(shot, way, count) }
    }

    fn turn_to(&mut self, next: Option<Way>) -> Result<(), UserError> {
        match self.way {
            Way::Active | Way::Peer => self.active.turn_to(next)?,
            Way::Send | Way::Reserve | Way::Write => self.own.turn_to(self.way, next)?,
        }
        self.way = next.unwrap_or(self.way);
        Ok(())
    }
}
