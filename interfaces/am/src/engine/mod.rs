//! The engine: what an endpoint does with messages, whatever mapping carries them.

mod incoming;
mod local;
mod notices;
mod replies;
mod requests;
mod segment;
mod serving;
mod time;

pub(crate) use requests::{Attempt, Bulk, Patience};
pub(crate) use segment::OwnSegment;

use crate::credits::Pool;
use crate::errors::{RequestError, Status};
use crate::handlers::Handlers;
use crate::mapping::{Incoming, Mapping};
use crate::message::Returned;
use crate::options::Options;
use crate::outbox::Outbox;
use crate::peers::{Peer, Source, Table, Target};
use crate::records::Records;
use crate::staging::Staging;
use crate::wire::{HEAD, Head, MAX_ARGUMENTS};
/// For the fuzz targets.
pub(crate) mod fuzzing {
    pub(crate) use super::incoming::{arguments_of, assembly};
}

use requests::Unsent;
use std::collections::VecDeque;
use time::Clock;

/// Messages that one poll takes at most.
const BURST: usize = 64;

/// The state of an endpoint apart from its mapping, its handlers and the program's state.
pub(crate) struct Core<M: Mapping> {
    pub(crate) targets: Table<Target<M::Channel>>,
    pub(crate) sources: Table<Source<M::Channel>>,
    pub(crate) records: Records,
    pub(crate) outbox: Outbox,
    pub(crate) reply_region: M::Region,
    pub(crate) staging: Staging<M::Region>,
    pub(crate) segment: OwnSegment<M::Region>,
    pub(crate) options: Options,
    /// What requests name as their source.
    pub(crate) introduction: Box<str>,
    pub(crate) tag: u64,
    pub(crate) pool: Pool,
    /// Peers that a notice waits for.
    pub(crate) due: VecDeque<Due>,
    /// Sources with ended requests that were not reported yet.
    pub(crate) batching: Vec<u32>,
    /// Parts of requests that found no room, oldest first.
    pub(crate) unsent: VecDeque<Unsent>,
    /// Parts of long messages that have come, but for the last of each.
    pub(crate) parts: usize,
    /// The message that is being put together.
    pub(crate) scratch: Vec<u8>,
    /// The arguments of the short message whose handler runs.
    pub(crate) arguments: [u32; MAX_ARGUMENTS],
    pub(crate) clock: Clock,
}

impl<M: Mapping> Core<M> {
    pub(crate) fn clock(timeout: std::time::Duration) -> Clock {
        Clock::new(timeout)
    }

    /// Counts a part of a long message that is not its last: more of it is on its way.
    fn count_part(&mut self) {
        self.parts = self.parts.wrapping_add(1);
        self.clock.single = 0;
    }

    /// The most bytes of a payload beside 16 arguments, in a message of at most `most` bytes.
    pub(crate) fn longest_in_place(&self, most: usize) -> usize {
        self.options.longest_medium.min(most.saturating_sub(HEAD))
    }

    pub(crate) fn context_of(peer: Peer) -> u64 {
        Context::Target(peer.index, peer.generation).pack()
    }
}

/// A peer that a notice waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    Source(u32),
    Target(u32),
    /// A target whose credits have just come.
    Fresh(u32),
}

/// What an operation or a channel was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// A target, index and generation: its channel, and messages to it.
    Target(u32, u32),
    Source(u32, u32),
    /// A bulk request from this staging buffer.
    Staged(u32, u32),
    /// A bulk request from the segment.
    InPlace(u32),
    /// The bulk reply in this buffer.
    Reply(u32),
    Get(u32),
}

const LOW: u64 = 0xffff_ffff;

impl Context {
    #[inline]
    pub(crate) const fn pack(self) -> u64 {
        let (tag, high, low) = match self {
            Self::Target(index, generation) => (0, generation, index),
            Self::Source(index, generation) => (1, generation, index),
            Self::Staged(buffer, id) => (2, buffer, id),
            Self::InPlace(id) => (3, 0, id),
            Self::Reply(buffer) => (4, 0, buffer),
            Self::Get(id) => (5, 0, id),
        };
        (tag << 60) | (high as u64) << 32 | low as u64
    }

    #[inline]
    pub(crate) const fn unpack(word: u64) -> Self {
        let (high, low) = ((word >> 32) as u32 & 0x0fff_ffff, (word & LOW) as u32);
        match word >> 60 {
            0 => Self::Target(low, high),
            1 => Self::Source(low, high),
            2 => Self::Staged(high, low),
            3 => Self::InPlace(low),
            4 => Self::Reply(low),
            _ => Self::Get(low),
        }
    }
}

/// An endpoint in a call: the parts that handlers and the engine may change, apart.
pub(crate) struct Turn<'t, S, M: Mapping> {
    pub(crate) mapping: &'t M,
    pub(crate) core: &'t mut Core<M>,
    pub(crate) state: &'t mut S,
    pub(crate) handlers: &'t Handlers<S>,
}

impl<S, M: Mapping> Turn<'_, S, M> {
    /// Takes what has come, runs handlers, and sends what waits. Never waits.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<usize, RequestError> {
        let mapping = self.mapping;
        let mut found = mapping.poll(BURST, |incoming| self.take(incoming)).map_err(|_| RequestError::Unusable)?;
        // To look for another behind a single message would hold up its answer. It is done where
        // the poll before has found one, too, until it was in vain.
        if found > self.core.clock.single {
            found += self.take_more(found);
        }
        self.after(found);
        Ok(found)
    }

    /// Takes what else is there, up to the messages of one poll: a transport gives a few frames at
    /// a time. Of a program that polls rarely many wait, and long ones have many parts.
    #[inline(never)]
    fn take_more(&mut self, before: usize) -> usize {
        let (mapping, parts) = (self.mapping, self.core.parts);
        let mut found = 0;
        while before + found - self.core.parts.wrapping_sub(parts).min(found) < BURST {
            // Not the closure of `poll`: with two places to call it from, none would be inlined.
            match mapping.poll(BURST, |incoming| self.take_another(incoming)) {
                Ok(more) if more > 0 => found += more,
                // An endpoint that fails says so by the next poll.
                _ => break,
            }
        }
        self.core.clock.single = usize::from(before + found == 1);
        found
    }

    #[inline(never)]
    fn take_another(&mut self, incoming: Incoming<'_, M::Channel, M::Asking<'_>>) {
        self.take(incoming);
    }

    /// What follows each poll.
    #[inline]
    fn after(&mut self, found: usize) {
        let core = &*self.core;
        if core.outbox.buffers.queue.len() | core.unsent.len() | core.due.len() > 0 {
            self.flush();
        }
        self.count_poll(found);
    }

    /// Sends what waits, as far as there is room.
    #[inline(never)]
    fn flush(&mut self) {
        self.flush_replies();
        self.flush_unsent();
        self.flush_due();
    }

    /// Gives a request back to the program: it has ended.
    pub(crate) fn give_back(&mut self, peer: Peer, head: &Head, status: Status) {
        let mut arguments = [0; MAX_ARGUMENTS];
        let count = head.arguments(&mut arguments);
        if let Some(handler) = self.handlers.of_returned() {
            let arguments = &arguments[..count];
            let (sort, is_reply, at) = (head.sort(), head.is_reply(), head.handler());
            handler(self.state, Returned { status, handler: at, sort, is_reply, arguments, peer });
        }
    }

    /// Ends a record of a target and gives its request back.
    pub(crate) fn return_record(&mut self, id: u32, status: Status) {
        let Some(record) = self.core.records.get(id) else { return };
        let (index, head) = (record.target, record.head);
        self.core.records.end(id);
        let generation = self.core.targets.generation(index);
        if let Some(target) = self.core.targets.get(index) {
            target.on_end(0);
        }
        self.give_back(Peer { index, generation }, &head, status);
    }
}

#[cfg(test)]
mod tests {
    use super::Context;

    #[test]
    fn contexts_are_unpacked_as_they_were_packed() {
        let (most, bits) = (u32::MAX, (1 << crate::peers::GENERATION_BITS) - 1);
        for context in [
            Context::Target(most, bits),
            Context::Source(0, bits),
            Context::Staged(7, most),
            Context::InPlace(most),
            Context::Reply(3),
            Context::Get(most),
        ] {
            assert_eq!(Context::unpack(context.pack()), context);
        }
    }
}
