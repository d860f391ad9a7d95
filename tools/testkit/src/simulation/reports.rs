//! What routers say, and what they may quote.

use cci_proto::Address;
use cci_sim::network::Time;
use std::collections::BTreeMap;

/// Bytes of a frame that a router quotes, at most.
pub(super) const QUOTED: usize = 64;

/// Something that a router says to the sender of a frame.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) at: Time,
    pub(super) to: Address,
    pub(super) quoted: Vec<u8>,
    /// The largest frame that passes, or that nobody is there.
    pub(super) limit: Option<u16>,
}

/// What routers have to say to a node, and what they may quote.
#[derive(Debug, Default)]
pub(super) struct Reports {
    pub(super) waiting: Vec<Report>,
    /// The last frame of each connection, by its identifier: where it went, and how it begins.
    pub(super) last: BTreeMap<u64, (Address, Vec<u8>)>,
}

impl Reports {
    /// When the next is said.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.waiting.iter().map(|report| report.at).min()
    }

    /// A sealed frame leaves, whose identifier names its connection.
    pub(super) fn note(&mut self, to: Address, frame: &[u8]) {
        let Some(from) = frame.get(16..24).and_then(|bytes| bytes.first_chunk()) else { return };
        let (last_to, last) = self.last.entry(u64::from_be_bytes(*from)).or_default();
        *last_to = to;
        last.clear();
        last.extend_from_slice(&frame[..frame.len().min(QUOTED)]);
    }
}
