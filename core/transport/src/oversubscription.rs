//! Whether this process shares its processors with the peers that it waits for.

use cci_mem::sync::{AtomicBool, Ordering};

/// Relaxed: it publishes nothing, and a wait that reads it late only polls or sleeps once more.
static IS_OVERSUBSCRIBED: AtomicBool = AtomicBool::new(false);

/// States whether more processes than processors wait for each other on this host, such as the
/// ranks of a parallel job. Who polls then takes the time of the one that is waited for: waits of
/// this process look a few times, and sleep.
///
/// It holds for the whole process, from any thread, until the next call; at first it is false.
///
/// ```
/// let (ranks, processors) = (8, 2);
/// cci_transport::set_oversubscribed(ranks > processors);
/// # cci_transport::set_oversubscribed(false);
/// ```
pub fn set_oversubscribed(is_oversubscribed: bool) {
    IS_OVERSUBSCRIBED.store(is_oversubscribed, Ordering::Relaxed);
}

/// What [`set_oversubscribed`] has stated last.
///
/// ```
/// assert!(!cci_transport::is_oversubscribed());
/// ```
#[must_use]
pub fn is_oversubscribed() -> bool {
    IS_OVERSUBSCRIBED.load(Ordering::Relaxed)
}
