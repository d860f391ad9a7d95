//! Connection requests that the program has not answered.

use crate::Slot;
use std::collections::BTreeMap;

/// Unanswered requests, by the slots in which the program sees them. `R` is what the transport
/// needs to answer one.
pub struct PendingRequests<R>(BTreeMap<usize, R>);

impl<R> Default for PendingRequests<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<R> PendingRequests<R> {
    /// Adds the request that this slot shows, or puts it back when it could not be answered.
    pub fn insert(&mut self, slot: &'static Slot, request: R) {
        self.0.insert(key(slot), request);
    }

    /// The request that this slot shows. `None`: its client is gone.
    #[must_use]
    pub fn get(&self, slot: &'static Slot) -> Option<&R> {
        self.0.get(&key(slot))
    }

    /// Takes the request that this slot shows. `None`: its client is gone.
    pub fn take(&mut self, slot: &'static Slot) -> Option<R> {
        self.0.remove(&key(slot))
    }

    /// Removes the requests of which `is_gone` returns true, because their clients are gone.
    /// Returns whether there was one.
    pub fn forget(&mut self, mut is_gone: impl FnMut(&R) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|_, request| !is_gone(request));
        self.0.len() < before
    }

    /// Removes all requests.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The requests, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = &R> + '_ {
        self.0.values()
    }

    /// How many requests there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn key(slot: &'static Slot) -> usize {
    std::ptr::from_ref(slot).addr()
}
