//! The state of a connection whose frames the network refuses; see `network_reports.rs`.

use crate::Time;

/// Refusals since a frame of the peer last came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusals {
    pub(super) since: Time,
    pub(super) last: Time,
    /// When the peer is probed next, and how often it was.
    pub(super) next_at: Time,
    pub(super) probes: u32,
}

impl Refusals {
    pub(super) fn next_at(&self) -> Time {
        self.next_at
    }
}
