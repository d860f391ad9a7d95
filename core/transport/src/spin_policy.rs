//! The spin policy: a program whose waits are short polls on instead of sleeping
//! (`docs/design/threading.md`, Spin policy).

use cci_proto::Time;

/// Longest short wait, nanoseconds: a few wake-ups of both sides, so that two programs that answer
/// each other start to spin.
const SHORT_WAIT: u64 = 100_000;
/// How long the handle stays readable at most after an empty call, nanoseconds: about the time of a
/// wake-up, so that spinning costs no more than sleeping.
const SPIN: u64 = 25_000;
/// Consecutive short waits before the handle stays readable: at first, and at most.
const MIN_SHORT_WAITS: u32 = 4;
const MAX_SHORT_WAITS: u32 = 4096;

/// Decides by the length of the last waits on an armed handle whether the program spins. A wait
/// begins with the first empty call and ends with a call that finds something. Protected by the
/// endpoint's lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpinPolicy {
    spins: bool,
    /// When the current wait began.
    since: Option<Time>,
    /// Consecutive short waits.
    short_waits: u32,
    /// Short waits that are needed before it spins. Doubled each time that spinning was in vain.
    needed: u32,
}

impl Default for SpinPolicy {
    fn default() -> Self {
        Self { spins: false, since: None, short_waits: 0, needed: MIN_SHORT_WAITS }
    }
}

impl SpinPolicy {
    /// Whether the handle stays readable after an empty call.
    #[inline]
    #[must_use]
    pub(crate) fn is_on(&self) -> bool {
        self.spins
    }

    /// Ends spinning, and forgets the waits so far.
    pub(crate) fn stop(&mut self) {
        (self.spins, self.since, self.short_waits) = (false, None, 0);
    }

    /// Records a call that found something. `may_spin`: no other process waits for this processor.
    #[inline]
    pub(crate) fn on_found(&mut self, may_spin: bool, now: impl FnOnce() -> Time) {
        let Some(since) = self.since.take() else { return };
        if self.spins {
            self.needed = (self.needed / 2).max(MIN_SHORT_WAITS);
            self.spins = may_spin;
        } else if now().since(since) > SHORT_WAIT {
            self.short_waits = 0;
        } else {
            self.short_waits += 1;
            self.spins = may_spin && self.short_waits >= self.needed;
        }
    }

    /// Records an empty call.
    pub(crate) fn on_empty(&mut self, now: Time) {
        let since = *self.since.get_or_insert(now);
        if self.spins && now.since(since) > SPIN {
            (self.spins, self.short_waits) = (false, 0);
            self.needed = (self.needed * 2).min(MAX_SHORT_WAITS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a wait of `len` nanoseconds that polls each microsecond while it spins. Returns
    /// its end and the number of polls.
    fn wait(policy: &mut SpinPolicy, begin: u64, len: u64) -> (u64, u64) {
        let mut polls = 0;
        policy.on_empty(Time(begin));
        while policy.is_on() && (polls + 1) * 1000 < len {
            polls += 1;
            policy.on_empty(Time(begin + polls * 1000));
        }
        policy.on_found(true, || Time(begin + len));
        (begin + len, polls)
    }

    #[test]
    fn it_spins_after_some_short_waits_and_as_long_as_polling_finds_the_answer() {
        let (mut policy, mut now) = (SpinPolicy::default(), 5);
        for _ in 0..MIN_SHORT_WAITS {
            assert!(!policy.is_on());
            (now, _) = wait(&mut policy, now, SHORT_WAIT);
        }
        for _ in 0..100 {
            assert!(policy.is_on());
            (now, _) = wait(&mut policy, now, SPIN);
        }
        assert!(policy.is_on());
        let (_, polls) = wait(&mut policy, now, SPIN + 2001);
        assert_eq!(polls, SPIN / 1000 + 1, "no longer than this");
        assert!(!policy.is_on());
    }

    #[test]
    fn where_others_wait_for_the_processor_no_wait_starts_it() {
        let mut policy = SpinPolicy::default();
        for now in 0..10 * u64::from(MAX_SHORT_WAITS) {
            policy.on_empty(Time(now));
            policy.on_found(false, || Time(now + 1));
            assert!(!policy.is_on());
        }
        policy.on_empty(Time(0));
        policy.on_found(true, || Time(1));
        assert!(policy.is_on(), "the waits were short, and nobody is in the way any more");
        policy.on_empty(Time(2));
        policy.on_found(false, || Time(3));
        assert!(!policy.is_on(), "it ends too");
    }

    #[test]
    fn long_waits_do_not_start_it() {
        let (mut policy, mut now) = (SpinPolicy::default(), 5);
        for round in 0..10 * MIN_SHORT_WAITS {
            let len = if round % MIN_SHORT_WAITS == 0 { SHORT_WAIT + 1 } else { 1 };
            (now, _) = wait(&mut policy, now, len);
            assert!(!policy.is_on(), "round {round}");
        }
        policy.stop();
        assert!(!policy.is_on());
    }

    #[test]
    fn waits_that_are_short_but_not_so_short_cost_ever_less() {
        let (mut policy, mut now, mut polls) = (SpinPolicy::default(), 5, 0);
        for _ in 0..100 * u64::from(MAX_SHORT_WAITS) {
            let (end, more) = wait(&mut policy, now, SHORT_WAIT);
            (now, polls) = (end, polls + more);
        }
        assert!(policy.needed == MAX_SHORT_WAITS && polls > 0);
        let each = SPIN / 1000 + 1;
        assert!(polls <= each * (100 + 2 * u64::from(MAX_SHORT_WAITS.ilog2())), "{polls} polls in vain");
    }

    #[test]
    fn a_call_that_finds_something_at_once_is_no_wait() {
        let mut policy = SpinPolicy::default();
        (0..10 * u64::from(MIN_SHORT_WAITS)).for_each(|now| policy.on_found(true, || Time(now)));
        assert!(!policy.is_on());
    }
}
