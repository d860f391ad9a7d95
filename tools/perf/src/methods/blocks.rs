//! Blocks of several ways in turn, and what launches have measured by them.

use crate::effort::{Effort, calibrate};
use crate::interrupt;
use cci_report::UserError;
use cci_report::finding::PortalsPoint;
use cci_report::statistics::{median, uncertainty};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Blocks of each way, at least.
pub(super) const LEAST: usize = 3;

/// What a launch has measured of one figure by one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    experiment: String,
    x: u64,
    way: String,
    value: f64,
}

impl Sample {
    pub(super) fn new(experiment: &str, x: u64, way: &str, value: f64) -> Self {
        Self { experiment: experiment.into(), x, way: way.into(), value }
    }
}

/// Nanoseconds of an exchange, where so many took this time.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
pub(super) fn nanoseconds(took: Duration, count: u64) -> f64 {
    took.as_nanos() as f64 / count as f64
}

/// How many exchanges make a block.
pub(super) fn size(time: Duration, block: impl FnMut(u64) -> Result<Duration, UserError>) -> Result<u64, UserError> {
    calibrate(&Effort { time, count: None, blocks: None, launches: 1, bound: 0.0 }, block)
}

/// Measures blocks of each way in turn, for so long. Returns the nanoseconds of an exchange of each
/// block, by ways: blocks of one number are neighbours in time. The first way decides how many
/// exchanges make a block.
pub(super) fn in_turn<W: Copy>(
    ways: &[W],
    time: Duration,
    mut block: impl FnMut(W, u64) -> Result<Duration, UserError>,
) -> Result<Vec<Vec<f64>>, UserError> {
    let count = size(time, |count| block(ways[0], count))?;
    let mut values = vec![Vec::new(); ways.len()];
    let begin = Instant::now();
    while values[0].len() < LEAST || begin.elapsed() < time && !interrupt::is_asked() {
        for (way, values) in ways.iter().zip(&mut values) {
            values.push(nanoseconds(block(*way, count)?, count));
        }
    }
    Ok(values)
}

/// A point for each figure of the first launch of each kind, of which there are so many in turn:
/// the median of all launches of the kind.
pub(super) fn points(launches: &[Vec<Sample>], kinds: usize) -> Vec<PortalsPoint> {
    let of_kind = |kind: usize| {
        let launches: Vec<_> = launches.iter().skip(kind).step_by(kinds).collect();
        let of = |(at, sample): (usize, &Sample)| {
            let all = launches.iter().filter_map(|launch| launch.get(at));
            let values: Vec<f64> = all.map(|sample| sample.value).collect();
            let Sample { experiment, x, way, .. } = sample.clone();
            PortalsPoint { experiment, x, way, value: median(&values), spread: uncertainty(&values) }
        };
        let first = launches.first().map_or(&[][..], |first| &first[..]);
        first.iter().enumerate().map(of).collect::<Vec<_>>()
    };
    (0..kinds).flat_map(of_kind).collect()
}
