//! The methods of [`Core`] for waits.

use super::{WAY_SHIFT, WaitFor};
use crate::{Core, Gauge};
use cci_proto::Time;
use std::fmt::Display;

impl Core {
    fn key_in_way(&self, key: u64) -> u64 {
        u64::from(self.way()) << WAY_SHIFT | key & ((1 << WAY_SHIFT) - 1)
    }

    /// Publishes a peer for which the endpoint waits. `key`: the transport's number of the peer;
    /// `since`: when the wait began, by the transport's clock.
    pub fn wait_for(&mut self, key: u64, what: WaitFor, since: Time, operations: u64, peer: impl Display) {
        let key = self.key_in_way(key);
        self.waits.show(&self.counters, key, (what, since, operations), peer);
    }

    /// Removes the wait for the peer with this key.
    pub fn wait_over(&mut self, key: u64) {
        let key = self.key_in_way(key);
        self.waits.hide(&self.counters, key);
    }

    /// Begins a new list of waits, which [`Core::end_waits`] ends.
    pub fn begin_waits(&mut self) {
        self.waits.begin();
    }

    /// Removes the waits that were not published since [`Core::begin_waits`].
    pub fn end_waits(&mut self) {
        let way = self.way();
        let unlisted = self.waits.end(&self.counters, way);
        self.set_gauges(&[(Gauge::Unlisted, unlisted)]);
    }

    /// Whether a wait is published.
    #[must_use]
    pub fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }
}
