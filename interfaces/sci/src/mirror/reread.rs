//! Mirrors are read again from time to time: a program that polls a window, and makes no call,
//! sees what the owner stores (`docs/design/sci-mirror.md`, Loads that poll).

use crate::mirror::refresh::Load;
use crate::mirror::state::Twin;
use crate::state::State;
use cci::Endpoint;
use std::time::{Duration, Instant};

/// The pause before a mirror is read again that the owner has just changed, and the longest one.
/// Between them it is this part of the time without a change. So who polls sees a change late by
/// that part. And who stores what it has stored before seldom does so while the mirror still has
/// it, where the owner has taken it back: such a store is not found.
const PART: u32 = 16;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(3);
/// The least pause for each block of 64 KiB. It is none of what a read took: that is long where
/// others have the processor.
const EACH: Duration = Duration::from_millis(1);
/// A read that has begun wakes the thread at each end of an RMA. It looks as often by itself.
const LOOK: Duration = Duration::from_millis(10);

/// When a mirror is read again.
pub(crate) struct Reread {
    due: Instant,
    /// When the last change was seen.
    since: Instant,
    open: Option<Load>,
    /// Changes of the owner that had been seen when the last read began.
    seen: u64,
}

impl Reread {
    pub(crate) fn new(now: Instant) -> Self {
        Self { due: now + SHORTEST, since: now, open: None, seen: 0 }
    }

    /// A read of so many blocks has ended.
    fn end(&mut self, now: Instant, changes: u64, blocks: usize) {
        if std::mem::replace(&mut self.seen, changes) != changes {
            self.since = now;
        }
        let pause = (now.saturating_duration_since(self.since) / PART).clamp(SHORTEST, LONGEST);
        self.due = now + pause.max(EACH * u32::try_from(blocks).unwrap_or(u32::MAX));
    }
}

impl State {
    /// Reads a mirror again if that is due; the pause until it is again. `None`: it has no window.
    pub(super) fn reread(&mut self, endpoint: &Endpoint, twin: &mut Twin) -> Option<Duration> {
        let is_mapped = |token| self.remotes.get(token).is_some_and(|remote| remote.mapped.is_in_use());
        if twin.reread.open.is_none() && (twin.loaded.is_empty() || !is_mapped(&twin.mirror.token)) {
            return None;
        }
        let now = Instant::now();
        if twin.reread.open.is_none() && twin.reread.due > now {
            return Some(twin.reread.due - now);
        }
        let mut load = twin.reread.open.take().unwrap_or_else(|| Load::new(twin.loaded.clone()));
        if self.load_step(endpoint, twin, &mut load).is_none() {
            twin.reread.open = Some(load);
            return Some(LOOK);
        }
        let now = Instant::now();
        twin.reread.end(now, twin.changes, twin.loaded.len());
        Some(twin.reread.due.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::{EACH, LONGEST, PART, Reread, SHORTEST};
    use crate::Access;
    use crate::mirror::connected;
    use cci_conformance::LIMIT;
    use std::time::{Duration, Instant};

    #[test]
    fn a_mirror_that_does_not_change_is_read_more_and_more_rarely() {
        let now = Instant::now();
        let mut reread = Reread::new(now);
        let mut pause = |at: Duration, changes| {
            reread.end(now + at, changes, 1);
            reread.due - (now + at)
        };
        assert_eq!(pause(Duration::ZERO, 7), SHORTEST);
        assert_eq!(pause(Duration::from_secs(1), 7), Duration::from_secs(1) / PART);
        assert_eq!(pause(Duration::from_secs(1000), 7), LONGEST);
        assert_eq!(pause(Duration::from_secs(1000), 8), SHORTEST);
        reread.end(now, 9, 40);
        assert_eq!(reread.due, now + 40 * EACH);
    }

    /// Who polls makes no call of the library.
    #[test]
    fn a_program_that_polls_a_window_sees_what_the_owner_stores() {
        let (_owner, segment, _other, far) = connected();
        let own = segment.map(0..4096, Access::ReadWrite).expect("mapped");
        let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        for value in 1..20_u64 {
            own.store(8, value).expect("inside");
            window.store(16, value).expect("inside");
            let begun = Instant::now();
            while window.load(8) != Ok(value) {
                assert!(begun.elapsed() < LIMIT, "{value} is not seen");
                std::thread::yield_now();
            }
            assert_eq!(window.load(16), Ok(value), "the program's own stores stay");
        }
    }

    /// Its pages stay protected: what is stored after that is found.
    #[test]
    fn a_mirror_that_is_read_again_without_a_change_stays_quiet() {
        let (_owner, segment, other, far) = connected();
        let own = segment.map(0..4096, Access::ReadWrite).expect("mapped");
        let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        let reads = || other.shared.with(|state| Ok(state.mirrors.all.values().map(|twin| twin.reads).sum::<u64>()));
        let begun = Instant::now();
        while reads().expect("open") < 8 {
            assert!(begun.elapsed() < LIMIT, "it is not read again");
            std::thread::yield_now();
        }
        window.store(0, 5_u64).expect("inside");
        while own.load(0) != Ok(5_u64) {
            assert!(begun.elapsed() < 2 * LIMIT, "the store is not found");
            std::thread::yield_now();
        }
    }
}
