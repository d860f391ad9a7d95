//! Sleeping until a word changes, and waking sleepers.

use std::time::Duration;

/// Bounds what a lost wake-up could cost should the kernel's fence ever fail to reach a holder.
pub(crate) const LIMIT: Duration = Duration::from_millis(10);

pub(crate) use sys::{wait, wake_all, wake_one};

#[cfg(not(loom))]
mod sys {
    use crate::sync::AtomicU32;
    use rustix::thread::futex::{Flags, Timespec, wait as futex_wait, wake};
    use std::time::Duration;

    pub(crate) fn wait(word: &AtomicU32, expected: u32, limit: Duration) {
        // Woken, value changed, or a signal: the caller looks again in every case. 2^32 s are for
        // ever.
        let seconds = u32::try_from(limit.as_secs()).unwrap_or(u32::MAX);
        let limit = Timespec { tv_sec: seconds.into(), tv_nsec: limit.subsec_nanos().into() };
        let _ = futex_wait(word, Flags::PRIVATE, expected, Some(&limit));
    }

    #[cold]
    pub(crate) fn wake_one(word: &AtomicU32) {
        let _ = wake(word, Flags::PRIVATE, 1);
    }

    #[cold]
    pub(crate) fn wake_all(word: &AtomicU32) {
        let _ = wake(word, Flags::PRIVATE, u32::MAX >> 1);
    }
}

/// Models the kernel's futex: reading the word and joining the sleepers are one step for a thread
/// that wakes. There is no time limit, so a lost wake-up is a deadlock, which loom reports.
#[cfg(loom)]
mod sys {
    use crate::barrier::while_blocked;
    use crate::sync::{AtomicU32, Ordering};
    use loom::sync::Mutex;
    use loom::thread::{Thread, current, park};
    use std::time::Duration;

    loom::lazy_static! {
        static ref SLEEPERS: Mutex<Vec<(usize, Thread)>> = Mutex::new(Vec::new());
    }

    pub(crate) fn wait(word: &AtomicU32, expected: u32, _: Duration) {
        let Ok(mut sleepers) = SLEEPERS.lock() else { return };
        let sleeps = word.load(Ordering::Relaxed) == expected;
        if sleeps {
            sleepers.push((address(word), current()));
        }
        drop(sleepers);
        if sleeps {
            while_blocked(park);
        }
    }

    pub(crate) fn wake_one(word: &AtomicU32) {
        let Ok(mut sleepers) = SLEEPERS.lock() else { return };
        let at = sleepers.iter().position(|(slept_on, _)| *slept_on == address(word));
        let woken = at.map(|at| sleepers.swap_remove(at).1);
        drop(sleepers);
        if let Some(sleeper) = woken {
            sleeper.unpark();
        }
    }

    pub(crate) fn wake_all(word: &AtomicU32) {
        let Ok(mut sleepers) = SLEEPERS.lock() else { return };
        let woken: Vec<_> = sleepers.extract_if(.., |(slept_on, _)| *slept_on == address(word)).collect();
        drop(sleepers);
        woken.into_iter().for_each(|(_, sleeper)| sleeper.unpark());
    }

    fn address(word: &AtomicU32) -> usize {
        std::ptr::from_ref(word).addr()
    }
}
