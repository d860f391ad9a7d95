//! The clock, in milliseconds.

use rustix::time::{ClockId, clock_gettime};

/// The clock that costs a few nanoseconds and ticks every few milliseconds.
#[inline]
pub(crate) fn coarse_now() -> u64 {
    millis(ClockId::MonotonicCoarse)
}

/// The clock, exact to the millisecond.
pub(crate) fn precise_now() -> u64 {
    millis(ClockId::Monotonic)
}

/// The clock, in whole milliseconds that have not begun yet: a timeout that counts from there is
/// never early.
pub(crate) fn precise_next() -> u64 {
    precise_now() + 1
}

#[inline]
fn millis(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}
