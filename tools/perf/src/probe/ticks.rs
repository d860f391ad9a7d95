//! The fastest clock that there is, for stamps between layers that take a few nanoseconds.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long the clock is compared with the system's.
const COMPARED: Duration = Duration::from_millis(5);

/// Now, in ticks: of the processor's counter, or nanoseconds where there is none that every program
/// may read.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the counter, and Linux lets programs read it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: OnceLock<Instant> = OnceLock::new();
        u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Nanoseconds of a tick.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
pub(crate) fn tick_ns() -> f64 {
    static TICK: OnceLock<f64> = OnceLock::new();
    *TICK.get_or_init(|| {
        let (begin, first) = (Instant::now(), ticks());
        while begin.elapsed() < COMPARED {
            std::hint::spin_loop();
        }
        let (took, passed) = (begin.elapsed(), ticks().wrapping_sub(first));
        took.as_nanos() as f64 / passed.max(1) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_on_and_are_parts_of_a_nanosecond_or_a_few() {
        let first = ticks();
        assert!((0.01..100.0).contains(&tick_ns()), "{}", tick_ns());
        assert!(ticks() > first);
    }
}
