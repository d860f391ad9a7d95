//! The memory of one peer: its registrations, and the segments of its library memory that are
//! mapped here.

use crate::memory::chunks::further_len;
use crate::memory::registry::PeerRegistry;
use crate::memory::segment::PeerSegment;
use cci_mem::segment::Segment;
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;

/// Segments of library memory that one peer may have this side map.
const MAX_SEGMENTS: usize = 1 << 16;

/// The memory of one peer.
#[derive(Default)]
pub(crate) struct PeerMemory {
    registry: Option<PeerRegistry>,
    /// By their numbers at the peer.
    segments: BTreeMap<u64, PeerSegment>,
    /// Bytes of `segments`, and of the registrations beyond their first chunk.
    mapped: u64,
}

impl PeerMemory {
    /// The peer's registrations are known from now on.
    pub(crate) fn set_registry(&mut self, registry: PeerRegistry) {
        self.registry = Some(registry);
    }

    /// The peer's registrations, while the lane is usable.
    #[inline(always)]
    pub(crate) fn registry(&mut self) -> Option<&mut PeerRegistry> {
        self.registry.as_mut()
    }

    /// Whether the segment with this number, which a target names, is not mapped; 0 is none.
    #[inline(always)]
    pub(crate) fn lacks(&self, segment: u64) -> bool {
        segment != 0 && !self.segments.contains_key(&segment)
    }

    /// The segment with this number, if it is mapped.
    pub(crate) fn segment(&self, number: u64) -> Option<&PeerSegment> {
        self.segments.get(&number)
    }

    /// The registrations, and the segment with this number, if it is mapped.
    #[inline(always)]
    pub(crate) fn parts(&mut self, segment: u64) -> (Option<&PeerRegistry>, Option<&mut PeerSegment>) {
        (self.registry.as_ref(), self.segments.get_mut(&segment))
    }

    /// Whether a further segment of `len` bytes is mapped, of at most `limit` bytes together.
    pub(crate) fn has_room_for(&self, len: u64, limit: u64) -> bool {
        self.segments.len() < MAX_SEGMENTS && self.mapped.saturating_add(len) <= limit
    }

    /// Enters a further chunk of the peer's registrations, of this number and length, as far as it
    /// can be mapped, of at most `limit` bytes together. False: there is no such chunk, or it is
    /// not the next one.
    pub(crate) fn add_chunk(&mut self, fd: Option<OwnedFd>, (number, bytes): (u64, u64), limit: u64) -> bool {
        let has_room = self.has_room_for(bytes, limit);
        let Some(chunks) = self.registry.as_mut().map(PeerRegistry::chunks) else { return false };
        let next = chunks.next_number();
        let Some(len) = further_len(next).filter(|len| u64::from(next) == number && *len as u64 == bytes) else {
            return false;
        };
        self.mapped += chunks.add(fd.filter(|_| has_room), len) as u64;
        true
    }

    /// Enters a segment that the peer has sent.
    pub(crate) fn insert(&mut self, number: u64, segment: Segment) {
        self.remove(number);
        self.mapped += segment.len() as u64;
        self.segments.insert(number, PeerSegment::new(segment));
    }

    /// The peer has registered nothing more in this segment.
    pub(crate) fn remove(&mut self, number: u64) {
        self.mapped -= self.segments.remove(&number).map_or(0, |segment| segment.len() as u64);
    }
}
