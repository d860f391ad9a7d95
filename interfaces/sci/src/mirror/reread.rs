//! Mirrors are read again from time to time: a program that polls a window, and makes no call,
//! sees what the owner stores (`docs/design/sci-mirror.md`, Loads that poll).

use crate::mirror::reading::Load;
use std::time::{Duration, Instant};

/// The shortest pause before a mirror is read again. It is this part of the time without a change:
/// so who polls sees a change late by that part.
const SHORTEST: Duration = Duration::from_millis(1);
const PART: u32 = 8;
/// A mirror is quiet that has not changed for so long, and its pause: it is to take no processor
/// time.
const QUIET: Duration = Duration::from_secs(16);
const LONGEST: Duration = Duration::from_secs(20);
/// The longest pause behind a store of the program: the owner may take the value back, and the same
/// value stored again is found once the mirror has been read.
const STORED: Duration = Duration::from_millis(10);
/// The least pause for each block of 64 KiB but the first. It is none of what a read took: that is
/// long where others have the processor.
const EACH: Duration = Duration::from_millis(10);
/// When a mirror is read again.
pub(crate) struct Reread {
    pub(super) due: Instant,
    /// When the last change was seen. One of the program counts as one of `PART * STORED` ago.
    since: Instant,
    pub(super) open: Option<Load>,
    /// Changes of the owner that had been seen when the last read began.
    seen: u64,
}

impl Reread {
    pub(crate) fn new(now: Instant) -> Self {
        Self { due: now + SHORTEST, since: now, open: None, seen: 0 }
    }

    /// A read of so many blocks has ended.
    pub(super) fn end(&mut self, now: Instant, changes: u64, blocks: usize) {
        if std::mem::replace(&mut self.seen, changes) != changes {
            self.since = now;
        }
        let still = now.saturating_duration_since(self.since);
        let pause = if still < QUIET { (still / PART).max(SHORTEST) } else { LONGEST };
        self.due = now + pause.max(least(blocks));
    }

    /// The program has stored to a mirror of so many blocks. Whether it is read sooner than before.
    pub(super) fn note_store(&mut self, now: Instant, blocks: usize) -> bool {
        if let Some(since) = now.checked_sub(PART * STORED) {
            self.since = self.since.max(since);
        }
        let due = now + STORED.max(least(blocks));
        let is_sooner = due < self.due;
        self.due = self.due.min(due);
        is_sooner
    }
}

/// The least pause of a mirror of so many blocks.
fn least(blocks: usize) -> Duration {
    EACH.saturating_mul(u32::try_from(blocks.saturating_sub(1)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::{EACH, LONGEST, PART, QUIET, Reread, SHORTEST, STORED};
    use crate::Access;
    use crate::mirror::fixture::{connected, until};
    use cci_conformance::LIMIT;
    use std::time::{Duration, Instant};

    /// How often a mirror is read from one time without a change to another one.
    fn reads_between(from: Duration, to: Duration) -> u32 {
        let begun = Instant::now();
        let (mut reread, mut reads) = (Reread::new(begun), 0);
        while reread.due - begun < to {
            let now = reread.due;
            reread.end(now, 0, 1);
            reads += u32::from(now - begun >= from);
        }
        reads
    }

    /// In virtual time.
    #[test]
    fn a_mirror_that_does_not_change_is_read_more_and_more_rarely() {
        let seconds = Duration::from_secs;
        assert!(reads_between(Duration::ZERO, seconds(1)) < 60);
        assert!(reads_between(seconds(1), QUIET) < 30);
        // The last pause before may end an eighth later.
        let quiet = QUIET + QUIET / PART;
        assert_eq!(reads_between(quiet, quiet + Duration::from_secs(17)), 0);
        assert_eq!(reads_between(seconds(3600), seconds(7200)), 180);
    }

    #[test]
    fn a_change_has_a_mirror_read_soon_again() {
        let now = Instant::now();
        let mut reread = Reread::new(now);
        let mut pause = |at: Duration, changes, blocks| {
            reread.end(now + at, changes, blocks);
            reread.due - (now + at)
        };
        assert_eq!(pause(Duration::ZERO, 7, 1), SHORTEST);
        assert_eq!(pause(Duration::from_secs(1), 7, 1), Duration::from_secs(1) / PART);
        assert_eq!(pause(Duration::from_secs(1000), 7, 1), LONGEST);
        assert_eq!(pause(Duration::from_secs(1000), 8, 1), SHORTEST);
        assert_eq!(pause(Duration::from_secs(1000), 9, 41), 40 * EACH);
    }

    /// Of a program that stores without a pause it is read as often, and no more.
    #[test]
    fn a_store_of_the_program_has_a_mirror_read_soon() {
        let begun = Instant::now();
        let mut reread = Reread::new(begun);
        let mut now = begun + Duration::from_secs(1000);
        reread.end(now, 0, 1);
        assert!(reread.note_store(now, 1) && !reread.note_store(now, 1));
        assert_eq!(reread.due, now + STORED);
        let (mut reads, end) = (0, now + Duration::from_secs(1));
        while now < end {
            now += Duration::from_micros(50);
            reread.note_store(now, 1);
            if reread.due <= now {
                reread.end(now, 0, 1);
                reads += 1;
            }
        }
        assert!((90..=100).contains(&reads), "{reads}");
        reread.end(now, 0, 1);
        assert_eq!(reread.due, now + STORED);
        reread.end(now, 0, 4);
        reread.note_store(now, 4);
        assert_eq!(reread.due, now + 3 * EACH);
    }

    /// It is a change once the mirror has what the owner stored, though nobody was told of that.
    #[test]
    fn a_value_that_the_owner_takes_back_is_sent_again() {
        let (_owner, segment, other, far) = connected();
        let own = segment.map(0..4096, Access::ReadWrite).expect("mapped");
        let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        // The mirror has become one that is read rarely.
        let long_ago = Instant::now().checked_sub(Duration::from_secs(200)).expect("the machine runs for longer");
        other
            .shared
            .with(|state| {
                state.mirrors.all.values_mut().for_each(|twin| {
                    twin.reread.since = long_ago;
                    twin.reread.due = Instant::now() + LONGEST;
                });
                Ok(())
            })
            .expect("open");
        for round in 0..5 {
            window.store(8, 1_u64).expect("inside");
            until("the store", &|| own.load(8) == Ok(1_u64));
            own.store(8, 0_u64).expect("inside");
            until(&format!("what the owner stored, {round}"), &|| window.load(8) == Ok(0_u64));
        }
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
