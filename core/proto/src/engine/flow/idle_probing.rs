//! How long a connection was idle. A peer from which something is missing while nothing is in
//! flight is probed each second, since no other timer would detect its loss. A flow with nothing
//! open is given back after that time.

use crate::Time;

/// Time between probes of an idle peer, and for which a flow with nothing open is kept with its
/// path estimates, microseconds.
pub(crate) const IDLE: u64 = 1_000_000;

/// When frames last came and went, and the probes of the peer since then.
#[derive(Debug)]
pub(crate) struct IdleProbing {
    /// When a frame last came or went.
    used_at: Time,
    /// When the last probe was sent, and how many were since a frame of the peer last came.
    probed_at: Time,
    probes: u32,
}

impl IdleProbing {
    pub(crate) const fn new() -> Self {
        Self { used_at: Time(0), probed_at: Time(0), probes: 0 }
    }

    /// Notes that a frame of the peer came.
    #[inline]
    pub(crate) fn on_received(&mut self, now: Time) {
        (self.used_at, self.probes) = (now, 0);
    }

    /// Notes that a frame with records leaves.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time) {
        self.used_at = now;
    }

    /// Notes that the idle peer is probed.
    pub(crate) fn on_probe(&mut self, now: Time) {
        (self.probes, self.probed_at) = (self.probes + 1, now);
    }

    /// Returns how often the idle peer was probed since a frame of it last came.
    pub(crate) const fn probes(&self) -> u32 {
        self.probes
    }

    /// Returns when to probe the peer, if something is missing from it.
    pub(crate) fn probe_at(&self) -> Time {
        self.used_at.max(self.probed_at).plus_micros(IDLE)
    }

    /// Returns when the flow has been idle for long enough to be given back.
    #[inline]
    pub(crate) const fn idle_at(&self) -> Time {
        self.used_at.plus_micros(IDLE)
    }

    /// Returns whether the flow has been idle for long enough to be given back.
    pub(crate) const fn is_idle(&self, now: Time) -> bool {
        now.since(self.used_at) >= IDLE * 1000
    }
}
