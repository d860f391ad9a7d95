//! The queue of events of an endpoint, and what the call that ends has returned of it.

mod core;

use super::cell::Endpoint;
use crate::{Connection, Slot};
use cci_mem::pool::Queue;

/// Calls of `get_event` that may return waiting events before one makes progress.
const POPS_BETWEEN_PROGRESS: u32 = 15;

/// The events that wait for the program.
pub(super) struct Events {
    queue: Queue<Connection, Endpoint>,
    /// The program got an event since the transport last settled.
    popped: bool,
    /// A call answered that there is no event, since the transport last settled.
    empty: bool,
    /// Further calls of `get_event` that may return waiting events before one makes progress.
    pops_left: u32,
}

impl Events {
    /// No events, of an endpoint with these slots.
    pub(super) fn new(slots: &'static [Slot]) -> Self {
        Self { queue: Queue::new(slots), popped: false, empty: false, pops_left: POPS_BETWEEN_PROGRESS }
    }

    /// The newest event that waits.
    #[inline]
    pub(super) fn newest(&self) -> Option<&'static Slot> {
        self.queue.last()
    }

    /// Queues a filled slot behind an event, if that waits still.
    pub(super) fn insert_behind(&mut self, before: Option<&'static Slot>, slot: &'static Slot) {
        self.queue.insert_behind(before, slot);
    }
}
