//! How long a wait looks before it sleeps.

use std::time::{Duration, Instant};

/// How long a wait looks for events before it sleeps: longer than an answer over a network takes
/// that comes at once, and shorter than two wake-ups.
pub const SPIN: Duration = Duration::from_micros(20);

/// Whether a wait that has looked since `begun` looks once more, rather than to sleep: not where
/// processes outnumber processors ([`cci::is_oversubscribed`]).
///
/// # Example
///
/// ```
/// use std::time::{Duration, Instant};
///
/// let begun = Instant::now();
/// assert!(!cci_ground::may_spin(begun, begun + Duration::from_millis(1)));
/// ```
#[inline]
#[must_use]
pub fn may_spin(begun: Instant, now: Instant) -> bool {
    now.saturating_duration_since(begun) < SPIN && !cci::is_oversubscribed()
}
