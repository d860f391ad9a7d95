//! When a program that sleeps on its handle is answered so soon that it had better not sleep (`docs/design/threading.md`,
//! Lingering).

use cci_proto::Time;

/// A wait is short up to this long, nanoseconds: some wake-ups of both sides, so that two programs that answer each other begin.
const SHORT: u64 = 100_000;
/// How long the handle stays readable at most after a call that found nothing, nanoseconds: about the time of a wake-up, so that
/// looking costs no more than sleeping would have.
const LINGER: u64 = 25_000;
/// Short waits in a row before it stays readable: at first, and at most.
const FIRST: u32 = 4;
const MOST: u32 = 4096;

/// Judges by how the last waits on an armed handle ended. A wait begins with the first call that finds nothing, and ends with one
/// that does. Not for several threads: behind the endpoint's lock.
#[derive(Clone, Copy, Debug)]
pub struct Linger {
    lingers: bool,
    /// When the wait began.
    since: Option<Time>,
    /// Short waits in a row.
    short: u32,
    /// As many are needed: more after each time that it was in vain.
    needed: u32,
}

impl Default for Linger {
    fn default() -> Self {
        Self { lingers: false, since: None, short: 0, needed: FIRST }
    }
}

impl Linger {
    /// Whether the handle is to stay readable.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.lingers
    }

    /// It is not to now, whatever came before.
    pub fn stop(&mut self) {
        (self.lingers, self.since, self.short) = (false, None, 0);
    }

    /// A call has found something.
    #[inline]
    pub fn on_found(&mut self, now: impl FnOnce() -> Time) {
        let Some(since) = self.since.take() else { return };
        if self.lingers {
            self.needed = (self.needed / 2).max(FIRST);
        } else if now().since(since) > SHORT {
            self.short = 0;
        } else {
            self.short += 1;
            self.lingers = self.short >= self.needed;
        }
    }

    /// A call has found nothing.
    pub fn on_empty(&mut self, now: Time) {
        let since = *self.since.get_or_insert(now);
        if self.lingers && now.since(since) > LINGER {
            (self.lingers, self.short) = (false, 0);
            self.needed = (self.needed * 2).min(MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wait of this many nanoseconds with a look at each microsecond while it lingers; says when it ends, and how many there were.
    fn wait(linger: &mut Linger, begin: u64, len: u64) -> (u64, u64) {
        let mut looks = 0;
        linger.on_empty(Time(begin));
        while linger.is_on() && (looks + 1) * 1000 < len {
            looks += 1;
            linger.on_empty(Time(begin + looks * 1000));
        }
        linger.on_found(|| Time(begin + len));
        (begin + len, looks)
    }

    #[test]
    fn it_begins_after_some_short_waits_and_goes_on_while_looking_finds_the_answer() {
        let (mut linger, mut now) = (Linger::default(), 5);
        for _ in 0..FIRST {
            assert!(!linger.is_on());
            (now, _) = wait(&mut linger, now, SHORT);
        }
        for _ in 0..100 {
            assert!(linger.is_on());
            (now, _) = wait(&mut linger, now, LINGER);
        }
        assert!(linger.is_on());
        let (_, looks) = wait(&mut linger, now, LINGER + 2001);
        assert_eq!(looks, LINGER / 1000 + 1, "no longer than this");
        assert!(!linger.is_on());
    }

    #[test]
    fn long_waits_do_not_begin_it() {
        let (mut linger, mut now) = (Linger::default(), 5);
        for round in 0..10 * FIRST {
            let len = if round % FIRST == 0 { SHORT + 1 } else { 1 };
            (now, _) = wait(&mut linger, now, len);
            assert!(!linger.is_on(), "round {round}");
        }
        linger.stop();
        assert!(!linger.is_on());
    }

    #[test]
    fn waits_that_are_short_but_not_so_short_cost_ever_less() {
        let (mut linger, mut now, mut looks) = (Linger::default(), 5, 0);
        for _ in 0..100 * u64::from(MOST) {
            let (end, more) = wait(&mut linger, now, SHORT);
            (now, looks) = (end, looks + more);
        }
        assert!(linger.needed == MOST && looks > 0);
        let each = LINGER / 1000 + 1;
        assert!(looks <= each * (100 + 2 * u64::from(MOST.ilog2())), "{looks} looks in vain");
    }

    #[test]
    fn a_call_that_finds_something_at_once_is_no_wait() {
        let mut linger = Linger::default();
        (0..10 * u64::from(FIRST)).for_each(|now| linger.on_found(|| Time(now)));
        assert!(!linger.is_on());
    }
}
