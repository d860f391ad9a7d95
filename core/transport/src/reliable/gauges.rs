//! What others can see of an endpoint, beside what is counted as it happens (`docs/design/counters.md`).

use super::Reliable;
use crate::{Core, Link, WaitFor};
use cci_mem::sync::Ordering;
use cci_proto::engine::{Index, WaitsFor};
use cci_proto::{Address, Time};
use std::fmt;

/// Notes are made this often, nanoseconds: as often as the coarse clock of most systems ticks.
const EVERY: u64 = 4_000_000;
/// Those who wait are looked for this often, nanoseconds: it takes a look at all that is open.
const LOOK_EVERY: u64 = 100_000_000;
/// Who waits less than this is not listed, nanoseconds: what is on its way waits too.
const PATIENCE: u64 = 10_000_000;

/// When notes were made.
#[derive(Debug, Default)]
pub(super) struct Notes {
    at: Time,
    /// Those who wait were looked for.
    looked_at: Time,
}

/// An address, as its link writes it.
struct Named<'l, L: Link>(&'l L, Address);

impl<L: Link> fmt::Display for Named<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_name(&self.1, f)
    }
}

impl<L: Link> Reliable<L> {
    /// Notes how the endpoint stands, if it is time. `called`: by the program, not by the progress thread.
    #[inline]
    pub(super) fn note(&mut self, core: &mut Core, now: Time, called: bool) {
        if now.since(self.notes.at) >= EVERY {
            self.note_now(core, now, called);
        } else if core.has_waits() && !self.has_open() {
            self.list_waits(core, now);
        }
    }

    fn has_open(&self) -> bool {
        self.host.operations.count() > 0 || self.host.table.is_opening()
    }

    #[cold]
    fn note_now(&mut self, core: &mut Core, now: Time, called: bool) {
        self.notes.at = now;
        core.note();
        let (page, stats) = (core.counters(), self.engine.stats());
        for (word, value) in [
            (&page.strays, stats.strays),
            (&page.malformed, stats.malformed + self.malformed),
            (&page.frames_sent, stats.sent),
            (&page.frames_received, stats.received),
            (&page.resent, stats.resent),
            (&page.duplicates, stats.duplicates),
            (&page.spurious, stats.spurious),
            (&page.unheld, stats.unheld),
            (&page.not_ready, stats.not_ready),
            (&page.refused, stats.rnr),
            (&page.in_flight, self.host.operations.count() as u64),
        ] {
            word.store(value, Ordering::Relaxed);
        }
        if called {
            page.progress.store(now.0, Ordering::Relaxed);
        }
        let wanted = self.has_open() && now.since(self.notes.looked_at) >= LOOK_EVERY;
        if wanted || core.has_waits() && !self.has_open() {
            self.list_waits(core, now);
        }
    }

    fn list_waits(&mut self, core: &mut Core, now: Time) {
        self.notes.looked_at = now;
        core.begin_waits();
        for wait in self.engine.waits().filter(|wait| now.since(wait.since) >= PATIENCE) {
            let what = match wait.what {
                WaitsFor::Handshake => WaitFor::Connection,
                WaitsFor::Slot => WaitFor::Room,
                WaitsFor::Acknowledgement => WaitFor::Acknowledgement,
            };
            let Index(key) = wait.index;
            let peer = Named(&self.link, self.engine.address(wait.index).unwrap_or_default());
            core.wait_for(key.into(), what, wait.since.0, wait.operations.into(), peer);
        }
        core.end_waits();
    }
}
