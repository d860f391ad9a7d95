//! The counters page of an endpoint: who may read it, and the gauges in it.

use super::Core;
use crate::monotonic;
use cci_mem::counters::{ARMED, Page, STARVING, VIRTUAL};
use cci_mem::sync::Ordering;

impl Core {
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
        let state = if self.is_armed() { ARMED } else { 0 } | if self.is_starving() { STARVING } else { 0 };
        let page = &self.counters;
        let [recv_taken, recv_lent, recv_limit] = self.slots.recv_gauges();
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
