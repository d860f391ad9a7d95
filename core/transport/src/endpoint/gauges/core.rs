//! The methods of [`Core`] for the counters page.

use super::{Gauge, GaugesOfWay};
use crate::{Core, Protect, monotonic};
use cci_mem::counters::{ARMED, CLEAR, Page, SEALED, STARVING, VIRTUAL};
use cci_mem::sync::Ordering;
use cci_proto::Time;

impl Core {
    /// Sets gauges to the values of this transport. With ways the page has their sum, to which each
    /// way adds what has changed since it set them last.
    pub fn set_gauges(&mut self, values: &[(Gauge, u64)]) {
        let way = self.way();
        let mut before = self.ways.as_mut().and_then(|ways| ways.gauges_of(way));
        for (gauge, value) in values {
            let word = gauge.word(&self.counters);
            let changed = match before.as_deref_mut() {
                Some(GaugesOfWay(last)) => {
                    let last = std::mem::replace(&mut last[*gauge as usize], *value);
                    word.load(Ordering::Relaxed).wrapping_sub(last).wrapping_add(*value)
                }
                None => *value,
            };
            word.store(changed, Ordering::Relaxed);
        }
    }

    /// Publishes when the program last had the endpoint make progress. The ways of an endpoint read
    /// clocks of different grains, so that an earlier time changes nothing.
    pub fn set_progress(&self, now: Time) {
        let word = &self.counters.progress;
        if word.load(Ordering::Relaxed) < now.0 {
            word.store(now.0, Ordering::Relaxed);
        }
    }

    /// Publishes what the connections of a transport over a network ask for. Where an endpoint has
    /// several ways, what each of them asks for adds up.
    pub fn note_protection(&self, protect: Protect) {
        self.note(match protect {
            Protect::Plain => CLEAR,
            Protect::Prefer => SEALED | CLEAR,
            Protect::Sealed => SEALED,
        });
    }

    /// Publishes that times are those of a virtual network.
    pub fn note_virtual(&self) {
        self.note(VIRTUAL);
    }

    /// Adds flags to those of the page, which nobody else writes.
    fn note(&self, flags: u32) {
        let word = &self.counters.flags;
        word.store(word.load(Ordering::Relaxed) | flags, Ordering::Relaxed);
    }

    /// The counters page of this endpoint.
    #[inline(always)]
    #[must_use]
    pub fn counters(&self) -> &Page {
        &self.counters
    }

    /// Lets other processes of this user read the counters (`docs/design/counters.md`). Where the
    /// system does not allow that, they stay private.
    pub fn publish_counters(&mut self, transport: &str, uri: &str) {
        let page = &self.counters;
        let now = monotonic().0;
        page.transport.set(transport);
        page.uri.set(uri);
        page.opened.store(now, Ordering::Relaxed);
        if page.flags.load(Ordering::Relaxed) & VIRTUAL == 0 {
            page.progress.store(now, Ordering::Relaxed);
        }
        self.publish_gauges();
        // An endpoint works without public counters.
        let _ = self.counters.publish();
    }

    /// Publishes the gauges: how many slots are in use. Not called for each message
    /// (`docs/design/counters.md`).
    pub fn publish_gauges(&self) {
        let state = if self.is_endpoint_armed() { ARMED } else { 0 } | if self.is_starving() { STARVING } else { 0 };
        let page = &self.counters;
        let [recv_taken, recv_lent, recv_limit] = self.recv_gauges();
        let [[send_taken, send_limit], [rma_taken, rma_limit]] = self.slots.send_gauges();
        for (word, value) in [
            (&page.recv_taken, recv_taken),
            (&page.recv_lent, recv_lent),
            (&page.recv_limit, recv_limit),
            (&page.send_taken, send_taken),
            (&page.send_limit, send_limit),
            (&page.rma_taken, rma_taken),
            (&page.rma_limit, rma_limit),
        ] {
            word.store(value as u64, Ordering::Relaxed);
        }
        page.state.store(state, Ordering::Relaxed);
    }
}
