//! What a request asks of its target.

use crate::queue::Facts;
use crate::types::ProcessId;

/// A request as its target sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) initiator: ProcessId,
    pub(crate) uid: u32,
    pub(crate) jid: u32,
    pub(crate) portal: u32,
    pub(crate) access: u32,
    pub(crate) bits: u64,
    /// Options that the memory descriptor needs.
    pub(crate) operation: u32,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) header: u64,
}

impl Wanted {
    /// What events tell of it, with the place that was found.
    #[inline]
    pub(crate) fn facts(&self, offset: u64, length: u64, link: u32) -> Facts {
        Facts {
            initiator: self.initiator,
            uid: self.uid,
            jid: self.jid,
            portal: self.portal,
            bits: self.bits,
            rlength: self.length,
            mlength: length,
            offset,
            header: self.header,
            link,
            failure: 0,
        }
    }
}
