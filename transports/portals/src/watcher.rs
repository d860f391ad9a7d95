//! The wait for an event while the program sleeps on the OS handle.
//!
//! The event queue has one reader at a time: calls of the program while the watcher is parked, the
//! watcher while it watches.

use crate::sys::{Event, Interface};
use cci_over::Wait;
use std::sync::Arc;

/// The wait of an event queue.
pub(crate) struct Queue {
    pub(crate) interface: Arc<Interface>,
    pub(crate) queue: u32,
}

impl Wait for Queue {
    type Found = Event;

    fn wait(&self) -> Option<Event> {
        // Freed: the endpoint closes.
        self.interface.wait(self.queue).ok()
    }
}
