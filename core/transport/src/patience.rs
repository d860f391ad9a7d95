//! When a program that polls is taken for one that sleeps, and the other way: who pays for sleeping.

/// Empty calls before the handle is armed, at first and at most.
const FIRST: u32 = 4;
const MOST: u32 = 16_384;
/// Empty calls within one tick, while armed, that give away a spinner.
const RESTLESS: u32 = 64;

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

/// Counts empty calls. Not for several threads: behind the endpoint's lock.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Empty calls: since the last event while spinning, in this tick while armed.
    empties: u32,
    limit: u32,
    tick: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { empties: 0, limit: FIRST, tick: 0 }
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
            if self.tick != tick {
                (self.tick, self.empties, self.limit) = (tick, 0, FIRST);
            } else if self.empties > RESTLESS {
                (self.empties, self.limit) = (0, (self.limit * 4).min(MOST));
                return Turn::Disarm;
            }
        } else if in_use && self.empties > self.limit {
            (self.empties, self.tick) = (0, tick);
            return Turn::Arm;
        }
        Turn::Stay
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
}
