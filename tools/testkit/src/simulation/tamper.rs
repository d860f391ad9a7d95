//! Deliberate damage, to see that it is found.

use cci_proto::wire::{self, Kind};
use std::collections::BTreeSet;

/// How a node's retransmission is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tamper {
    /// It is not.
    None,
    /// What this node sends again is never sent.
    SwallowResent(u32),
    /// What this node sends again has another last byte, under a check that is right.
    SpoilResent(u32),
}

/// What tampering has to remember: the sequenced frames that have been sent.
#[derive(Debug)]
pub(super) struct Tampering {
    tamper: Tamper,
    sent: BTreeSet<(u64, u32)>,
}

impl Tampering {
    pub(super) fn new(tamper: Tamper) -> Self {
        Self { tamper, sent: BTreeSet::new() }
    }

    /// A node is about to send a frame that is not sealed yet. False: it is not to be sent.
    pub(super) fn passes(&mut self, node: u32, head: &mut [u8], whole: bool) -> bool {
        let (Tamper::SwallowResent(of) | Tamper::SpoilResent(of)) = self.tamper else { return true };
        if of != node || !self.is_resent(head) {
            return true;
        }
        if let (Tamper::SpoilResent(_), Some(last)) = (self.tamper, head.last_mut()) {
            *last ^= u8::from(whole);
            return true;
        }
        false
    }

    fn is_resent(&mut self, head: &[u8]) -> bool {
        let Some(header) = wire::Header::parse(head).filter(|header| header.kind == Kind::Data) else { return false };
        // Sequence number and flags of DATA.
        let Some(([.., a, b, c, d], [flags, ..])) = head.get(..36).zip(head.get(36..)) else { return false };
        let seq = u32::from_be_bytes([*a, *b, *c, *d]);
        flags & wire::flags::SEQUENCED != 0 && !self.sent.insert((header.to, seq))
    }
}
