//! Peers whose frames come from another address than that of their connection. Their frames have
//! the identifiers of the connection, and are dropped: an address is proved by the handshake only.

use crate::Address;
use alloc::collections::BTreeMap;

/// Connections for which such frames are counted at a time. Of further ones nothing is known.
const MOST: usize = 1024;

/// The frames of the peer of one connection that came from another address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Where the last of them came from.
    pub from: Address,
    /// How many there were.
    pub frames: u64,
}

/// Such frames, by connection.
#[derive(Default)]
pub(crate) struct MovedPeers(BTreeMap<u32, Moved>);

impl MovedPeers {
    /// Counts a frame.
    pub(crate) fn note(&mut self, index: u32, from: &Address) {
        if let Some(moved) = self.0.get_mut(&index) {
            moved.from = *from;
            moved.frames += 1;
        } else if self.0.len() < MOST {
            self.0.insert(index, Moved { from: *from, frames: 1 });
        }
    }

    /// What was counted for a connection.
    pub(crate) fn of(&self, index: u32) -> Option<Moved> {
        self.0.get(&index).copied()
    }

    /// Forgets a connection that is removed.
    pub(crate) fn forget(&mut self, index: u32) {
        self.0.remove(&index);
    }
}
