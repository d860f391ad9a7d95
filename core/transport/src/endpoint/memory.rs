//! Memory that peers may copy: what the endpoint owns of it, and copies that outlive a call.

use super::Core;
use crate::PeerCopy;
use cci_mem::memory::Memory;
use cci_proto::RmaHandle;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// The words of a handle that name a registration.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key([u64; 2]);

/// The second word is random, and this side's own: it needs no hash.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0[1]);
    }
}

/// Gives a word back.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What peers may copy of the memory that the endpoint owns, and what they still copy.
#[derive(Default)]
pub(super) struct SharedWithPeers {
    /// A hash map, which allocates nothing once it has been as full as it becomes.
    owned: HashMap<Key, Memory, BuildHasherDefault<AsItIs>>,
    /// Registrations that the program has dropped while a peer was copying.
    dropped: Vec<RmaHandle>,
    unfinished: Vec<Box<dyn PeerCopy>>,
    busy_peer: Option<String>,
}

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

fn key(handle: &RmaHandle) -> Key {
    Key(handle.name())
}
