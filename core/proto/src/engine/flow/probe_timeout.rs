//! The probe timeout of a flow (RFC 9002, section 6.2): how long nothing was acknowledged while
//! frames were in flight. A probe retransmits the oldest frame, so that its acknowledgement shows
//! what has arrived.

use crate::Time;

/// When the probe timeout began, and how often it has passed.
#[derive(Debug)]
pub(crate) struct ProbeTimeout {
    /// When a sequenced frame was last sent.
    sent_at: Time,
    /// When something was last acknowledged, or the first frame in flight was sent.
    progress_at: Time,
    /// Timeouts in a row.
    count: u32,
    /// Whether a probe is due.
    is_due: bool,
}

impl ProbeTimeout {
    pub(crate) const fn new() -> Self {
        Self { sent_at: Time(0), progress_at: Time(0), count: 0, is_due: false }
    }

    /// Returns when the timeout began that runs now, if frames are in flight.
    #[inline]
    pub(crate) fn since(&self) -> Time {
        self.sent_at.max(self.progress_at)
    }

    /// Returns when something was last acknowledged, or the first frame in flight was sent.
    #[inline]
    pub(crate) const fn progress_at(&self) -> Time {
        self.progress_at
    }

    /// Returns how many timeouts passed in a row.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    /// Notes that a sequenced frame leaves. `is_only`: no other is in flight.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, is_only: bool) {
        if is_only {
            self.progress_at = now;
        }
        self.sent_at = now;
    }

    /// Notes that something was acknowledged.
    #[inline]
    pub(crate) fn on_progress(&mut self, now: Time) {
        (self.progress_at, self.count, self.is_due) = (now, 0, false);
    }

    /// Notes that the timeout has passed, and begins the next one. `can_probe`: there is a frame to
    /// retransmit.
    pub(crate) fn on_timeout(&mut self, now: Time, can_probe: bool) {
        self.count += 1;
        self.is_due = can_probe;
        self.sent_at = now;
    }

    /// Makes a probe due now.
    pub(crate) fn set_due(&mut self) {
        self.is_due = true;
    }

    #[inline]
    pub(crate) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Returns whether a probe is due, which the caller sends.
    #[inline]
    pub(crate) fn take_due(&mut self) -> bool {
        core::mem::take(&mut self.is_due)
    }
}
