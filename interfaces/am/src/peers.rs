//! The peers of an endpoint: targets of its requests, and sources of requests to it.

use crate::credits::Loan;
use crate::errors::Status;
use crate::wire::{Header, MAX_ARGUMENTS, RemoteSegment};
use cci_slab::{Key, Slab};

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
    pub(crate) key: u64,
}

impl Peer {
    #[inline]
    pub(crate) const fn index(self) -> u32 {
        self.key as u32
    }
}

impl Key for Peer {
    #[inline]
    fn from_u64(key: u64) -> Self {
        Self { key }
    }

    #[inline]
    fn to_u64(self) -> u64 {
        self.key
    }
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
const _: () = assert!(size_of::<(u64, Option<Target<::cci::Connection>>)>() <= 160);

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

const GENERATION_BITS: u32 = 28;
/// Keys of peers, to fit the contexts of operations.
pub(crate) const KEY_BITS: u32 = 32 + GENERATION_BITS;

/// Peers by key, and by index.
pub(crate) type Table<T> = Slab<T, Peer, 32, GENERATION_BITS>;

pub(crate) const fn table<T>() -> Table<T> {
    Table::new(Peer { key: 0 }, u32::MAX)
}
