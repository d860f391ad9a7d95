//! How often the cold ways are looked at.

use cci_proto::Time;
use std::time::Duration;

/// How many calls pass from one look at the cold ways to the next: so many that the looks take
/// little of the time of a program that polls without pause, and few where calls are seldom.
pub(crate) struct Interval {
    calls: u32,
    looked: Time,
}

impl Interval {
    /// At least, and at most.
    const CALLS: [u32; 2] = [16, 8192];
    /// A look is a system call of a third of a microsecond. A frame by a cold way waits for it.
    const SHORT: Duration = Duration::from_micros(32);
    const LONG: Duration = Duration::from_micros(64);

    pub(crate) fn new() -> Self {
        Self { calls: Self::CALLS[0], looked: Time(0) }
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// All ways have their turn now.
    pub(crate) fn on_look(&mut self, now: Time) {
        let since = Duration::from_nanos(now.since(self.looked));
        self.looked = now;
        let [least, most] = Self::CALLS;
        if since < Self::SHORT {
            self.calls = (self.calls * 2).min(most);
        } else if since > Self::LONG {
            self.calls = (self.calls / 2).max(least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls from one look to the next, after many looks, where a call takes so many nanoseconds.
    fn settled(each: u64) -> u64 {
        let (mut interval, mut now) = (Interval::new(), Time(1 << 40));
        for _ in 0..100 {
            now = Time(now.0 + each * u64::from(interval.calls()));
            interval.on_look(now);
        }
        u64::from(interval.calls())
    }

    #[test]
    fn looks_are_some_microseconds_apart_or_16_calls() {
        for each in [4, 10, 20, 50, 150, 400, 900] {
            let apart = each * settled(each);
            assert!((32_000..=64_000).contains(&apart), "calls of {each} ns: {apart} ns");
        }
        assert_eq!([2_000, 1_000_000].map(settled), [16, 16]);
    }

    #[test]
    fn a_pause_makes_the_next_look_earlier_and_not_later() {
        let mut interval = Interval::new();
        for call in 1..100 {
            interval.on_look(Time((1 << 40) + call * 1_000));
        }
        assert_eq!(interval.calls(), 8192);
        for pause in 1..10 {
            interval.on_look(Time((1 << 41) + pause * 1_000_000_000));
        }
        assert_eq!(interval.calls(), 16);
    }
}
