//! The hubs that one thread has opened for calls that wait. A wait of that thread on one of them
//! serves the others, since nobody else does: a connect to a server of the same thread, and
//! messages between the two.

use super::inner::{BATCH, Inner};
use super::state::Changes;
use crate::waiting::Sleeper;
use cci::Endpoint;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

thread_local! {
    static OPENED_HERE: RefCell<Vec<Weak<Inner>>> = const { RefCell::new(Vec::new()) };
}

/// From now on waits of this thread serve this hub.
pub(super) fn enter(hub: &Arc<Inner>) {
    OPENED_HERE.with_borrow_mut(|opened| {
        opened.retain(|hub| hub.strong_count() > 0);
        opened.push(Arc::downgrade(hub));
    });
}

/// The other hubs that a wait of this thread serves.
pub(super) struct Others {
    /// Open ones that no other thread waits on, with their endpoints.
    hubs: Vec<(Arc<Inner>, Arc<Endpoint>)>,
    /// Another thread waits on one more, and may stop.
    pub(super) are_more: bool,
}

impl Others {
    /// Those beside this one.
    pub(super) fn beside(hub: &Arc<Inner>) -> Self {
        let mut others = Self { hubs: Vec::new(), are_more: false };
        OPENED_HERE.with_borrow(|opened| {
            for other in opened.iter().filter_map(Weak::upgrade) {
                if Arc::ptr_eq(&other, hub) || !other.is_here() {
                    continue;
                }
                if other.sleepers.has_waits() {
                    others.are_more = true;
                } else if let Some(endpoint) = other.opened.share() {
                    others.hubs.push((other, endpoint));
                }
            }
        });
        others
    }

    /// Takes events of each. True: there were some.
    pub(super) fn serve(&self, py: Python<'_>) -> bool {
        self.hubs.iter().fold(false, |found, (hub, endpoint)| hub.serve(py, endpoint) | found)
    }

    /// Announces a sleeper at each.
    pub(super) fn announce(&self, py: Python<'_>) -> Vec<Sleeper<'_>> {
        self.hubs.iter().filter_map(|(hub, endpoint)| hub.sleepers.announce(py, endpoint).ok()).collect()
    }
}

impl Inner {
    /// Takes events that have come. An error is for the calls of this hub, which find it too.
    fn serve(&self, py: Python<'_>, endpoint: &Endpoint) -> bool {
        let mut changes = Changes::default();
        let found = {
            let mut state = self.state();
            endpoint.poll(BATCH, |event| state.handle(endpoint, event, &mut changes))
        };
        let is_found = self.looked(py, endpoint, found.map(|number| number > 0), &mut changes).unwrap_or(false);
        if is_found {
            self.sleepers.wake();
        }
        is_found
    }
}
