//! What a launch measures of a size, of CCI or of a peer.

use cci_report::row::Pair;
use cci_report::{UserError, while_doing};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What one launch measured of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Name of the transport.
    pub transport: String,
    /// Bytes of an operation.
    pub size: u64,
    /// One a block.
    pub pairs: Vec<Pair>,
    /// Operations over all blocks.
    pub operations: u64,
    /// Whose it is, when not CCI's.
    pub label: Option<Label>,
    /// Where single round trips were timed: nanoseconds, and how many took so long.
    pub singles: Vec<(u64, u64)>,
    /// One reading of the clock, nanoseconds.
    pub clock_ns: f64,
    /// Where transfers were to hide behind computing, of each block: nanoseconds of a transfer
    /// alone, of computing alone, of both.
    pub overlaps: Vec<[f64; 3]>,
    /// Time of calibration and blocks.
    #[serde(default)]
    pub took: Duration,
}

/// A histogram of times in nanoseconds, up to a minute, to three digits.
///
/// # Errors
///
/// There is no memory for it.
pub(crate) fn histogram() -> Result<Histogram<u64>, UserError> {
    Histogram::new_with_max(60_000_000_000, 3).map_err(while_doing("no memory for a histogram"))
}

/// The peer that a point belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Name of the setting, such as `ucx:tcp`.
    pub name: String,
    /// Its setting, as its program tells it.
    pub setting: String,
}
