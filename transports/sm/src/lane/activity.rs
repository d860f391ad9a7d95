//! When a lane was last used: by frames of the peer, for its keepalives; by connections, for its
//! end.

/// When a lane was last used. Times are milliseconds of the endpoint's clock.
pub(crate) struct Activity {
    /// Frames received.
    received: u64,
    /// Frames received at the last tick.
    seen: u64,
    /// When the last tick had seen new frames.
    received_at: u64,
    /// When the peer was last asked for a sign of life.
    pinged: u64,
    /// Since when the lane has had no connection.
    idle_since: Option<u64>,
    /// Some connection may have a keepalive.
    watchful: bool,
}

impl Activity {
    pub(crate) fn new(now: u64) -> Self {
        Self { received: 0, seen: 0, received_at: now, pinged: now, idle_since: Some(now), watchful: false }
    }

    /// Counts frames that were received.
    #[inline(always)]
    pub(crate) fn on_received(&mut self, count: u32) {
        self.received += u64::from(count);
    }

    /// Frames received.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The lane has become usable.
    pub(crate) fn on_usable(&mut self, now: u64) {
        self.received_at = now;
    }

    /// Notes at a tick whether frames have come since the last one.
    pub(crate) fn on_tick(&mut self, now: u64) {
        if self.received != self.seen {
            (self.seen, self.received_at) = (self.received, now);
        }
    }

    /// When frames of the peer were last seen.
    pub(crate) fn received_at(&self) -> u64 {
        self.received_at
    }

    /// When the peer was last asked for a sign of life.
    pub(crate) fn pinged(&self) -> u64 {
        self.pinged
    }

    /// The peer is asked for a sign of life.
    pub(crate) fn on_pinged(&mut self, now: u64) {
        self.pinged = now;
    }

    /// Since when the lane has had no connection.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        self.idle_since
    }

    /// The lane has a connection, or a request for one.
    pub(crate) fn on_used(&mut self) {
        self.idle_since = None;
    }

    /// The last connection has left.
    pub(crate) fn on_unused(&mut self, now: u64) {
        self.idle_since = Some(now);
    }

    /// Whether some connection may have a keepalive.
    pub(crate) fn is_watchful(&self) -> bool {
        self.watchful
    }

    /// Some connection may have a keepalive, or none has one any more.
    pub(crate) fn set_watchful(&mut self, watchful: bool) {
        self.watchful = watchful;
    }
}
