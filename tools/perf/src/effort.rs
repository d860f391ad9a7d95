//! How long a size is measured: the blocks of a launch, and the operations of a block.

use cci_report::UserError;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A block lasts about so long when it is calibrated: long against reading the clock and the talk
/// between blocks, short against what the system disturbs.
const BLOCK: Duration = Duration::from_micros(300);
/// Operations of a block, at least: the first finds the caches as the probe's block left them, and
/// must not count for much.
pub const LEAST: u64 = 16;

/// Blocks of a size, at least and at most.
const BLOCKS: RangeInclusive<u64> = 11..=5000;

/// How long a point takes, and how sure it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Time for the blocks of one size, probe blocks included.
    pub time: Duration,
    /// Operations of a block; calibrated when absent.
    pub count: Option<u64>,
    /// Number of blocks; from the time when absent.
    pub blocks: Option<u32>,
    /// Pairs of processes that the time, or the blocks, are shared out to.
    pub launches: u32,
    /// Largest spread of a point that counts as accurate, as a part of the median.
    pub bound: f64,
}

impl Effort {
    /// Launches, each of which has a block at least.
    pub fn launches(&self) -> u32 {
        self.blocks.map_or(self.launches, |blocks| self.launches.min(blocks)).max(1)
    }

    /// Whether one launch has measured enough, with so many blocks in this time.
    pub fn is_enough(&self, blocks: u64, took: Duration) -> bool {
        let launches = u64::from(self.launches());
        match self.blocks {
            Some(asked) => blocks >= u64::from(asked).div_ceil(launches).max(1),
            None if blocks == 0 => false,
            None if blocks < BLOCKS.start().div_ceil(launches) && took < 2 * self.time / self.launches() => false,
            None => blocks >= BLOCKS.end().div_ceil(launches) || took >= self.time / self.launches(),
        }
    }
}

/// Nanoseconds per operation; of an exchange, which is two, per half.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
pub(crate) fn per_operation(took: Duration, count: u64, exchange: bool) -> f64 {
    took.as_nanos() as f64 / count.max(1) as f64 / if exchange { 2.0 } else { 1.0 }
}

/// Finds how many operations make a block, warming everything up by the way.
pub(crate) fn calibrate(
    effort: &Effort,
    mut block: impl FnMut(u64) -> Result<Duration, UserError>,
) -> Result<u64, UserError> {
    if let Some(count) = effort.count {
        block(count)?;
        return Ok(count);
    }
    // Of long operations as many as leave time for a block of the probe: the time holds whatever
    // the size.
    let share = effort.time / 2;
    let first = block(1)?;
    if first > share {
        return Ok(1);
    }
    let one = first.min(block(1)?);
    if one * u32::try_from(LEAST).unwrap_or(1) > share {
        return Ok(u64::try_from(share.as_nanos() / one.as_nanos().max(1)).unwrap_or(1).clamp(1, LEAST));
    }
    let mut count = LEAST;
    loop {
        // The shorter of two: one that something else interrupted would make the blocks short,
        // which the caches then decide.
        let took = block(count)?.min(block(count)?);
        if took >= BLOCK || count >= 1 << 20 {
            return Ok(count);
        }
        // By what is missing, but not far beyond it: the first blocks are slower than the later
        // ones.
        let missing = (BLOCK.as_nanos() / took.as_nanos().max(1) + 1).clamp(2, 8);
        count *= u64::try_from(missing).unwrap_or(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(millis: u64) -> Effort {
        Effort { time: Duration::from_millis(millis), count: None, blocks: None, launches: 1, bound: 0.05 }
    }

    #[test]
    fn a_block_is_calibrated_to_last_long_enough() {
        let count = calibrate(&effort(100), |count| Ok(Duration::from_nanos(150 * count))).unwrap();
        let took = Duration::from_nanos(150 * count);
        assert!((BLOCK..10 * BLOCK).contains(&took), "{count} operations in {took:?}");
        assert_eq!(calibrate(&effort(1000), |_| Ok(Duration::from_millis(5))).unwrap(), LEAST);
    }

    #[test]
    fn of_long_operations_a_block_has_as_many_as_the_time_allows() {
        let calibrated = |millis| {
            let mut operations = 0;
            let count = calibrate(&effort(60), |count| {
                operations += count;
                Ok(Duration::from_millis(millis * count))
            });
            (count.unwrap(), operations)
        };
        assert_eq!(calibrated(200), (1, 1));
        assert_eq!(calibrated(10), (3, 2));
        assert_eq!(calibrated(1).0, LEAST);
    }

    #[test]
    fn a_block_that_was_interrupted_does_not_make_the_others_short() {
        let mut blocks = 0;
        let interrupted_at_first = |count: u64| {
            blocks += 1;
            Ok(Duration::from_nanos(150 * count) + if blocks == 1 { 10 * BLOCK } else { Duration::ZERO })
        };
        assert!(calibrate(&effort(100), interrupted_at_first).unwrap() * 150 > 300_000);
    }

    #[test]
    fn a_count_that_is_asked_for_is_kept() {
        let asked = Effort { count: Some(77), ..effort(100) };
        assert_eq!(calibrate(&asked, |count| Ok(Duration::from_nanos(count))).unwrap(), 77);
    }

    #[test]
    fn the_time_and_the_blocks_have_bounds_and_are_shared_out_to_the_launches() {
        let of = |blocks: Option<u32>, launches: u32| Effort { blocks, launches, ..effort(300) };
        let least = |effort: Effort, took: u64| {
            (0..9999).find(|blocks| effort.is_enough(*blocks, Duration::from_millis(took))).unwrap()
        };
        assert_eq!((least(of(None, 1), 300), least(of(None, 1), 299)), (11, 5000));
        assert_eq!((least(of(None, 10), 30), least(of(None, 10), 29)), (2, 500));
        assert_eq!((of(Some(3), 10).launches(), least(of(Some(3), 10), 900), least(of(Some(3), 10), 0)), (3, 1, 1));
        assert_eq!((of(Some(15), 10).launches(), least(of(Some(15), 10), 0)), (10, 2));
    }
}
