//! The end that measures: blocks of all ways in turn.

use super::active::Active;
use super::own::Own;
use super::shot::{SHOTS, Shot, Way};
use crate::methods::blocks::in_turn;
use crate::peers::{Answer, Program};
use cci_report::UserError;
use std::time::{Duration, Instant};

/// For each shot, each of its ways, the nanoseconds of an exchange of each block. Blocks of one
/// number are neighbours in time.
pub(super) type Samples = Vec<Vec<Vec<f64>>>;

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
        in_turn(&ways, time, |way, count| self.block(shot, way, count))
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
