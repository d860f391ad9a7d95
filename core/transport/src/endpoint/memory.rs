//! Memory that peers may copy: what the endpoint owns of it, and copies that outlive a call.

mod core;

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

fn key(handle: &RmaHandle) -> Key {
    Key(handle.name())
}
