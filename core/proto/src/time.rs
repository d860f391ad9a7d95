//! Points in time.

use core::ops::{Add, Sub};
use core::time::Duration;

/// Nanoseconds since a start that the caller chose; never goes back. This crate reads no clock: its
/// callers pass the time. Transports and the progress thread read the system's clock; the virtual
/// network has a clock of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Whole microseconds, wrapping at 32 bits: as it travels in a frame.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "wraps by design; differences are taken modulo 2^32")]
    pub const fn micros(self) -> u32 {
        (self.0 / 1000) as u32
    }

    /// How long ago `earlier` was; zero if it was not.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This time and so many microseconds.
    #[inline]
    #[must_use]
    pub const fn plus_micros(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros.saturating_mul(1000)))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.since(earlier))
    }
}
