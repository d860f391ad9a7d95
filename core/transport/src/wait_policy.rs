//! The wait policy: the endpoint arms its OS handle for a program that sleeps, and disarms it for
//! one that spins.

use cci_proto::Time;
use std::time::Duration;

/// Empty calls before the handle is armed, at first and at most.
const FIRST_LIMIT: u32 = 4;
const MOST_LIMIT: u32 = 16_384;
/// More empty calls than this within one tick, while armed, come from a program that spins.
const SPINNER_CALLS: u32 = 64;

/// A spinning program that begins to sleep gets an edge within this time, nanoseconds.
const EDGE_INTERVAL: u64 = 900_000;
/// A program that makes fewer empty calls than this within [`EDGE_INTERVAL`] has stopped spinning.
const FEW_CALLS: u32 = 64;

/// What happens to the handle after an empty call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The handle stays as it is.
    Stay,
    /// Arm it: the program seems to go to sleep.
    Arm,
    /// Disarm it: the program spins.
    Disarm,
}

/// The edge that a disarmed handle gives to a program that may sleep after an empty call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Give an edge now: write the waker.
    Now,
    /// Do nothing: the timer that gives an edge has not fired yet.
    Coming,
    /// Give an edge at this time: set the timer.
    At(Time),
    /// Arm the handle: the program has stopped spinning.
    Arm,
}

/// Counts empty calls. Protected by the endpoint's lock.
///
/// ```
/// use cci_transport::{Transition, WaitPolicy};
/// let mut policy = WaitPolicy::default();
/// let calls = (1..).find(|_| policy.on_empty(false, true, 0) == Transition::Arm);
/// assert_eq!(calls, Some(5), "the program seems to go to sleep");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WaitPolicy {
    /// Empty calls since the last event while disarmed, or in this tick while armed.
    empties: u32,
    limit: u32,
    tick: u64,
    /// When the timer of a disarmed handle fires; `None`: it is not set.
    edge: Option<Time>,
    /// Empty calls since the timer was set.
    calls: u32,
}

impl Default for WaitPolicy {
    fn default() -> Self {
        Self { empties: 0, limit: FIRST_LIMIT, tick: 0, edge: None, calls: 0 }
    }
}

impl WaitPolicy {
    /// Records a call that found something.
    #[inline]
    pub fn on_found(&mut self) {
        self.empties = 0;
    }

    /// Records an empty call. `tick`: number of the current tick of a few milliseconds; `armed`:
    /// the handle is armed; `in_use`: the program has asked for the handle.
    pub fn on_empty(&mut self, armed: bool, in_use: bool, tick: u64) -> Transition {
        self.empties = self.empties.saturating_add(1);
        if armed {
            self.edge = None;
            if self.tick != tick {
                (self.tick, self.empties, self.limit) = (tick, 0, FIRST_LIMIT);
            } else if self.empties > SPINNER_CALLS {
                (self.empties, self.limit) = (0, (self.limit * 4).min(MOST_LIMIT));
                return Transition::Disarm;
            }
        } else if in_use && self.empties > self.limit {
            // Arming sets the timer for something else, also where the handle cannot stay armed.
            (self.empties, self.tick, self.edge) = (0, tick, None);
            return Transition::Arm;
        }
        Transition::Stay
    }

    /// Records that the program has asked for an armed handle, so that it does not spin.
    pub fn stop(&mut self) {
        (self.empties, self.limit, self.edge) = (0, FIRST_LIMIT, None);
    }

    /// Returns the edge that an empty call gives which leaves the handle disarmed. `now`: the
    /// timer's clock, read within the call.
    ///
    /// A program that is not known to spin gets an edge at once, a spinning one every 0.9 ms
    /// (`EDGE_INTERVAL`).
    pub fn edge(&mut self, now: Time) -> Edge {
        if self.limit == FIRST_LIMIT {
            return Edge::Now;
        }
        match self.edge {
            Some(edge) if now < edge => {
                self.calls = self.calls.saturating_add(1);
                Edge::Coming
            }
            Some(_) if self.calls < FEW_CALLS => {
                self.edge = None;
                Edge::Arm
            }
            _ => {
                let edge = now + Duration::from_nanos(EDGE_INTERVAL);
                (self.edge, self.calls) = (Some(edge), 0);
                Edge::At(edge)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empties(policy: &mut WaitPolicy, armed: bool, tick: u64) -> u32 {
        (1..=2 * MOST_LIMIT).find(|_| policy.on_empty(armed, true, tick) != Transition::Stay).expect("a transition")
    }

    #[test]
    fn a_program_that_goes_to_sleep_arms_soon_and_a_spinner_ever_later() {
        let mut policy = WaitPolicy::default();
        assert_eq!(policy.on_empty(false, false, 1), Transition::Stay, "nobody has asked for the handle");
        policy.on_found();
        let mut before = empties(&mut policy, false, 1);
        assert_eq!(before, FIRST_LIMIT + 1);
        for _ in 0..8 {
            assert_eq!(empties(&mut policy, true, 1), SPINNER_CALLS + 1);
            let now = empties(&mut policy, false, 1);
            assert!(now > before || now == MOST_LIMIT + 1, "{now} after {before}");
            before = now;
        }
        assert_eq!(before, MOST_LIMIT + 1);
        assert_eq!(
            policy.on_empty(true, true, 2),
            Transition::Stay,
            "an empty call in each tick does not come from a spinner"
        );
        assert_eq!(empties(&mut policy, false, 2), FIRST_LIMIT + 1);
    }

    #[test]
    fn a_spinner_has_an_edge_to_come_and_one_that_begins_to_sleep_is_armed() {
        let mut policy = WaitPolicy::default();
        assert_eq!(policy.edge(Time(5)), Edge::Now, "it is not known to spin");
        empties(&mut policy, false, 1);
        empties(&mut policy, true, 1);
        let mut now = Time(1000);
        for _ in 0..3 {
            let Edge::At(edge) = policy.edge(now) else { panic!("no timer") };
            assert_eq!(edge.since(now), EDGE_INTERVAL);
            for call in 0..FEW_CALLS {
                assert_eq!(policy.edge(Time(edge.0 - 1)), Edge::Coming, "call {call}");
            }
            now = edge;
        }
        let Edge::At(edge) = policy.edge(now) else { panic!("no timer") };
        for _ in 1..FEW_CALLS {
            assert_eq!(policy.edge(now), Edge::Coming);
        }
        assert_eq!(policy.edge(edge), Edge::Arm, "it makes few calls");
        assert!(matches!(policy.edge(edge), Edge::At(_)), "it could not be armed");
        policy.stop();
        assert_eq!(policy.edge(edge), Edge::Now);
    }
}
