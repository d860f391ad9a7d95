//! Memory that peers may copy: what the endpoint owns of it, and copies that outlive a call.

use super::Core;
use crate::PeerCopy;
use cci_mem::memory::Memory;
use cci_proto::RmaHandle;
use std::collections::BTreeMap;

/// The words of a handle that name a registration.
type Key = [u64; 2];

/// Memory that the endpoint owns while it is registered.
struct OwnedMemory {
    memory: Memory,
    /// The program has dropped the registration while a peer was copying.
    is_dropped: bool,
}

/// What peers may copy of the memory that the endpoint owns, and what they still copy.
#[derive(Default)]
pub(super) struct SharedWithPeers {
    owned: BTreeMap<Key, OwnedMemory>,
    unfinished: Vec<Box<dyn PeerCopy>>,
    busy_peer: Option<String>,
}

impl Core {
    /// Keeps memory until [`Core::release_memory`] for the same registration, or until the endpoint
    /// closes.
    pub fn own_memory(&mut self, handle: &RmaHandle, memory: Memory) {
        self.peers.owned.insert(key(handle), OwnedMemory { memory, is_dropped: false });
    }

    /// Drops the endpoint's share of the memory of a registration that has ended.
    pub fn release_memory(&mut self, handle: &RmaHandle) {
        self.peers.owned.remove(&key(handle));
    }

    /// Records that the program has dropped a registration. Its memory stays until
    /// [`Core::release_memory`].
    pub fn note_dropped(&mut self, handle: &RmaHandle) {
        if let Some(owned) = self.peers.owned.get_mut(&key(handle)) {
            owned.is_dropped = true;
        }
    }

    /// Handles of the registrations that the program has dropped and whose memory the endpoint
    /// still owns.
    #[must_use]
    pub fn dropped_registrations(&self) -> Vec<RmaHandle> {
        let is_left = |owned: &OwnedMemory| owned.is_dropped && !owned.memory.is_empty();
        let left = self.peers.owned.iter().filter(|(_, owned)| is_left(owned));
        left.map(|([index, secret], _)| RmaHandle::from_words([*index, *secret, 0, 0])).collect()
    }

    /// Takes all memory that the endpoint owns, when it closes.
    pub fn take_owned_memory(&mut self) -> Vec<Memory> {
        std::mem::take(&mut self.peers.owned).into_values().map(|owned| owned.memory).collect()
    }

    /// Records a peer's copy that was under way when the transport closed.
    pub fn note_unfinished(&mut self, copy: Box<dyn PeerCopy>) {
        self.peers.unfinished.push(copy);
    }

    /// Takes the copies that were under way when the transport closed.
    pub fn take_unfinished(&mut self) -> Vec<Box<dyn PeerCopy>> {
        std::mem::take(&mut self.peers.unfinished)
    }

    /// Records the peer because of which a deregistration is refused.
    pub fn note_busy_peer(&mut self, peer: String) {
        self.peers.busy_peer = Some(peer);
    }

    /// Takes the name of the peer because of which the last deregistration was refused.
    pub fn take_busy_peer(&mut self) -> Option<String> {
        self.peers.busy_peer.take()
    }
}

fn key(handle: &RmaHandle) -> Key {
    let [index, secret, ..] = handle.words();
    [index, secret]
}
