//! The memory of one peer: its registrations, and the segments of its library memory that are
//! mapped here.

use crate::memory::registry::{PeerRegistry, Target};
use crate::memory::segment::PeerSegment;
use cci_mem::segment::Segment;
use std::collections::BTreeMap;

/// Segments of library memory that one peer may have this side map.
const MAX_SEGMENTS: usize = 1 << 16;

/// The memory of one peer.
#[derive(Default)]
pub(crate) struct PeerMemory {
    registry: Option<PeerRegistry>,
    /// By their numbers at the peer.
    segments: BTreeMap<u64, PeerSegment>,
    /// Bytes of `segments`.
    mapped: u64,
}

impl PeerMemory {
    /// The peer's registrations are known from now on.
    pub(crate) fn set_registry(&mut self, registry: PeerRegistry) {
        self.registry = Some(registry);
    }

    /// The peer's registrations, while the lane is usable.
    #[inline]
    pub(crate) fn registry(&mut self) -> Option<&mut PeerRegistry> {
        self.registry.as_mut()
    }

    /// Whether the target lies in a segment that the peer has sent and this side has not mapped.
    #[inline]
    pub(crate) fn lacks(&self, target: &Target) -> bool {
        target.segment != 0 && !self.segments.contains_key(&target.segment)
    }

    /// The segment in which the target lies, if it is mapped.
    pub(crate) fn segment(&self, target: &Target) -> Option<&PeerSegment> {
        self.segments.get(&target.segment)
    }

    /// The registrations, and the segment in which the target lies, if it is mapped.
    #[inline]
    pub(crate) fn parts(&mut self, target: &Target) -> (Option<&PeerRegistry>, Option<&mut PeerSegment>) {
        (self.registry.as_ref(), self.segments.get_mut(&target.segment))
    }

    /// Whether a further segment of `len` bytes is mapped, of at most `limit` bytes together.
    pub(crate) fn has_room_for(&self, len: u64, limit: u64) -> bool {
        self.segments.len() < MAX_SEGMENTS && self.mapped.saturating_add(len) <= limit
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
