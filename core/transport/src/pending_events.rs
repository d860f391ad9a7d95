//! Events about connections that found no free slot.

use crate::{Connection, Core};
use cci_proto::{EventKind, Time};
use std::time::Duration;

/// How long an event that found no slot waits for the next attempt, at most.
const RETRY: Duration = Duration::from_millis(1);

/// Events that wait for a free slot, in order.
#[derive(Default)]
pub struct PendingEvents(Vec<(EventKind, &'static Connection)>);

impl PendingEvents {
    /// Queues an event about a connection, now or as soon as a slot is free. False: it waits, and
    /// [`PendingEvents::flush`] must follow some time.
    pub fn queue(&mut self, core: &mut Core, kind: EventKind, connection: &'static Connection) -> bool {
        let queued = core.notify(kind, connection);
        if !queued {
            self.0.push((kind, connection));
        }
        queued
    }

    /// Queues the events that waited, as far as slots are free.
    pub fn flush(&mut self, core: &mut Core) {
        let flushed = self.0.iter().take_while(|(kind, connection)| core.notify(*kind, connection)).count();
        self.0.drain(..flushed);
    }

    /// When to flush next, if events wait.
    #[must_use]
    pub fn deadline(&self, now: Time) -> Option<Time> {
        (!self.is_empty()).then(|| now + RETRY)
    }

    /// Drops the events about a connection that the program closes.
    pub fn forget(&mut self, connection: &'static Connection) {
        self.0.retain(|(_, other)| !std::ptr::eq(*other, connection));
    }

    /// Whether no event waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
