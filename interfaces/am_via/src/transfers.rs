//! Bulk data of v1 under way, and messages that have overtaken others.

use cci::Memory;
use std::collections::VecDeque;

/// Bytes on their way to the peer.
pub(crate) struct Outgoing {
    pub(crate) memory: Memory,
    pub(crate) offset: u64,
    /// The peer's handle, or the number of its read.
    pub(crate) number: u32,
    pub(crate) remote_offset: u64,
    pub(crate) left: u64,
    /// Of a write: what follows, and the context.
    pub(crate) write: Option<(Vec<u8>, u64)>,
}

/// Bytes that this side has asked for.
pub(crate) struct Incoming {
    pub(crate) number: u32,
    pub(crate) memory: Memory,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) came: u64,
    pub(crate) context: u64,
}

/// A message that has overtaken others: its pipe, its receive buffer, its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    pub(crate) order: u16,
    pub(crate) pipe: usize,
    pub(crate) buffer: u16,
    pub(crate) len: usize,
}

#[derive(Default)]
pub(crate) struct Bulk {
    /// The number of the next message that leaves, and of the next that is taken.
    pub(crate) order: u16,
    pub(crate) expected: u16,
    pub(crate) held: Vec<Held>,
    pub(crate) queue: VecDeque<Outgoing>,
    pub(crate) reads: Vec<Incoming>,
    pub(crate) last_read: u32,
}

impl Bulk {
    /// The contexts of what ends with the channel.
    pub(crate) fn broken(&self) -> Vec<u64> {
        let writes = self.queue.iter().filter_map(|outgoing| outgoing.write.as_ref().map(|(_, context)| *context));
        writes.chain(self.reads.iter().map(|read| read.context)).collect()
    }
}
