//! Records that leave as one frame, and the operations that end with it.

use super::frame_pool::Buffer;
use crate::Time;
use crate::engine::connection::conn::NONE;
use crate::engine::host::Op;
use alloc::vec::Vec;

/// Operations that end when a frame is acknowledged: a list linked through `Engine::links`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ops {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl Ops {
    pub(crate) const NONE: Self = Self { head: NONE, tail: NONE };
}

/// Sets what follows an operation in its list.
pub(crate) fn link(links: &mut Vec<u32>, op: Op, next: u32) {
    let at = op.0 as usize;
    if links.len() <= at {
        links.resize(at + 1, NONE);
    }
    links[at] = next;
}

/// Appends one list of operations to another.
pub(crate) fn join(links: &mut [u32], first: Ops, second: Ops) -> Ops {
    if first.head == NONE {
        return second;
    }
    if second.head == NONE {
        return first;
    }
    if let Some(next) = links.get_mut(first.tail as usize) {
        *next = second.head;
    }
    Ops { head: first.head, tail: second.tail }
}

/// Records in a buffer that leave as one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) buffer: Buffer,
    /// Bytes of records.
    pub(crate) len: u16,
    /// Messages among them; each needs a slot of the peer.
    pub(crate) messages: u16,
    pub(crate) ops: Ops,
    /// The operation of its message, or of the first of its messages. Every part of a long message
    /// has it too. [`NONE`]: it has results or requests of RMA, and no message.
    pub(crate) of: u32,
    /// Whether another message may be appended.
    pub(crate) is_open: bool,
    /// Whether the peer is asked to acknowledge at once.
    pub(crate) prompt: bool,
    /// When the first of its operations began.
    pub(crate) since: Time,
}

impl Batch {
    /// Takes the first `most` operations out of it.
    pub(super) fn take_ops(&mut self, most: usize, links: &[u32]) -> Ops {
        if most == 0 || self.ops.head == NONE {
            return Ops::NONE;
        }
        let head = self.ops.head;
        let mut tail = head;
        for _ in 1..most {
            if tail == self.ops.tail {
                break;
            }
            tail = links.get(tail as usize).copied().unwrap_or(self.ops.tail);
        }
        if tail == self.ops.tail {
            self.ops = Ops::NONE;
        } else {
            self.ops.head = links.get(tail as usize).copied().unwrap_or(NONE);
        }
        Ops { head, tail }
    }
}
