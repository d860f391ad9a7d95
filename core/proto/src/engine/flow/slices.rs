//! Frames of which slices have arrived.

use super::pieces::Pieces;
use crate::{Address, Time};
use alloc::vec;
use alloc::vec::Vec;

/// Most incomplete frames of an endpoint, and of one connection.
const MAX_PARTIAL_FRAMES: usize = 32;
const MOST_OF_ONE: usize = 8;
/// Age after which slices are not of the same frame, nanoseconds. Far below the time in which
/// sequence numbers wrap.
const STALE: u64 = 60_000_000_000;

/// The owner of an incomplete frame: the connection's identifier, the peer's endpoint and network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) id: u64,
    pub(crate) endpoint: Address,
    pub(crate) network: u64,
}

/// A frame of which some slices have arrived.
struct PartialFrame {
    owner: Owner,
    seq: u32,
    /// When the last one came.
    at: Time,
    pieces: Pieces,
    seen: Vec<u64>,
    bytes: Vec<u8>,
}

/// The incomplete frames, bounded in number. A dropped frame is retransmitted by the peer.
#[derive(Default)]
pub(crate) struct Slices(Vec<PartialFrame>);

impl Slices {
    /// Returns the number of incomplete frames.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a slice to its frame. Returns all records of the frame once it is whole.
    pub(crate) fn take(&mut self, now: Time, owner: Owner, seq: u32, record: (u16, u16, &[u8])) -> Option<Vec<u8>> {
        let (total, at, bytes) = record;
        let is_known = |partial: &PartialFrame| partial.owner == owner && partial.seq == seq;
        let is_usable =
            |partial: &PartialFrame| partial.pieces.total == u32::from(total) && now.since(partial.at) < STALE;
        let index = match self.0.iter().position(is_known) {
            Some(index) if is_usable(&self.0[index]) => index,
            Some(index) => {
                self.0.swap_remove(index);
                self.make(now, owner, seq, total)
            }
            None => self.make(now, owner, seq, total),
        };
        let partial = &mut self.0[index];
        partial.at = now;
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if partial.pieces.note(&mut partial.seen, u32::from(at), len) {
            partial.bytes[usize::from(at)..usize::from(at) + bytes.len()].copy_from_slice(bytes);
        }
        partial.pieces.is_whole().then(|| self.0.swap_remove(index).bytes)
    }

    /// Begins a frame. A connection that has its share loses its oldest frame. Without room, the
    /// oldest frame of the connection that holds most is dropped, within the endpoint that holds
    /// most of the network that holds most. The new frame counts, so a greedy peer drops its own
    /// frames.
    fn make(&mut self, now: Time, owner: Owner, seq: u32, total: u16) -> usize {
        let held = |is_same: &dyn Fn(&Owner) -> bool| {
            self.0.iter().map(|partial| &partial.owner).chain([&owner]).filter(|other| is_same(other)).count()
        };
        let is_greedy = held(&|other| *other == owner) > MOST_OF_ONE;
        if is_greedy || self.0.len() >= MAX_PARTIAL_FRAMES {
            let rank = |partial: &PartialFrame| {
                let Owner { id, endpoint, network } = partial.owner;
                let by_network = held(&|other| other.network == network);
                let by_endpoint = held(&|other| other.endpoint == endpoint);
                (by_network, by_endpoint, held(&|other| other.id == id), core::cmp::Reverse(partial.at))
            };
            let candidates = self.0.iter().enumerate().filter(|(_, partial)| !is_greedy || partial.owner == owner);
            if let Some((oldest, _)) = candidates.max_by_key(|(_, partial)| rank(partial)) {
                self.0.swap_remove(oldest);
            }
        }
        let bytes = vec![0; usize::from(total)];
        self.0.push(PartialFrame { owner, seq, at: now, pieces: Pieces::of(total.into()), seen: Vec::new(), bytes });
        self.0.len() - 1
    }
}
