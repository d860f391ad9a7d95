//! A hazard pointer between two processes: one side copies bytes of the other's registration, and
//! the other does not give the bytes up meanwhile.
//!
//! The copying side stores the registration's word in its hazard word, and then looks whether the
//! registration lives. The owner marks the registration dead, and then looks at the hazard words. A
//! full fence between store and look on both sides ensures that one of them sees the other's store
//! (Michael, "Hazard Pointers", IEEE TPDS 15(6), 2004; Dekker's algorithm).

use crate::sync::{AtomicU64, Ordering, fence};

/// The hazard word while nothing is protected.
const NONE: u64 = 0;

/// Protects what `word` names, which is not 0. `is_living` loads, relaxed, whether it lives. False:
/// it does not, and nothing is protected. True: the owner waits from now on until [`release`].
pub fn protect(hazard: &AtomicU64, word: u64, is_living: impl FnOnce() -> bool) -> bool {
    hazard.store(word, Ordering::Relaxed);
    // With the fence in `retire`.
    fence(Ordering::SeqCst);
    let living = is_living();
    if !living {
        release(hazard);
    }
    living
}

/// Ends what [`protect`] began.
pub fn release(hazard: &AtomicU64) {
    // Release: the copy is over before the owner sees that it is.
    hazard.store(NONE, Ordering::Release);
}

/// Marks dead what was named by another generation. The owner looks at the hazard words only after
/// this.
pub fn retire(generation: &AtomicU64, dead: u64) {
    generation.store(dead, Ordering::Relaxed);
    // With the fence in `protect`: either the peer sees the dead generation, or this side sees its
    // hazard word.
    fence(Ordering::SeqCst);
}

/// Whether the peer protects what `word` names. False: its copy is over.
#[must_use]
pub fn is_protected(hazard: &AtomicU64, word: u64) -> bool {
    // Acquire: pairs with `release`.
    hazard.load(Ordering::Acquire) == word
}

/// Whether the peer protects anything.
#[must_use]
pub fn is_any_protected(hazard: &AtomicU64) -> bool {
    !is_protected(hazard, NONE)
}
