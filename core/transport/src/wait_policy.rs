//! When a program that polls is taken for one that sleeps, and the other way: who pays for sleeping.

use cci_proto::Time;
use std::time::Duration;

/// Empty calls before the handle is armed, at first and at most.
const FIRST: u32 = 4;
const MOST: u32 = 16_384;
/// Empty calls within one tick, while armed, that give away a spinner.
const RESTLESS: u32 = 64;

/// A spinner that begins to sleep gets an edge after this long at most, nanoseconds.
const EDGE: u64 = 900_000;
/// A program that makes fewer empty calls than this in [`EDGE`] does not spin any more.
const RARE: u32 = 64;

/// What an empty call makes of the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// As it is.
    Stay,
    /// To be armed: the program seems to go to sleep.
    Arm,
    /// To be disarmed: the program spins.
    Disarm,
}

/// What a disarmed handle owes to a program that may sleep after an empty call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// An edge now: the waker is to be written.
    Now,
    /// Nothing: the timer has not fired yet.
    Coming,
    /// An edge at this time: the timer is to be set.
    At(Time),
    /// The program does not spin any more: the handle is to be armed.
    Arm,
}

/// Counts empty calls. Not for several threads: behind the endpoint's lock.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Empty calls: since the last event while spinning, in this tick while armed.
    empties: u32,
    limit: u32,
    tick: u64,
    /// When the timer of a disarmed handle fires; none: it is not set.
    edge: Option<Time>,
    /// Empty calls since it was set.
    calls: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { empties: 0, limit: FIRST, tick: 0, edge: None, calls: 0 }
    }
}

impl Patience {
    /// A call has found something.
    #[inline]
    pub fn on_found(&mut self) {
        self.empties = 0;
    }

    /// A call has found nothing, in this tick: a few milliseconds, counted by the caller. `armed`: the handle is; `in_use`: the
    /// program has asked for it.
    pub fn on_empty(&mut self, armed: bool, in_use: bool, tick: u64) -> Turn {
        self.empties = self.empties.saturating_add(1);
        if armed {
            self.edge = None;
            if self.tick != tick {
                (self.tick, self.empties, self.limit) = (tick, 0, FIRST);
            } else if self.empties > RESTLESS {
                (self.empties, self.limit) = (0, (self.limit * 4).min(MOST));
                return Turn::Disarm;
            }
        } else if in_use && self.empties > self.limit {
            // Arming sets the timer for something else, also where the handle cannot stay armed.
            (self.empties, self.tick, self.edge) = (0, tick, None);
            return Turn::Arm;
        }
        Turn::Stay
    }

    /// The program has asked for an armed handle: it does not spin.
    pub fn stop(&mut self) {
        (self.empties, self.limit, self.edge) = (0, FIRST, None);
    }

    /// A call has found nothing and leaves the handle disarmed. `now`: the clock of the timer, read since the call began.
    ///
    /// A program that has just begun gets an edge at once, a spinner one for each [`EDGE`].
    pub fn edge(&mut self, now: Time) -> Edge {
        if self.limit == FIRST {
            return Edge::Now;
        }
        match self.edge {
            Some(edge) if now < edge => {
                self.calls = self.calls.saturating_add(1);
                Edge::Coming
            }
            Some(_) if self.calls < RARE => {
                self.edge = None;
                Edge::Arm
            }
            _ => {
                let edge = now + Duration::from_nanos(EDGE);
                (self.edge, self.calls) = (Some(edge), 0);
                Edge::At(edge)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empties(patience: &mut Patience, armed: bool, tick: u64) -> u32 {
        (1..=2 * MOST).find(|_| patience.on_empty(armed, true, tick) != Turn::Stay).expect("it turns")
    }

    #[test]
    fn a_program_that_goes_to_sleep_arms_soon_and_a_spinner_ever_later() {
        let mut patience = Patience::default();
        assert_eq!(patience.on_empty(false, false, 1), Turn::Stay, "nobody has asked for the handle");
        patience.on_found();
        let mut before = empties(&mut patience, false, 1);
        assert_eq!(before, FIRST + 1);
        for _ in 0..8 {
            assert_eq!(empties(&mut patience, true, 1), RESTLESS + 1);
            let now = empties(&mut patience, false, 1);
            assert!(now > before || now == MOST + 1, "{now} after {before}");
            before = now;
        }
        assert_eq!(before, MOST + 1);
        assert_eq!(patience.on_empty(true, true, 2), Turn::Stay, "an empty call in each tick is no spinner's");
        assert_eq!(empties(&mut patience, false, 2), FIRST + 1);
    }

    #[test]
    fn a_spinner_has_an_edge_to_come_and_one_that_begins_to_sleep_is_armed() {
        let mut patience = Patience::default();
        assert_eq!(patience.edge(Time(5)), Edge::Now, "nobody has seen it spin");
        empties(&mut patience, false, 1);
        empties(&mut patience, true, 1);
        let mut now = Time(1000);
        for _ in 0..3 {
            let Edge::At(edge) = patience.edge(now) else { panic!("no timer") };
            assert_eq!(edge.since(now), EDGE);
            for call in 0..RARE {
                assert_eq!(patience.edge(Time(edge.0 - 1)), Edge::Coming, "call {call}");
            }
            now = edge;
        }
        let Edge::At(edge) = patience.edge(now) else { panic!("no timer") };
        for _ in 1..RARE {
            assert_eq!(patience.edge(now), Edge::Coming);
        }
        assert_eq!(patience.edge(edge), Edge::Arm, "it makes few calls");
        assert!(matches!(patience.edge(edge), Edge::At(_)), "it could not be armed");
        patience.stop();
        assert_eq!(patience.edge(edge), Edge::Now);
    }
}
