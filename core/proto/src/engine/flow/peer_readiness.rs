//! Whether the peer has a receive slot for the next message (receiver not ready, RNR), and when to
//! retry if it has none.

use crate::Time;

/// Delay before a retry at a peer without slots: the first, and the longest, microseconds.
const FIRST_RETRY: u64 = 1_000;
const LONGEST_RETRY: u64 = 100_000;

/// What the newest acknowledgement of the peer states about its slots.
#[derive(Debug)]
pub(crate) struct PeerReadiness {
    /// Since when the peer is not ready; `None`: it is ready.
    not_ready_since: Option<Time>,
    /// When to retry, and how often that was done since then.
    retry_at: Time,
    retries: u32,
    /// Retries in a row without any acknowledgement.
    unanswered: u32,
    /// Times that the peer became not ready, for the report.
    times: u32,
}

impl PeerReadiness {
    /// The peer is ready.
    pub(crate) const fn new() -> Self {
        Self { not_ready_since: None, retry_at: Time(0), retries: 0, unanswered: 0, times: 0 }
    }

    #[inline]
    pub(crate) const fn is_ready(&self) -> bool {
        self.not_ready_since.is_none()
    }

    /// Returns since when the peer is not ready.
    pub(crate) const fn not_ready_since(&self) -> Option<Time> {
        self.not_ready_since
    }

    /// Returns when to retry, if the peer is not ready.
    pub(crate) fn retry_at(&self) -> Option<Time> {
        self.not_ready_since.map(|_| self.retry_at)
    }

    /// Returns the retries in a row without any acknowledgement.
    pub(crate) const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Returns how often the peer became not ready.
    pub(crate) const fn times(&self) -> u32 {
        self.times
    }

    /// Notes that the peer has a slot.
    #[inline]
    pub(crate) const fn on_ready(&mut self) {
        self.not_ready_since = None;
    }

    /// Notes that the peer has no slot. Returns whether it was ready until now.
    pub(crate) fn on_not_ready(&mut self, now: Time) -> bool {
        if self.not_ready_since.is_some() {
            return false;
        }
        (self.not_ready_since, self.retries) = (Some(now), 0);
        self.retry_at = now.plus_micros(FIRST_RETRY);
        self.times += 1;
        true
    }

    /// Notes a retry, and schedules the next one. `is_answered`: the peer has acknowledged the last
    /// one.
    pub(crate) fn on_retry(&mut self, now: Time, is_answered: bool) {
        self.unanswered = if is_answered { 0 } else { self.unanswered + 1 };
        self.retries += 1;
        self.retry_at = now.plus_micros((FIRST_RETRY << self.retries.min(10)).min(LONGEST_RETRY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn retries_become_rarer_and_are_counted_anew_each_time() {
        let mut peer = PeerReadiness::new();
        assert_eq!((peer.is_ready(), peer.retry_at()), (true, None));
        for times in 1..3 {
            assert!(peer.on_not_ready(Time(0)) && !peer.on_not_ready(Time(5)), "it is not ready already");
            let first = peer.retry_at().expect("not ready");
            let delays: Vec<u32> = (0..9)
                .map(|_| {
                    peer.on_retry(Time(0), true);
                    peer.retry_at().expect("not ready").micros() / 1000
                })
                .collect();
            assert_eq!((first.micros(), delays), (1000, [2, 4, 8, 16, 32, 64, 100, 100, 100].into()));
            peer.on_ready();
            assert_eq!((peer.retry_at(), peer.times()), (None, times));
        }
    }
}
