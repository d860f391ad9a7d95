//! Round-trip time and probe timeout, in the structure of RFC 9002, sections 5 and 6.2, with the
//! granularity of a data centre.

use super::conn::Conn;
use crate::Time;

/// Timer granularity, microseconds.
pub(super) const GRANULARITY: u64 = 50;
/// The longest that an acknowledgement waits for an answer, microseconds.
pub(super) const MAX_ACK_DELAY: u64 = 100;
/// Round-trip time before the first sample, microseconds.
const INITIAL: u64 = 20_000;
/// No probe timeout is shorter, microseconds.
pub(crate) const LEAST_TIMEOUT: u64 = GRANULARITY + MAX_ACK_DELAY;
/// The longest probe timeout, microseconds.
const LONGEST_TIMEOUT: u64 = 1_000_000;

impl Conn {
    /// A sample, with the peer's own delay taken out, microseconds.
    pub(crate) fn on_rtt(&mut self, sample: u32) {
        let sample = sample.max(1);
        self.min_rtt = if self.min_rtt == 0 { sample } else { self.min_rtt.min(sample) };
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (sample, sample / 2);
            return;
        }
        self.rttvar =
            (3 * u64::from(self.rttvar)).wrapping_add(u64::from(self.srtt.abs_diff(sample))).div_ceil(4) as u32;
        self.srtt = (7 * u64::from(self.srtt)).wrapping_add(u64::from(sample)).div_ceil(8) as u32;
    }

    /// How long to wait for an acknowledgement, `tries` timeouts after the first, microseconds.
    pub(crate) fn probe_timeout(&self, tries: u32) -> u64 {
        let base = if self.srtt == 0 {
            INITIAL
        } else {
            u64::from(self.srtt) + (4 * u64::from(self.rttvar)).max(GRANULARITY) + MAX_ACK_DELAY
        };
        (base << tries.min(16)).min(LONGEST_TIMEOUT.max(base))
    }

    /// How much later than the newest acknowledged frame one may have been sent and still be on its
    /// way: 9/8 of the round trip (RFC 9002, section 6.1.2), nanoseconds.
    pub(crate) fn loss_delay(&self) -> u64 {
        (u64::from(self.srtt) * 9 / 8).max(GRANULARITY) * 1000
    }

    /// Microseconds since the peer was last heard.
    pub(crate) fn silence(&self, now: Time) -> u32 {
        now.micros().wrapping_sub(self.newest_at)
    }
}

/// Returns the latest time at which an acknowledgement leaves.
pub(crate) fn ack_deadline(now: Time) -> Time {
    now.plus_micros(MAX_ACK_DELAY)
}
