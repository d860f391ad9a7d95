//! Reports of "unreachable" for frames of an open connection. A report of this host is final: no
//! socket listens there any more. A router or the peer's host may report it for a moment only,
//! while a firewall is loaded. So the peer is probed, and the connection ends when nothing but
//! "unreachable" has arrived for a time.

use super::Engine;
use super::conn::{State, bit};
use super::host::Host;
use crate::{Failure, Time};

/// Time until the first probe, microseconds. Doubled for each further probe, up to the longest.
const FIRST: u64 = 50_000;
const LONGEST: u64 = 500_000;
/// A connection ends after so long, and one that is silent for so long is not refused any more,
/// microseconds.
const PATIENCE: u64 = 5_000_000;
/// Hosts send one refusal a second when they have sent some (Linux: `icmp_ratelimit`), so that a
/// probe may get none, microseconds.
const RATE_LIMIT: u64 = 2_000_000;

/// Refusals since a frame of the peer last came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusals {
    since: Time,
    last: Time,
    /// When the peer is probed next, and how often it was.
    next_at: Time,
    probes: u32,
}

impl Refusals {
    pub(super) fn next_at(&self) -> Time {
        self.next_at
    }
}

impl Engine {
    /// Somebody elsewhere refused a frame of an open connection.
    pub(super) fn doubt<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        let first = Refusals { since: now, last: now, next_at: now.plus_micros(FIRST), probes: 0 };
        let refusals = self.refusals.entry(index).or_insert(first);
        refusals.last = now;
        if now.since(refusals.since) >= PATIENCE * 1000 {
            return self.break_connection(now, index, Failure::Disconnected, host);
        }
        self.arm(now, index);
    }

    /// Probes the peer of a refused connection when it is time. True: it was refused for long
    /// enough, and the connection ends.
    pub(super) fn look_refused(&mut self, now: Time, index: u32) -> bool {
        let Some(refusals) = self.refusals.get_mut(&index) else { return false };
        let silence = now.since(refusals.last);
        if silence >= PATIENCE * 1000 {
            // Silence is for the timeouts.
            self.refusals.remove(&index);
            return false;
        }
        let end = refusals.since.plus_micros(PATIENCE);
        if end <= now && silence < RATE_LIMIT * 1000 {
            return true;
        }
        let Some(conn) = self.table.get_mut(index).filter(|conn| conn.state == State::Open) else { return false };
        if refusals.next_at <= now {
            refusals.probes += 1;
            let next = now.plus_micros((FIRST << refusals.probes.min(16)).min(LONGEST));
            refusals.next_at = if now < end { next.min(end) } else { next };
            conn.set(bit::PING);
        }
        false
    }
}
