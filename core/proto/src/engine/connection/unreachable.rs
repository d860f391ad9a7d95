//! The state of a connection whose peer the network reports as unreachable; see
//! `recovery/network_reports.rs`.

use crate::Time;

/// Time until the first probe, microseconds. Doubled for each further probe, up to the longest.
const FIRST_PROBE: u64 = 50_000;
const LONGEST_PROBE: u64 = 500_000;
/// A connection ends after so long. After so long without a report its peer is not unreachable any
/// more. Microseconds.
const UNREACHABLE_TIMEOUT: u64 = 5_000_000;
/// Hosts send one report a second when they have sent some (Linux: `icmp_ratelimit`), so that a
/// probe may get none, microseconds.
const RATE_LIMIT: u64 = 2_000_000;

/// Reports since a frame of the peer last came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unreachable {
    /// When the first and the last of them came.
    since: Time,
    last: Time,
    /// When the peer is probed next, and how often it was.
    next_at: Time,
    probes: u32,
}

impl Unreachable {
    /// No report has come before this time.
    pub(crate) fn new(now: Time) -> Self {
        Self { since: now, last: now, next_at: now.plus_micros(FIRST_PROBE), probes: 0 }
    }

    /// Records a report. Returns whether they have come for long enough, so that the connection
    /// ends.
    pub(crate) fn on_report(&mut self, now: Time) -> bool {
        self.last = now;
        now.since(self.since) >= UNREACHABLE_TIMEOUT * 1000
    }

    /// Whether the reports have stopped: silence is for the timeouts.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        now.since(self.last) >= UNREACHABLE_TIMEOUT * 1000
    }

    /// Whether the peer was unreachable for long enough, so that the connection ends.
    pub(crate) fn is_final(&self, now: Time) -> bool {
        self.end() <= now && now.since(self.last) < RATE_LIMIT * 1000
    }

    /// Whether the peer is to be probed now. The time of the next probe is set then.
    pub(crate) fn take_probe(&mut self, now: Time) -> bool {
        if self.next_at > now {
            return false;
        }
        self.probes += 1;
        let next = now.plus_micros((FIRST_PROBE << self.probes.min(16)).min(LONGEST_PROBE));
        self.next_at = if now < self.end() { next.min(self.end()) } else { next };
        true
    }

    /// When the peer is probed next.
    pub(crate) fn next_at(&self) -> Time {
        self.next_at
    }

    fn end(&self) -> Time {
        self.since.plus_micros(UNREACHABLE_TIMEOUT)
    }
}
