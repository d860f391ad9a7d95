//! A link that loses, repeats, reorders and delays the frames that another link receives. For tests
//! of a real link on a network that is too good.

use crate::{Incoming, Link, Outgoing, Wait};
use cci_mem::sync::{AtomicU64, Ordering};
use cci_proto::{Address, Time};
use std::sync::Arc;
use std::time::Duration;

/// What happens to frames, each with this many chances in a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// From which all decisions follow.
    pub seed: u64,
    /// The frame is lost.
    pub drop: u32,
    /// The frame arrives twice.
    pub duplicate: u32,
    /// The frame arrives after those of the next burst.
    pub reorder: u32,
    /// The frame arrives later.
    pub delay: u32,
    /// Longest such delay.
    pub longest_delay: Duration,
}

/// Frames to which each fault happened.
#[derive(Debug, Default)]
pub struct FaultCounters {
    // Relaxed everywhere: the endpoint's lock orders the writers, and readers want no more than a
    // number.
    /// Lost.
    pub dropped: AtomicU64,
    /// Arrived twice.
    pub duplicated: AtomicU64,
    /// Arrived after those of the next burst.
    pub reordered: AtomicU64,
    /// Arrived later.
    pub delayed: AtomicU64,
}

/// What happens to one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    Drop,
    Duplicate,
    Reorder,
    /// By nanoseconds.
    Delay(u64),
}

/// Decides what happens to frames.
struct Decisions {
    faults: Faults,
    state: u64,
}

impl Decisions {
    fn new(faults: Faults) -> Self {
        Self { faults, state: faults.seed }
    }

    /// A random number: SplitMix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn next(&mut self) -> Fate {
        let number = self.random() % 1000;
        let Faults { drop, duplicate, reorder, delay, longest_delay, .. } = self.faults;
        let longest = u64::try_from(longest_delay.as_nanos()).unwrap_or(u64::MAX).max(1);
        let later = self.random() % longest;
        let fates =
            [(drop, Fate::Drop), (duplicate, Fate::Duplicate), (reorder, Fate::Reorder), (delay, Fate::Delay(later))];
        let mut below = 0;
        for (chances, fate) in fates {
            below += u64::from(chances);
            if number < below {
                return fate;
            }
        }
        Fate::Pass
    }
}

/// A frame that arrives later.
struct HeldFrame {
    due: Time,
    from: Address,
    bytes: Box<[u8]>,
    congested: bool,
}

/// A link with faults. Frames to groups, and everything that is no frame, pass.
///
/// A frame that is held arrives in a call that receives, once it is due. The handle becomes
/// readable for it; the progress thread does not wake for it.
pub struct FaultLink<L> {
    inner: L,
    decisions: Decisions,
    held: Vec<HeldFrame>,
    counters: Arc<FaultCounters>,
}

impl<L: Link> FaultLink<L> {
    /// This link, with faults.
    #[must_use]
    pub fn new(inner: L, faults: Faults) -> Self {
        Self { inner, decisions: Decisions::new(faults), held: Vec::new(), counters: Arc::default() }
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> Arc<FaultCounters> {
        self.counters.clone()
    }

    /// The earlier of a deadline and the time at which a held frame is due.
    fn due(&self, deadline: Option<Time>) -> Option<Time> {
        self.held.iter().map(|held| held.due).chain(deadline).min()
    }

    /// Whether a held frame has arrived.
    fn has_due(&self) -> bool {
        let now = self.inner.now();
        self.held.iter().any(|held| held.due <= now)
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl<L: Link> Wait for FaultLink<L> {
    crate::link::forward_wait!();

    fn arm(&mut self, deadline: Option<Time>, wants_write: bool) -> bool {
        let due = self.due(deadline);
        self.inner.arm(due, wants_write) && !self.has_due()
    }

    fn rearm(&mut self, deadline: Option<Time>, wants_write: bool, signalled: bool) -> bool {
        let due = self.due(deadline);
        self.inner.rearm(due, wants_write, signalled) && !self.has_due()
    }
}

impl<L: Link> Link for FaultLink<L> {
    crate::link::forward! { exclusive: send_burst(frames: &[Outgoing<'_>]) -> usize; }
    crate::link::forward_most!();

    fn recv_burst(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let Self { inner, decisions, held, counters } = self;
        let now = inner.now();
        // Those that this burst holds come with a later one.
        let earlier = held.len();
        let mut passed = 0;
        inner.recv_burst(budget, &mut |incoming| {
            let Incoming::Frame { from, bytes, congested } = incoming else {
                passed += 1;
                return sink(incoming);
            };
            let mut hold = |due| held.push(HeldFrame { due, from, bytes: bytes.into(), congested });
            match decisions.next() {
                Fate::Drop => return count(&counters.dropped),
                Fate::Reorder => {
                    count(&counters.reordered);
                    return hold(now);
                }
                Fate::Delay(nanos) => {
                    count(&counters.delayed);
                    return hold(Time(now.0.saturating_add(nanos)));
                }
                Fate::Duplicate => {
                    count(&counters.duplicated);
                    passed += 1;
                    sink(incoming);
                }
                Fate::Pass => {}
            }
            passed += 1;
            sink(incoming);
        });
        for at in (0..earlier).rev() {
            if held[at].due <= now {
                let HeldFrame { from, bytes, congested, .. } = held.remove(at);
                sink(Incoming::Frame { from, bytes: &bytes, congested });
                passed += 1;
            }
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything_and_each_fault_has_its_share() {
        let faults = Faults {
            seed: 5,
            drop: 100,
            duplicate: 200,
            reorder: 50,
            delay: 150,
            longest_delay: Duration::from_micros(10),
        };
        let fates = |faults| {
            let mut decisions = Decisions::new(faults);
            (0..10_000).map(|_| decisions.next()).collect::<Vec<_>>()
        };
        let first = fates(faults);
        assert_eq!(first, fates(faults));
        assert_ne!(first, fates(Faults { seed: 6, ..faults }));
        let share = |of: fn(&Fate) -> bool| first.iter().filter(|fate| of(fate)).count();
        for (found, wanted) in [
            (share(|fate| *fate == Fate::Drop), 1000),
            (share(|fate| *fate == Fate::Duplicate), 2000),
            (share(|fate| *fate == Fate::Reorder), 500),
            (share(|fate| matches!(fate, Fate::Delay(..10_000))), 1500),
            (share(|fate| *fate == Fate::Pass), 5000),
        ] {
            assert!((wanted * 4 / 5..=wanted * 6 / 5).contains(&found), "{found} of {wanted}");
        }
    }
}
