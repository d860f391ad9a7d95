//! The announcement of a sleep by one word, for a sleeper that several others wake by a message.
//!
//! A waker stores what the sleeper waits for, and looks at the word. Only one of them takes the
//! announcement, and sends the message.
//!
//! ```text
//!   waker                                  sleeper
//!   store what is waited for (1)           word = 1                 (4)
//!   light fence              (2)           heavy fence              (5)
//!   word == 1?               (3): take     look once more           (6): sleep, if it is not there
//!   it, and send a message                 word = 0
//! ```
//!
//! If (6) misses (1), then (3) sees (4). Some wakers have no fence (2): programs in other
//! languages, which store in place.
//!
//! | waker | pairing | what orders (1) before (3) | limit of the sleep |
//! |---|---|---|---|
//! | fenced | asymmetric | the sleeper's `membarrier` (5) | none is needed |
//! | fenced | symmetric | its own full fence (2) | none is needed |
//! | unfenced | asymmetric | the sleeper's `membarrier` (5) | none is needed |
//! | unfenced | symmetric | nothing: (3) may miss (4) | the sleeper looks again at its end |

use crate::barrier::Pairing;
use crate::sync::{AtomicU64, Ordering};

/// Announces that the caller is about to sleep. Afterwards it looks once more for what it waits
/// for, and sleeps only if that is not there.
///
/// # Example
///
/// ```
/// use cci_mem::announcement::{announce, must_wake, withdraw};
/// use cci_mem::barrier::Pairing;
/// use cci_mem::sync::AtomicU64;
///
/// let word = AtomicU64::new(0);
/// assert!(!must_wake(&word));
/// announce(&word, Pairing::Symmetric);
/// assert!(must_wake(&word) && !must_wake(&word), "one waker sends a message");
/// announce(&word, Pairing::Symmetric);
/// withdraw(&word);
/// assert!(!must_wake(&word));
/// ```
pub fn announce(word: &AtomicU64, pairing: Pairing) {
    // Relaxed: the fence (5) orders it before the look (6).
    word.store(1, Ordering::Relaxed);
    pairing.heavy();
}

/// Ends the announcement.
pub fn withdraw(word: &AtomicU64) {
    // Publishes nothing: a waker that misses it sends a message in vain.
    word.store(0, Ordering::Relaxed);
}

/// Whether a sleep needs a limit, because a waker may miss the announcement.
#[must_use]
pub fn needs_limit(is_waker_fenced: bool, pairing: Pairing) -> bool {
    !is_waker_fenced && pairing == Pairing::Symmetric
}

/// Takes the announcement of a sleeper. True: the caller must wake it. Called after what the
/// sleeper waits for was stored, and after [`Pairing::light`] if this waker is fenced.
#[inline]
#[must_use]
pub fn must_wake(word: &AtomicU64) -> bool {
    // The message is ordered by whoever carries it.
    word.load(Ordering::Relaxed) != 0 && word.swap(0, Ordering::Relaxed) != 0
}
