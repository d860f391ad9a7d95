//! Computing for a given time without looking at a clock, whose reading takes as long as the
//! shortest delays.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Steps of a trial.
const TRIAL: u64 = 200_000;
/// Trials, of which the fastest counts: what disturbs makes them slower only.
const TRIALS: u32 = 5;
/// How long a delay is measured at least, so that the clock does not count.
const LONG: Duration = Duration::from_micros(200);

/// A loop of known speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Computing {
    steps_per_ns: f64,
}

impl Computing {
    /// Finds out how fast this processor is.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    pub(super) fn calibrated() -> Self {
        let trial = |_| {
            let begin = Instant::now();
            run(TRIAL);
            begin.elapsed().as_nanos().max(1)
        };
        let fastest = (0..TRIALS).map(trial).min().unwrap_or(1);
        Self { steps_per_ns: TRIAL as f64 / fastest as f64 }
    }

    /// How many steps take so many nanoseconds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "far fewer than 2^52, at least 0")]
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    pub(super) fn steps(self, ns: u64) -> u64 {
        (ns as f64 * self.steps_per_ns).round() as u64
    }

    /// How long a delay of so many nanoseconds takes really.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    pub(super) fn measure(self, ns: u64) -> f64 {
        let steps = self.steps(ns);
        let (begin, mut count) = (Instant::now(), 0_u64);
        while begin.elapsed() < LONG {
            for _ in 0..16 {
                run(steps);
            }
            count += 16;
        }
        begin.elapsed().as_nanos() as f64 / count as f64
    }
}

/// Computes so many steps, each of which needs the one before: in registers, since how fast memory
/// is depends on what ran before.
#[inline(never)]
pub(super) fn run(steps: u64) {
    let mut value = steps | 1;
    for _ in 0..steps {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_nanoseconds_are_more_steps_in_proportion() {
        let computing = Computing { steps_per_ns: 0.5 };
        assert_eq!((computing.steps(0), computing.steps(7), computing.steps(1000)), (0, 4, 500));
        assert!(Computing::calibrated().steps_per_ns > 0.0);
    }
}
