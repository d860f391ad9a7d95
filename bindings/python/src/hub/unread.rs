//! Messages that the program has not received: which of them stay where they arrived, and which
//! are copied, so that those of one peer leave receive buffers for the others.

use crate::opened::{Held, Payload};
use cci::Received;
use std::collections::VecDeque;

/// Bytes that are copied for one peer while buffers are plenty.
const OF_PEER: usize = 1 << 20;
/// Bytes that are copied for all peers of an endpoint, for each of its receive buffers.
const OF_BUFFER: usize = 16 << 10;
/// What a copy takes beside its bytes.
const COST: usize = 64;

/// The messages of one peer, in their order.
#[derive(Default)]
pub(crate) struct Unread {
    messages: VecDeque<Payload>,
    /// How many of them hold a receive buffer.
    in_place: usize,
    /// Bytes of those that were copied, with their cost.
    copied: usize,
}

/// The same of all peers together.
pub(crate) struct Totals {
    /// Receive buffers of the endpoint.
    buffers: usize,
    in_place: usize,
    copied: usize,
}

impl Totals {
    pub(crate) fn new(buffers: usize) -> Self {
        Self { buffers, in_place: 0, copied: 0 }
    }

    /// Whether half of what may be copied is used: no peer is paused before that.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.copied > self.most() / 2
    }

    /// Bytes that may still be copied.
    fn left(&self) -> usize {
        self.most().saturating_sub(self.copied)
    }

    /// Bytes that are copied at most.
    fn most(&self) -> usize {
        self.buffers.saturating_mul(OF_BUFFER)
    }

    /// Whether a message stays where it arrived; `held`: buffers that the program holds. One peer
    /// has a quarter of the buffers, and all have a half. Further messages are copied, within the
    /// limit of their peer. Those beyond that take buffers again, but the last eighth, and are
    /// copied within the limit of all.
    fn stays(&self, of: &Unread, len: usize, held: usize) -> bool {
        if of.in_place < (self.buffers / 4).max(1) && self.in_place < (self.buffers / 2).max(1) {
            return true;
        }
        let has_room = self.copied + len + COST <= self.most();
        let is_within = of.copied + len + COST <= OF_PEER;
        !has_room || !is_within && self.in_place + held < self.buffers - self.buffers.div_ceil(8)
    }
}

impl Unread {
    /// Takes a message that has arrived.
    #[inline]
    pub(crate) fn push(&mut self, message: Received<'_>, totals: &mut Totals, held: usize) {
        let len = message.len();
        if !totals.stays(self, len, held)
            && let Some(bytes) = copied(&message)
        {
            self.copied += len + COST;
            totals.copied += len + COST;
            self.messages.push_back(Payload::Copied(bytes));
            return;
        }
        self.in_place += 1;
        totals.in_place += 1;
        self.messages.push_back(Payload::InPlace(Held::new(cci::Event::Received(message))));
    }

    /// Whether the peer is to wait: more of it is copied than is left for everybody. So one peer
    /// has a half, and each of many has as much as is left.
    #[inline]
    pub(crate) fn is_over(&self, totals: &Totals) -> bool {
        self.copied > totals.left()
    }

    /// Whether a peer that waits is to go on.
    #[cold]
    pub(crate) fn has_room_again(&self, totals: &Totals) -> bool {
        self.messages.is_empty() || self.copied <= totals.left() / 2
    }

    /// The next message.
    #[inline]
    pub(crate) fn pop(&mut self, totals: &mut Totals) -> Option<Payload> {
        let message = self.messages.pop_front()?;
        match &message {
            Payload::InPlace(_) => {
                self.in_place -= 1;
                totals.in_place -= 1;
            }
            Payload::Copied(bytes) => {
                self.copied -= bytes.len() + COST;
                totals.copied -= bytes.len() + COST;
            }
        }
        Some(message)
    }

    /// Takes back the message that came last out of it.
    pub(crate) fn put_back(&mut self, message: Payload, totals: &mut Totals) {
        match &message {
            Payload::InPlace(_) => {
                self.in_place += 1;
                totals.in_place += 1;
            }
            Payload::Copied(bytes) => {
                self.copied += bytes.len() + COST;
                totals.copied += bytes.len() + COST;
            }
        }
        self.messages.push_front(message);
    }

    /// Copies what lies in receive buffers, and gives these back: nothing follows, and the program
    /// may read it late or never.
    pub(crate) fn leave_buffers(&mut self, totals: &mut Totals) {
        for message in &mut self.messages {
            let Payload::InPlace(held) = &*message else { continue };
            let Some(bytes) = held.received().and_then(copied) else { continue };
            let cost = bytes.len() + COST;
            if totals.copied + cost > totals.most() {
                return;
            }
            self.in_place -= 1;
            totals.in_place -= 1;
            self.copied += cost;
            totals.copied += cost;
            *message = Payload::Copied(bytes);
        }
    }

    /// Forgets all messages.
    pub(crate) fn clear(&mut self, totals: &mut Totals) {
        totals.in_place -= self.in_place;
        totals.copied -= self.copied;
        *self = Self::default();
    }
}

/// The bytes of a message; `None`: there is no memory for them.
fn copied(message: &Received<'_>) -> Option<Box<[u8]>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(message.len()).ok()?;
    bytes.resize(message.len(), 0);
    message.copy_to(&mut bytes);
    Some(bytes.into_boxed_slice())
}
