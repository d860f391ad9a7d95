//! The state of a connection whose peer the network reports as unreachable; see
//! `recovery/network_reports.rs`.

use crate::Time;

/// Reports since a frame of the peer last came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unreachable {
    /// When the first and the last of them came.
    pub(crate) since: Time,
    pub(crate) last: Time,
    /// When the peer is probed next, and how often it was.
    pub(crate) next_at: Time,
    pub(crate) probes: u32,
}

impl Unreachable {
    pub(crate) fn next_at(&self) -> Time {
        self.next_at
    }
}
