//! The edge policy: how a handle that stays readable gives edges to a program that may sleep after
//! an empty call (`docs/design/threading.md`, Edges).

use cci_proto::Time;
use std::time::Duration;

/// A program that sleeps gets the edge of the timer within this time, nanoseconds.
const EDGE_INTERVAL: u64 = 900_000;
/// The same where the program has returned to a handle in adaptive spin without an edge. Longer,
/// because on a virtual machine each timer that fires costs such a program tens of microseconds.
const LEVEL_INTERVAL: u64 = 15_000_000;
/// A spinning program that makes fewer empty calls than this until the timer fires has stopped
/// spinning.
const FEW_SPINNING: u32 = 64;

/// A handle in adaptive spin tries the timer for this time, nanoseconds: a program that waits for
/// an edge loses no more than this, and one that does not makes many calls meanwhile.
const TRIAL: u64 = 50_000;
/// A handle in adaptive spin that gets fewer empty calls than this until the timer fires gives each
/// of them an edge: the program sleeps until then, or a timer costs more than the edges do.
const FEW_ADAPTIVE: u32 = 8;
/// Empty calls with an edge each before a trial: at first, and at most.
const MIN_CALLS_BEFORE_TIMER: u32 = 16;
const MAX_CALLS_BEFORE_TIMER: u32 = 65_536;

/// The edge that a readable handle gives to a program that may sleep after an empty call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Give an edge now: write the waker.
    Now,
    /// Do nothing: the timer that gives an edge has not fired yet.
    Coming,
    /// Give an edge at this time: set the timer.
    At(Time),
    /// Arm the handle: the program has stopped spinning.
    Arm,
}

/// The timer of the handle, as far as it gives edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Timer {
    /// No empty call relies on it.
    #[default]
    Off,
    /// It fires at this time. Some empty call relies on it.
    Set(Time),
    /// It has fired since the last empty call.
    Fired,
}

/// Chooses between two ways to give edges: a write of the waker in each empty call, or a timer in
/// the handle. Protected by the endpoint's lock.
///
/// The timer costs nothing in most calls, but an edge-triggered program waits for it. So a handle
/// in adaptive spin uses the timer only for a program that returns without an edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgePolicy {
    timer: Timer,
    /// Empty calls since the timer was set.
    calls: u32,
    /// The program returns to a handle in adaptive spin though it got no edge.
    is_level: bool,
    /// Edges written since the last trial, and how many there are before the next one.
    written: u32,
    needed: u32,
}

impl Default for EdgePolicy {
    fn default() -> Self {
        Self { timer: Timer::Off, calls: 0, is_level: false, written: 0, needed: MIN_CALLS_BEFORE_TIMER }
    }
}

impl EdgePolicy {
    /// Returns the edge of an empty call of a program that spins. `now`: the timer's clock, read
    /// within the call.
    pub(crate) fn spinning(&mut self, now: Time) -> Edge {
        match self.timer {
            Timer::Set(at) if now < at => self.rely(),
            Timer::Set(_) | Timer::Fired if self.calls < FEW_SPINNING => {
                self.timer = Timer::Off;
                Edge::Arm
            }
            _ => self.set(now, EDGE_INTERVAL),
        }
    }

    /// As [`EdgePolicy::spinning`], for a handle in adaptive spin.
    pub(crate) fn adaptive_spin(&mut self, now: Time) -> Edge {
        match self.timer {
            Timer::Set(at) if now < at => return self.rely(),
            Timer::Set(_) | Timer::Fired => self.judge(),
            Timer::Off => {}
        }
        if self.is_level {
            return self.set(now, LEVEL_INTERVAL);
        }
        self.written += 1;
        if self.written < self.needed {
            return Edge::Now;
        }
        self.set(now, TRIAL)
    }

    /// Records that the system refused to set the timer. The call writes the waker instead.
    pub(crate) fn on_refused(&mut self) {
        (self.timer, self.is_level, self.written, self.needed) = (Timer::Off, false, 0, MAX_CALLS_BEFORE_TIMER);
    }

    /// Records that the timer has fired.
    pub(crate) fn on_fired(&mut self) {
        if self.timer != Timer::Off {
            self.timer = Timer::Fired;
        }
    }

    /// Records that the handle is about to be armed, after which an arrival gives an edge by
    /// itself. `now`: when the last empty call was made. True: an empty call relies on the timer,
    /// which the endpoint now sets to its next deadline. So the endpoint checks every descriptor,
    /// and writes the waker if there is something to do.
    #[must_use]
    pub(crate) fn on_arming(&mut self, now: Time) -> bool {
        let timer = std::mem::take(&mut self.timer);
        let is_over = match timer {
            Timer::Off => return false,
            Timer::Set(at) => at <= now,
            Timer::Fired => true,
        };
        if is_over && self.calls < FEW_ADAPTIVE {
            self.judge();
        }
        timer != Timer::Fired
    }

    fn rely(&mut self) -> Edge {
        self.calls = self.calls.saturating_add(1);
        Edge::Coming
    }

    fn set(&mut self, now: Time, interval: u64) -> Edge {
        let at = now + Duration::from_nanos(interval);
        (self.timer, self.calls, self.written) = (Timer::Set(at), 0, 0);
        Edge::At(at)
    }

    /// Decides by the calls until the timer fired whether the program needs an edge to return.
    fn judge(&mut self) {
        self.timer = Timer::Off;
        self.is_level = self.calls >= FEW_ADAPTIVE;
        self.needed = if self.is_level {
            (self.needed / 2).max(MIN_CALLS_BEFORE_TIMER)
        } else {
            (self.needed * 2).min(MAX_CALLS_BEFORE_TIMER)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinner_has_an_edge_to_come_and_one_that_begins_to_sleep_is_armed() {
        let mut policy = EdgePolicy::default();
        let mut now = Time(1000);
        for _ in 0..3 {
            let Edge::At(edge) = policy.spinning(now) else { panic!("no timer") };
            assert_eq!(edge.since(now), EDGE_INTERVAL);
            for call in 0..FEW_SPINNING {
                assert_eq!(policy.spinning(Time(edge.0 - 1)), Edge::Coming, "call {call}");
            }
            now = edge;
        }
        let Edge::At(edge) = policy.spinning(now) else { panic!("no timer") };
        for _ in 1..FEW_SPINNING {
            assert_eq!(policy.spinning(now), Edge::Coming);
        }
        assert_eq!(policy.spinning(edge), Edge::Arm, "it makes few calls");
        assert!(matches!(policy.spinning(edge), Edge::At(_)), "it could not be armed");
        policy.on_fired();
        assert_eq!(policy.spinning(edge), Edge::Arm, "whoever has drained the timer");
    }

    /// A program that calls each microsecond, from `now` on, until the policy sets a timer of
    /// `len`. Returns the edges written until then, and when the timer fires.
    fn poll_until(policy: &mut EdgePolicy, now: &mut Time, len: u64) -> (u32, Time) {
        let mut written = 0;
        loop {
            *now = *now + Duration::from_micros(1);
            match policy.adaptive_spin(*now) {
                Edge::Now => written += 1,
                Edge::At(at) if at.since(*now) == len => return (written, at),
                Edge::At(_) | Edge::Coming => {}
                Edge::Arm => panic!("it is armed already"),
            }
        }
    }

    #[test]
    fn a_program_that_returns_without_an_edge_gets_a_timer() {
        let (mut policy, mut now) = (EdgePolicy::default(), Time(5));
        assert_eq!(poll_until(&mut policy, &mut now, TRIAL).0, MIN_CALLS_BEFORE_TIMER - 1);
        for _ in 0..3 {
            assert_eq!(poll_until(&mut policy, &mut now, LEVEL_INTERVAL).0, 0);
        }
    }

    #[test]
    fn a_program_that_sleeps_until_the_edge_loses_little_and_ever_more_rarely() {
        let (mut policy, mut now) = (EdgePolicy::default(), Time(5));
        let mut before = 0;
        // The thirteenth round is the first one that reaches the limit. Each round after it makes
        // 65,536 calls, for which Miri needs seconds.
        for round in 0..if cfg!(miri) { 13 } else { 20 } {
            let (written, at) = poll_until(&mut policy, &mut now, TRIAL);
            assert!(
                written > before || written + 1 == MAX_CALLS_BEFORE_TIMER,
                "round {round}: {written} after {before}"
            );
            (before, now) = (written, at);
        }
        assert_eq!(before + 1, MAX_CALLS_BEFORE_TIMER);
    }

    #[test]
    fn a_program_that_changes_its_mind_waits_for_one_timer() {
        let (mut policy, mut now) = (EdgePolicy::default(), Time(5));
        let (_, at) = poll_until(&mut policy, &mut now, LEVEL_INTERVAL);
        assert_eq!(policy.adaptive_spin(at), Edge::Now, "it has slept");
        let (_, at) = poll_until(&mut policy, &mut now, LEVEL_INTERVAL);
        policy.on_fired();
        assert_eq!(policy.adaptive_spin(at), Edge::Now, "also where another call has drained the timer");
        let (_, at) = poll_until(&mut policy, &mut now, LEVEL_INTERVAL);
        assert!(policy.on_arming(at), "also where the adaptive spin is over");
        assert_eq!(policy.adaptive_spin(at), Edge::Now);
    }

    #[test]
    fn arming_knows_whether_a_call_relies_on_the_timer() {
        let (mut policy, mut now) = (EdgePolicy::default(), Time(5));
        assert!(!policy.on_arming(now), "it has not been set");
        poll_until(&mut policy, &mut now, LEVEL_INTERVAL);
        assert!(policy.on_arming(now));
        assert!(!policy.on_arming(now), "it is set to something else");
        poll_until(&mut policy, &mut now, LEVEL_INTERVAL);
        policy.on_fired();
        assert!(!policy.on_arming(now), "it has given the edge");
    }

    #[test]
    fn a_system_without_timers_has_an_edge_for_each_call() {
        let mut policy = EdgePolicy::default();
        for _ in 1..MIN_CALLS_BEFORE_TIMER {
            assert_eq!(policy.adaptive_spin(Time(5)), Edge::Now);
        }
        assert!(matches!(policy.adaptive_spin(Time(5)), Edge::At(_)));
        policy.on_refused();
        assert_eq!(policy.adaptive_spin(Time(6)), Edge::Now);
    }
}
