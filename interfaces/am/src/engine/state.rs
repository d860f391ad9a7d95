//! The state of an endpoint, and its parts in a call.

use super::clock::Clock;
use super::context::Context;
use crate::credits::Pool;
use crate::handlers::Handlers;
use crate::mapping::Mapping;
use crate::options::Options;
use crate::outbox::Outbox;
use crate::peers::{Peer, Source, Table, Target};
use crate::records::Records;
use crate::staging::Staging;
use crate::wire::{HEAD, MAX_ARGUMENTS, RemoteSegment, SEGMENT};
use cci::Memory;
use std::collections::VecDeque;

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
    pub(super) fn count_part(&mut self) {
        self.parts = self.parts.wrapping_add(1);
        self.clock.single = 0;
    }

    /// The most bytes of a payload beside 16 arguments, in a message of at most `most` bytes.
    pub(crate) fn longest_in_place(&self, most: usize) -> usize {
        self.options.longest_medium.min(most.saturating_sub(HEAD))
    }

    pub(crate) fn context_of(peer: Peer) -> u64 {
        Context::Target(peer).pack()
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

/// A request whose payload was cut, and of which parts have not left.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) target: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) sent: usize,
}

/// The segment, if there is one.
#[derive(Debug)]
pub(crate) struct OwnSegment<R> {
    pub(crate) now: Option<(Memory, R)>,
    /// Which segment this is, counted.
    pub(crate) epoch: u32,
}

impl<R> OwnSegment<R> {
    pub(crate) fn len(&self) -> u64 {
        self.now.as_ref().map_or(0, |(memory, _)| memory.len())
    }

    /// The memory, if the range lies within it.
    pub(crate) fn range(&self, offset: u64, len: u64) -> Option<&Memory> {
        let (memory, _) = self.now.as_ref()?;
        offset.checked_add(len).filter(|end| *end <= memory.len()).map(|_| memory)
    }

    /// What a peer gets to know; one that is not accepted, nothing.
    pub(crate) fn notice<M: Mapping<Region = R>>(&self, is_accepted: bool) -> [u8; SEGMENT] {
        let shown = self.now.as_ref().filter(|_| is_accepted);
        RemoteSegment::emit(shown.map(|(memory, region)| (M::handle(region), memory.len())), self.epoch)
    }
}

/// An endpoint in a call: the parts that handlers and the engine may change, apart.
pub(crate) struct Turn<'t, S, M: Mapping> {
    pub(crate) mapping: &'t M,
    pub(crate) core: &'t mut Core<M>,
    pub(crate) state: &'t mut S,
    pub(crate) handlers: &'t Handlers<S>,
}
