//! The peers of an endpoint: targets of its requests, and sources of requests to it.

use crate::credits::Loan;
use crate::errors::Status;
use crate::wire::{Header, MAX_ARGUMENTS, RemoteSegment};

/// A peer that an endpoint has mapped: a small value that names it. It is stale once the peer is
/// unmapped, and never names a later one.
///
/// # Example
///
/// ```
/// fn same(a: cci_am::Peer, b: cci_am::Peer) -> bool {
///     a == b
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// How far the way to a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way<C> {
    Connecting,
    Open(C),
    Broken,
    /// This endpoint itself.
    Local,
}

/// A mapped peer.
#[derive(Debug)]
pub(crate) struct Target<C> {
    pub(crate) way: Way<C>,
    /// What it is mapped with.
    pub(crate) tag: u64,
    pub(crate) segment: Option<RemoteSegment>,
    /// Bytes of its longest message.
    pub(crate) longest: u32,
    /// Credits that no request uses.
    pub(crate) available: u32,
    /// Open requests.
    pub(crate) open: u32,
    /// The tick of its last sign of life while requests are open.
    pub(crate) tick: u32,
    /// Credits that it asks back; 0: none.
    pub(crate) revoked: u32,
    /// Credits to be given back.
    pub(crate) release: Option<u32>,
    /// Flushes for which credits that have just come stay, so that the program can use them between
    /// two polls.
    pub(crate) fresh: u8,
    pub(crate) is_alive: bool,
    /// A credit was asked for, and none has come.
    pub(crate) is_wanting: bool,
    pub(crate) want_is_due: bool,
    pub(crate) segment_is_due: bool,
    /// Parts of a request have not left.
    pub(crate) is_cut: bool,
    pub(crate) assembly: Option<Box<Assembly>>,
}

/// What a mapped peer may take beyond its connection, bytes.
const _: () = assert!(size_of::<Slot<Target<::cci::Connection>>>() <= 160);

impl<C> Target<C> {
    pub(crate) fn new(way: Way<C>, tag: u64) -> Self {
        Self {
            way,
            tag,
            segment: None,
            longest: 0,
            available: 0,
            open: 0,
            tick: 0,
            revoked: 0,
            release: None,
            fresh: 0,
            is_alive: true,
            is_wanting: false,
            want_is_due: false,
            segment_is_due: false,
            is_cut: false,
            assembly: None,
        }
    }

    /// A request to it has begun, with so many of its credits.
    #[inline]
    pub(crate) fn on_begin(&mut self, credits: u32) {
        self.is_alive |= self.open == 0;
        self.open += 1;
        self.available -= credits;
    }

    /// A request to it has ended, and so many credits have come back.
    #[inline]
    pub(crate) fn on_end(&mut self, kept: u32) {
        self.open -= 1;
        self.available += kept;
        self.is_alive = true;
    }
}

/// A peer that sends requests.
#[derive(Debug)]
pub(crate) struct Source<C> {
    /// None until the channel is open.
    pub(crate) channel: Option<C>,
    pub(crate) name: Box<str>,
    pub(crate) tag: u64,
    /// Whether this endpoint accepts that tag.
    pub(crate) is_accepted: bool,
    pub(crate) segment: Option<RemoteSegment>,
    pub(crate) longest: u32,
    pub(crate) loan: Loan,
    /// Requests that ended without a reply, and how many of their credits come back.
    pub(crate) ended: Vec<u32>,
    pub(crate) kept: u32,
    pub(crate) grant: u32,
    /// The tick when it was asked to give credits back.
    pub(crate) asked_at: u32,
    pub(crate) segment_is_due: bool,
    pub(crate) revoke_is_due: bool,
    pub(crate) assembly: Option<Box<Assembly>>,
}

/// A message in parts.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) header: Header,
    pub(crate) arguments: [u32; MAX_ARGUMENTS],
    /// Bytes of the whole payload.
    pub(crate) total: usize,
    /// Bytes that have come.
    pub(crate) came: usize,
    /// The bytes; none where it is refused.
    pub(crate) bytes: Vec<u8>,
    pub(crate) refused: Option<Status>,
}

/// Peers by index, each with a generation that tells it from the next in its place.
#[derive(Debug)]
pub(crate) struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    peer: Option<T>,
}

/// Generations have so many bits, to fit the contexts of operations.
pub(crate) const GENERATION_BITS: u32 = 28;

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Enters a peer: its index and generation.
    pub(crate) fn enter(&mut self, peer: T) -> (u32, u32) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, peer: None });
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = &mut self.slots[index as usize];
        slot.peer = Some(peer);
        (index, slot.generation)
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        let peer = slot.peer.take()?;
        slot.generation = (slot.generation + 1) & ((1 << GENERATION_BITS) - 1);
        self.free.push(index);
        Some(peer)
    }

    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.peer.as_mut()
    }

    /// The peer, unless another one is in its place.
    #[inline]
    pub(crate) fn of(&mut self, (index, generation): (u32, u32)) -> Option<&mut T> {
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation == generation { slot.peer.as_mut() } else { None }
    }

    #[inline]
    pub(crate) fn generation(&self, index: u32) -> u32 {
        self.slots[index as usize].generation
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> + use<T> {
        0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }
}
