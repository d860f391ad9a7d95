//! The protocol by which a sender learns that its receiver sleeps, without paying for it while it
//! does not.
//!
//! One word per direction, in three states:
//!
//! | word | receiver | what a sender does after publishing |
//! |---|---|---|
//! | [`AWAKE`] | polls | nothing: one load of a line that rarely changes |
//! | [`SLEEPY`] | has slept lately and was woken | a full fence, then looks again |
//! | [`ASLEEP`] | sleeps, or is about to | a full fence, looks again, takes the wake-up and sends it |
//!
//! Going from `AWAKE` to `ASLEEP` costs the receiver a heavy fence, which makes senders see the
//! word or makes their frames visible. From `SLEEPY` to `ASLEEP` an ordinary fence suffices, since
//! senders fence too. In every case the receiver looks at its queue once more after [`doze`] and
//! sleeps only if that is empty.

use crate::barrier::Pairing;
use crate::sync::{AtomicU32, Ordering, fence};

/// The receiver polls.
pub const AWAKE: u32 = 0;
/// The receiver was woken and has not looked yet, or sleeps often.
pub const SLEEPY: u32 = 1;
/// The receiver needs a wake-up.
pub const ASLEEP: u32 = 2;

/// To be called by a sender after publishing. True: the caller must wake the receiver.
#[inline(always)]
#[must_use]
pub fn must_wake(word: &AtomicU32, pairing: Pairing) -> bool {
    pairing.light();
    word.load(Ordering::Relaxed) != AWAKE && must_wake_sleepy(word)
}

#[cold]
fn must_wake_sleepy(word: &AtomicU32) -> bool {
    fence(Ordering::SeqCst);
    word.load(Ordering::Relaxed) == ASLEEP && word.swap(SLEEPY, Ordering::Relaxed) == ASLEEP
}

/// To be called by a receiver that wants to sleep. Afterwards it looks at its queue once more.
/// `awake` says whether the word may be `AWAKE`; the receiver knows, and does not ask memory that
/// its peer can write.
pub fn doze(word: &AtomicU32, awake: bool, pairing: Pairing) {
    arm(word);
    if awake {
        pairing.heavy();
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The first half of [`doze`], for a receiver with many queues: it arms all words and fences once,
/// heavily.
pub fn arm(word: &AtomicU32) {
    word.store(ASLEEP, Ordering::Relaxed);
}

/// To be called by a receiver that polls again.
pub fn disarm(word: &AtomicU32) {
    word.store(AWAKE, Ordering::Relaxed);
}
