//! The methods of [`Core`] for memory that peers may copy.

use super::key;
use crate::{Core, PeerCopy};
use cci_mem::memory::Memory;
use cci_proto::RmaHandle;

impl Core {
    /// Keeps memory until [`Core::release_memory`] for the same registration, or until the endpoint
    /// closes.
    pub fn own_memory(&mut self, handle: &RmaHandle, memory: Memory) {
        self.peers.owned.insert(key(handle), memory);
    }

    /// Drops the endpoint's share of the memory of a registration that has ended.
    pub fn release_memory(&mut self, handle: &RmaHandle) {
        self.peers.owned.remove(&key(handle));
        self.peers.dropped.retain(|dropped| key(dropped) != key(handle));
    }

    /// Records that the program has dropped a registration while a peer was copying. Its memory
    /// stays until [`Core::release_memory`].
    pub fn add_dropped(&mut self, handle: &RmaHandle) {
        self.peers.dropped.push(*handle);
    }

    /// Handles of the registrations that the program has dropped and whose memory the endpoint
    /// still owns.
    #[must_use]
    pub fn dropped_registrations(&self) -> Vec<RmaHandle> {
        self.peers.dropped.clone()
    }

    /// Takes all memory that the endpoint owns, when it closes.
    pub fn take_owned_memory(&mut self) -> Vec<Memory> {
        self.peers.dropped.clear();
        std::mem::take(&mut self.peers.owned).into_values().collect()
    }

    /// Records a peer's copy that was under way when the transport closed.
    pub fn keep_unfinished(&mut self, copy: Box<dyn PeerCopy>) {
        self.peers.unfinished.push(copy);
    }

    /// Takes the copies that were under way when the transport closed.
    pub fn take_unfinished(&mut self) -> Vec<Box<dyn PeerCopy>> {
        std::mem::take(&mut self.peers.unfinished)
    }

    /// Records the peer because of which a deregistration is refused.
    pub fn add_busy_peer(&mut self, peer: String) {
        self.peers.busy_peer = Some(peer);
    }

    /// Takes the name of the peer because of which the last deregistration was refused.
    pub fn take_busy_peer(&mut self) -> Option<String> {
        self.peers.busy_peer.take()
    }
}
