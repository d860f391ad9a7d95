//! What the time of a request and its reply goes to, part by part: a clock that a mapping tells.

use crate::probe::ticks::{tick_ns, ticks};
use cci_am_via::Watch;
use cci_report::statistics::median;
use cci_via::Part;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::rc::Rc;

/// The longest time of one part that counts, nanoseconds: something else ran meanwhile.
const DISTURBED: f64 = 10_000.0;

/// The time of each part, and how often it was told.
#[derive(Debug)]
pub(in crate::methods) struct Clock {
    last: Cell<u64>,
    longest: u64,
    parts: [Cell<(u64, u64)>; Part::COUNT],
}

/// What an end spent on parts since the clock was set to zero: nanoseconds, in the order of
/// [`Part::ALL`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::methods) struct Spent(pub(in crate::methods) Vec<f64>);

/// The clock as a mapping has it.
pub(in crate::methods) struct Told(pub(in crate::methods) Rc<Clock>);

impl Watch for Told {
    #[inline(always)]
    fn spent(&self, part: Part) {
        self.0.spent(part);
    }
}

impl Clock {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousand ticks")]
    pub(in crate::methods) fn new() -> Rc<Self> {
        let longest = (DISTURBED / tick_ns().max(f64::MIN_POSITIVE)) as u64;
        Rc::new(Self { last: Cell::new(ticks()), longest, parts: std::array::from_fn(|_| Cell::new((0, 0))) })
    }

    #[inline(always)]
    pub(in crate::methods) fn spent(&self, part: Part) {
        let now = ticks();
        let took = now.wrapping_sub(self.last.replace(now));
        if took < self.longest {
            let place = &self.parts[part as usize];
            let (sum, count) = place.get();
            place.set((sum + took, count + 1));
        }
    }

    pub(in crate::methods) fn reset(&self) {
        self.parts.iter().for_each(|place| place.set((0, 0)));
    }

    /// What was spent, without what the clock itself takes.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    pub(in crate::methods) fn read(&self) -> Spent {
        let own = cost();
        let of = |place: &Cell<(u64, u64)>| {
            let (sum, count) = place.get();
            sum as f64 * tick_ns() - count as f64 * own
        };
        Spent(self.parts.iter().map(of).collect())
    }
}

/// What telling a part takes, nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn cost() -> f64 {
    const TOLD: u64 = 64;
    let clock = Clock::new();
    let trial = |_| {
        let begin = ticks();
        for _ in 0..TOLD {
            clock.spent(Part::Wait);
        }
        ticks().wrapping_sub(begin) as f64 * tick_ns() / TOLD as f64
    };
    median(&(0..101).map(trial).collect::<Vec<_>>())
}

/// The category of a part, as the paper's Table 3 has it, and the part's name there.
pub(in crate::methods) fn category(part: Part) -> (&'static str, &'static str) {
    match part {
        Part::PostSend => ("Base VI", "PostSend"),
        Part::PostReceive => ("Base VI", "PostRecv"),
        Part::RecycleSend => ("Base VI", "recycle send descriptor"),
        Part::RecycleReceive => ("Base VI", "recycle receive descriptor"),
        Part::Build => ("Base VI", "build send descriptor"),
        Part::NotifySend => ("Event notification", "CQDone and SendDone"),
        Part::NotifyReceive => ("Event notification", "CQDone and RecvDone"),
        Part::BookkeepSend => ("Flow control", "send bookkeeping"),
        Part::Process => ("Flow control", "process received message"),
        Part::Read => ("Semantics", "read data from message"),
        Part::Act => ("Semantics", "act on message"),
        Part::Wait => ("", "wait"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_time_since_the_one_before_without_that_of_the_clock() {
        let clock = Clock::new();
        clock.reset();
        for _ in 0..1_000 {
            clock.spent(Part::Wait);
            clock.spent(Part::Act);
        }
        let Spent(spent) = clock.read();
        let each = (spent[Part::Wait as usize] + spent[Part::Act as usize]) / 2_000.0;
        // Nothing was done between: what is left is how much one cost differs from another.
        assert!(each.abs() < cost(), "{each} ns a part, {} of the clock", cost());
        assert!(spent[Part::Build as usize].abs() < 1e-9);
    }

    #[test]
    fn what_was_disturbed_does_not_count() {
        let clock = Clock::new();
        clock.reset();
        std::thread::sleep(std::time::Duration::from_millis(1));
        clock.spent(Part::Build);
        assert_eq!(clock.parts[Part::Build as usize].get(), (0, 0));
    }
}
