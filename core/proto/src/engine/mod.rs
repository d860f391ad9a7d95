//! The reliability engine: frames in, frames out. It does no I/O, reads no clock and starts no
//! thread. Every call gets the time as `now`, and the driver owns sockets, slots and memory
//! ([`Host`]). So the same code runs over sockets, over raw Ethernet, and in a simulated network in
//! virtual time.
//!
//! Methods come in four kinds: application calls (`connect`, `send`, `rma`, ...), input
//! (`handle_*`), output (`poll_*`), and getters. After any of the first two, call `poll_transmit`
//! until it returns `None`, and `handle_timeout` at the time that `poll_timeout` returns.
//!
//! Who owns what: `docs/design/engine.md`. What travels: `docs/wire.md`.

mod ack;
mod admission;
mod assembly;
mod congestion;
mod conn;
mod copy_verify;
mod ending;
mod farewell;
mod fast_path;
mod flow;
mod frame;
mod frame_pool;
mod handshake;
mod host;
mod ids;
mod mtu;
mod pieces;
mod random;
mod receive;
mod records;
mod refusals;
mod reply;
mod reply_limit;
mod requests;
mod rtt;
mod send;
mod slices;
mod table;
mod timeout;
mod timer;
mod transmit;
mod waits;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;

pub use fast_path::Post;
pub use host::{Event, Host, Index, MessageBuffer, Op, Source, Target};
pub use waits::{Wait, WaitsFor};

use crate::{Address, Attribute, Time};
use admission::Admission;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use conn::{Conn, SmallPeers, bit};
use core::time::Duration;
use flow::{Flow, Flows};
use frame_pool::FramePool;
use handshake::Opening;
use random::Random;
use reply::Reply;
use reply_limit::ReplyLimit;
use send::{OrderedEnd, RmaState};
use slices::Slices;
use table::Table;
use timer::Timers;

/// Configuration of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Largest frame that the link can carry on any path, bytes.
    pub mtu: u16,
    /// Largest frame that every path carries, to begin with.
    pub base_mtu: u16,
    /// Largest message, bytes.
    pub max_send_size: u32,
    /// Size of this endpoint's receive buffer, bytes of frames.
    pub recv_buffer: u32,
    /// Frames of messages that may wait or be in flight, whole endpoint.
    pub frames: u32,
    /// Frames held back (out of order, or waiting for a slot), whole endpoint.
    pub holds: u32,
    /// Operations that the host numbers, at most 2^20.
    pub operations: u32,
    /// Number of the host on which this endpoint runs; 0 = unknown.
    pub host: u64,
    /// Whether payload checks may be left out between two endpoints of one host that both set this.
    pub unchecked_on_host: bool,
    /// First sequence number, so that tests reach every wrap; `None`: at random.
    pub first_seq: Option<u32>,
}

/// A connection to be made.
#[derive(Clone, Copy, Debug)]
pub struct Open<'a> {
    /// The peer's endpoint.
    pub to: Address,
    /// Attribute of the connection.
    pub attribute: Attribute,
    /// Payload of the request.
    pub payload: &'a [u8],
    /// Cookie of the host, passed with every call of [`Host`]. Not the cookie of the handshake.
    pub host_cookie: u32,
    /// Time to wait for the answer; `None`: 30 s.
    pub timeout: Option<Duration>,
    /// Token that the peer expects after a redirection; otherwise 0.
    pub token: u64,
}

/// An RMA to be started.
#[derive(Clone, Copy, Debug)]
pub struct Rma<'a> {
    /// The host's number of the operation.
    pub op: Op,
    /// The peer's memory.
    pub target: Target,
    /// Whether it reads from the peer's memory. Otherwise it writes into it.
    pub read: bool,
    /// Whether it begins after all earlier operations of the connection and ends before all later
    /// ones begin.
    pub fence: bool,
    /// Delivered to the peer after the data.
    pub message: Option<&'a [u8]>,
}

/// One frame to be sent: bytes at the start of the buffer, then registered memory. The driver fills
/// in its length and check by [`seal`](crate::wire::seal).
#[derive(Clone, Copy, Debug)]
pub struct Transmit<P> {
    /// Destination.
    pub to: Address,
    /// Bytes in the buffer.
    pub len: usize,
    /// Registered memory that follows.
    pub piece: Option<P>,
    /// Bytes of that memory.
    pub piece_len: u32,
    /// Whether the check covers that memory.
    pub checked: bool,
    /// Whether this is a path probe for a larger MTU. It must not be fragmented, and its loss is no
    /// sign of congestion.
    pub probe: bool,
}

/// State of a connection, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Smoothed round-trip time, nanoseconds; 0 = not measured.
    pub rtt_ns: u64,
    /// Frames that may be in flight.
    pub window: u32,
    /// Estimated rate of the path, bytes per second; 0 = not measured.
    pub rate: u64,
    /// Largest frame of the path, bytes.
    pub mtu: u16,
    /// Frames in flight.
    pub in_flight: u32,
    /// Frames retransmitted.
    pub resent: u64,
    /// Times that the peer had no slot.
    pub rnr: u32,
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames sent.
    pub sent: u64,
    /// Frames received whose connection is known.
    pub received: u64,
    /// Frames retransmitted.
    pub resent: u64,
    /// Duplicate frames.
    pub duplicates: u64,
    /// Frames for no known connection.
    pub strays: u64,
    /// Malformed frames.
    pub malformed: u64,
    /// Spurious losses.
    pub spurious: u64,
    /// Frames dropped because nothing more could be held back.
    pub unheld: u64,
    /// Frames refused for lack of a slot.
    pub rnr: u64,
    /// Times that a peer had no slot.
    pub not_ready: u64,
}

/// Largest frame of messages. Larger frames gain little, and every buffer has this size. A message
/// of 8 KiB, the default maximum, fits as a whole.
const MESSAGE_FRAME: usize = (8 << 10) + crate::wire::DATA + crate::wire::MESSAGE_HEAD;
/// Frames of one connection in a row, before other connections get their turn.
const QUANTUM: u32 = 64;

/// One endpoint's connections and what is in flight on them.
pub struct Engine {
    config: Config,
    cookie_key: [u64; 2],
    random: Random,
    table: Table,
    small_peers: SmallPeers,
    flows: Flows,
    frames: FramePool,
    holds: FramePool,
    /// Frames of which slices have come.
    slices: Slices,
    timers: Timers,
    /// The next operation of each, in lists of operations that end together.
    links: Vec<u32>,
    /// RMAs by their operation's number.
    rmas: Vec<Option<RmaState>>,
    /// RO: operations whose end is reported in order, by number.
    ordered_ends: Vec<OrderedEnd>,
    /// Connections that have something to send.
    ready: VecDeque<u32>,
    in_a_row: u32,
    /// Connections that wait for a receive slot.
    awaiting_slot: VecDeque<u32>,
    /// Answers that need no state.
    replies: VecDeque<Reply>,
    /// Limits the replies to strangers.
    reply_limit: ReplyLimit,
    /// Connections that are being opened or closed.
    openings: BTreeMap<u32, Opening>,
    /// Open connections whose frames the network refuses.
    refusals: BTreeMap<u32, refusals::Refusals>,
    /// Recent requests, so that a repeated CONNECT is no second request.
    admission: Admission,
    expected: Vec<u64>,
    /// Counts RMAs; part of their number on the wire.
    lives: u32,
    /// Number of the next message that is cut into parts. It is common to all connections, so it
    /// outlives their flows.
    parts: u32,
    /// Connections that wait for a frame buffer.
    awaiting_frame: VecDeque<u32>,
    /// Whether the engine gave a slot back itself.
    freed: bool,
    stats: Stats,
}

impl Engine {
    /// Bytes of a buffer for a frame of messages, at most; `Config::frames` and `Config::holds`
    /// count such buffers.
    pub const FRAME: usize = MESSAGE_FRAME;

    /// Returns how many buffers a message of this length fills on a link with this MTU.
    #[must_use]
    pub fn frames_of(message: u32, mtu: u16) -> u32 {
        let capacity = stride(mtu);
        if crate::wire::MESSAGE_HEAD + message as usize <= capacity {
            return 1;
        }
        let part = capacity.saturating_sub(crate::wire::PART_HEAD).max(1);
        u32::try_from((message as usize).div_ceil(part)).unwrap_or(u32::MAX)
    }

    /// Creates an engine without connections. `random` comes from the system's generator and is
    /// secret.
    #[must_use]
    pub fn new(config: &Config, random: [u64; 8]) -> Self {
        let stride = stride(config.mtu);
        Self {
            config: *config,
            cookie_key: [random[0], random[1]],
            random: Random::new([random[2] ^ random[4], random[3] ^ random[5]]),
            table: Table::new(),
            small_peers: SmallPeers::default(),
            flows: Flows::new(),
            frames: FramePool::new(config.frames, stride),
            holds: FramePool::new(config.holds, stride),
            slices: Slices::default(),
            timers: Timers::new(),
            links: Vec::new(),
            rmas: Vec::new(),
            ordered_ends: Vec::new(),
            ready: VecDeque::with_capacity(64),
            in_a_row: 0,
            awaiting_slot: VecDeque::new(),
            replies: VecDeque::with_capacity(reply::MAX_REPLIES),
            reply_limit: ReplyLimit::new(),
            openings: BTreeMap::new(),
            refusals: BTreeMap::new(),
            admission: Admission::default(),
            expected: Vec::new(),
            lives: 0,
            parts: config.first_seq.unwrap_or(0),
            awaiting_frame: VecDeque::new(),
            freed: false,
            stats: Stats::default(),
        }
    }

    /// Returns when to call `handle_timeout` or `poll_transmit` next; `None`: not before another
    /// call.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.has_output() { Some(Time(0)) } else { self.timers.next() }
    }

    /// Returns whether `poll_transmit` may find something at any time.
    #[inline]
    fn has_output(&self) -> bool {
        let frame_came_back = !self.awaiting_frame.is_empty() && self.frames.left() > 0;
        frame_came_back || self.freed || !self.ready.is_empty() || !self.replies.is_empty()
    }

    /// The peer's address.
    #[must_use]
    pub fn address(&self, index: Index) -> Option<Address> {
        self.table.get(index.0).map(|conn| conn.to)
    }

    /// Returns this side's identifier of a connection, as frames carry it.
    #[must_use]
    pub fn identifier(&self, index: Index) -> Option<u64> {
        self.table.get(index.0).map(|conn| conn.id)
    }

    /// What there is to say about a connection.
    #[must_use]
    pub fn report(&self, index: Index) -> Report {
        let Some(conn) = self.table.get(index.0) else { return Report::default() };
        let mut report = Report { rtt_ns: u64::from(conn.srtt) * 1000, mtu: conn.mtu, ..Report::default() };
        let mtu = u64::from(conn.mtu.max(1));
        let mut window = u64::from(conn.peer_buffer);
        if let Some(flow) = self.flows.get(conn.flow) {
            window = window.min(flow.congestion.window(mtu));
            report.rate = flow.congestion.rate();
            report.in_flight = u32::try_from(flow.in_flight.len()).unwrap_or(u32::MAX);
            (report.resent, report.rnr) = (flow.resent, flow.rnrs);
        }
        report.window = u32::try_from(window / mtu).unwrap_or(u32::MAX);
        report
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns how many frame buffers were given back so far. A call refused for lack of buffers
    /// may succeed once this has changed.
    #[must_use]
    pub fn released(&self) -> u64 {
        self.frames.given
    }

    /// Returns whether nothing is in flight, nothing waits, and no acknowledgement is pending.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.ready.is_empty()
            && self.replies.is_empty()
            && self.openings.is_empty()
            && self.timers.next_ack().is_none()
            && self.flows.iter().all(Flow::is_quiet)
    }

    /// Appends a connection to the list of those that have something to send.
    fn make_ready(&mut self, index: u32) {
        if let Some(conn) = self.table.get_mut(index) {
            get_ready(conn, index, &mut self.ready);
        }
    }
}

/// Bytes of a buffer on a link with this MTU.
fn stride(mtu: u16) -> usize {
    MESSAGE_FRAME.min(usize::from(mtu)) - crate::wire::DATA
}

/// As [`Engine::make_ready`], for a connection at hand.
fn get_ready(conn: &mut Conn, index: u32, ready: &mut VecDeque<u32>) {
    if !conn.has(bit::READY) {
        conn.set(bit::READY);
        ready.push_back(index);
    }
}

/// Returns the flow of a connection, and takes one if it has none.
fn flow_of<'f>(flows: &'f mut Flows, conn: &mut Conn, index: u32) -> Option<&'f mut Flow> {
    if conn.flow == conn::NONE {
        conn.flow = flows.take(index);
    }
    flows.get_mut(conn.flow)
}
