//! Gauges: published values of an endpoint that are copied at intervals, beside its counters
//! (`docs/design/counters.md`).

use super::Reliable;
use crate::Link;
use cci_proto::engine::{Index, WaitsFor};
use cci_proto::{Address, Time};
use cci_transport::{Core, Gauge, WaitFor};
use std::fmt;

/// Interval of the gauges, nanoseconds: a tick of the coarse clock of most systems.
const GAUGES_EVERY: u64 = 4_000_000;
/// Interval of the list of waits, nanoseconds: it checks every open connection.
const WAITS_EVERY: u64 = 100_000_000;
/// Shortest wait that is listed, nanoseconds: every frame in flight waits a little.
const SHORTEST_WAIT: u64 = 10_000_000;

/// When the gauges were last published.
#[derive(Debug, Default)]
pub(super) struct GaugeTimes {
    at: Time,
    /// When the list of waits was last published.
    waits_at: Time,
}

/// Formats an address by its link.
struct AddressName<'l, L: Link>(&'l L, Address);

impl<L: Link> fmt::Display for AddressName<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_name(&self.1, f)
    }
}

impl<L: Link> Reliable<L> {
    /// Publishes the gauges if it is time. `called`: by the program, not by the progress thread.
    #[inline]
    pub(super) fn publish_gauges(&mut self, core: &mut Core, now: Time, called: bool) {
        if now.since(self.gauge_times.at) >= GAUGES_EVERY {
            self.publish_gauges_now(core, now, called);
        } else if core.has_waits() && !self.has_open() {
            self.list_waits(core, now);
        }
    }

    fn has_open(&self) -> bool {
        self.host.operations.count() > 0 || !self.host.openings.is_empty()
    }

    #[cold]
    fn publish_gauges_now(&mut self, core: &mut Core, now: Time, called: bool) {
        self.gauge_times.at = now;
        core.publish_gauges();
        let stats = self.engine.stats();
        core.set_gauges(&[
            (Gauge::Strays, stats.strays),
            (Gauge::Malformed, stats.malformed + self.malformed),
            (Gauge::FramesSent, stats.sent),
            (Gauge::FramesReceived, stats.received),
            (Gauge::Resent, stats.resent),
            (Gauge::Duplicates, stats.duplicates),
            (Gauge::Spurious, stats.spurious),
            (Gauge::Unheld, stats.unheld),
            (Gauge::NotReady, stats.not_ready),
            (Gauge::Refused, stats.refused),
            (Gauge::InFlight, self.host.operations.count() as u64),
        ]);
        if called {
            core.set_progress(now);
        }
        let wanted = self.has_open() && now.since(self.gauge_times.waits_at) >= WAITS_EVERY;
        if wanted || core.has_waits() && !self.has_open() {
            self.list_waits(core, now);
        }
    }

    fn list_waits(&mut self, core: &mut Core, now: Time) {
        self.gauge_times.waits_at = now;
        core.begin_waits();
        for wait in self.engine.waits().filter(|wait| now.since(wait.since) >= SHORTEST_WAIT) {
            let what = match wait.what {
                WaitsFor::Handshake => WaitFor::Connection,
                WaitsFor::Slot => WaitFor::Room,
                WaitsFor::Acknowledgement => WaitFor::Acknowledgement,
            };
            let Index(key) = wait.index;
            let peer = AddressName(&self.link, self.engine.address(wait.index).unwrap_or_default());
            core.wait_for(key.into(), what, wait.since, wait.operations.into(), peer);
        }
        core.end_waits();
    }
}
