//! The wait policy: the endpoint arms its OS handle for a program that sleeps, and disarms it for
//! one that spins.

/// Empty calls before the handle is armed, at first and at most.
const FIRST_LIMIT: u32 = 4;
const MOST_LIMIT: u32 = 16_384;
/// More empty calls than this within one tick, while armed, come from a program that spins.
const SPINNER_CALLS: u32 = 64;

/// What happens to the handle after an empty call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// The handle stays as it is.
    Stay,
    /// Arm it: the program seems to go to sleep.
    Arm,
    /// Disarm it: the program spins.
    Disarm,
}

/// Counts empty calls. Protected by the endpoint's lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitPolicy {
    /// Empty calls since the last event while disarmed, or in this tick while armed.
    empties: u32,
    limit: u32,
    tick: u64,
    /// Empty calls since the last wait within the library ended, while armed.
    after_wait: u32,
}

impl Default for WaitPolicy {
    fn default() -> Self {
        Self { empties: 0, limit: FIRST_LIMIT, tick: 0, after_wait: 0 }
    }
}

impl WaitPolicy {
    /// Records a call that found something.
    #[inline]
    pub(crate) fn on_found(&mut self) {
        self.empties = 0;
    }

    /// Records an empty call. `tick`: number of the current tick of a few milliseconds; `armed`:
    /// the handle is armed; `in_use`: somebody may sleep on it.
    pub(crate) fn on_empty(&mut self, armed: bool, in_use: bool, tick: u64) -> Transition {
        self.empties = self.empties.saturating_add(1);
        self.after_wait = 0;
        if armed {
            if self.tick != tick {
                (self.tick, self.empties, self.limit) = (tick, 0, FIRST_LIMIT);
            } else if self.empties > SPINNER_CALLS {
                (self.empties, self.limit) = (0, (self.limit * 4).min(MOST_LIMIT));
                return Transition::Disarm;
            }
        } else if in_use && self.empties > self.limit {
            (self.empties, self.tick) = (0, tick);
            return Transition::Arm;
        }
        Transition::Stay
    }

    /// Records an empty call outside of every wait, while the handle is armed for a wait that is
    /// over. True: disarm it, because the program polls. One that polls until nothing is left and
    /// then waits makes few such calls, and finds the handle armed. What the calls find in between
    /// does not count, as nobody sleeps between them.
    pub(crate) fn on_empty_after_wait(&mut self) -> bool {
        self.after_wait += 1;
        let is_over = self.after_wait > SPINNER_CALLS;
        if is_over {
            (self.after_wait, self.empties) = (0, 0);
        }
        is_over
    }

    /// Records that the program has asked for an armed handle, so that it does not spin.
    pub(crate) fn stop(&mut self) {
        (self.empties, self.limit) = (0, FIRST_LIMIT);
    }

    /// Whether the program is known to spin.
    #[must_use]
    pub(crate) fn spins(&self) -> bool {
        self.limit != FIRST_LIMIT
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
        assert!(policy.spins());
        assert_eq!(
            policy.on_empty(true, true, 2),
            Transition::Stay,
            "an empty call in each tick does not come from a spinner"
        );
        assert!(!policy.spins());
        assert_eq!(empties(&mut policy, false, 2), FIRST_LIMIT + 1);
    }
}
