//! The system's clock.

use cci_proto::Time;
use rustix::time::{ClockId, clock_gettime};

/// Now, by the monotonic clock.
#[inline]
#[must_use]
pub fn monotonic() -> Time {
    read(ClockId::Monotonic)
}

/// [`monotonic`] as it was at the last tick of the system, some milliseconds ago: a quarter of its
/// price.
#[inline]
#[must_use]
pub fn coarse() -> Time {
    read(ClockId::MonotonicCoarse)
}

#[inline]
fn read(clock: ClockId) -> Time {
    let now = clock_gettime(clock);
    let [seconds, nanos] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    Time(seconds * 1_000_000_000 + nanos)
}
