//! One of the processes: its part, and what it tells of it.

use super::carrier::Way;
use super::table::Layout;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Updates of the bare probe, at most.
pub(super) const PROBE: u64 = 1 << 22;
/// Updates between two looks whether a signal has come.
pub(super) const BETWEEN: u64 = 1 << 10;
/// How long the processes may take to connect to each other.
pub(super) const ARRIVAL: Duration = Duration::from_secs(60);

/// One of the processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    pub(super) number: u64,
    pub(super) layout: Layout,
    pub(super) way: Way,
    pub(super) transport: Option<String>,
    pub(super) keys: Vec<(String, String)>,
}

/// What a process tells of itself before the others connect to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Card {
    pub(super) uri: String,
    /// Its mailbox, when updates are written.
    pub(super) handle: Option<[u64; 4]>,
    pub(super) transport: String,
}

/// What a process tells of its updates: how many it made, and when, nanoseconds of the host's
/// monotonic clock.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Span {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) made: u64,
}

/// The host's monotonic clock, which all its processes share, nanoseconds.
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
