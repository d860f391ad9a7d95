//! The state of a connection whose frames the network refuses; see `network_reports.rs`.

use crate::Time;

/// Refusals since a frame of the peer last came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusals {
    pub(crate) since: Time,
    pub(crate) last: Time,
    /// When the peer is probed next, and how often it was.
    pub(crate) next_at: Time,
    pub(crate) probes: u32,
}

impl Refusals {
    pub(crate) fn next_at(&self) -> Time {
        self.next_at
    }
}
