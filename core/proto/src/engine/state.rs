//! The state of an engine: an endpoint's connections and what is in flight on them.

use super::api::{Config, Protection, Report, Stats};
use super::connection::conn::{Conn, NONE, SmallPeers, State, bit};
use super::connection::exchange::Exchange;
use super::connection::moved::MovedPeers;
use super::connection::sealed::{OVERHEAD, SealedConn, SealedConns};
use super::connection::table::Table;
use super::connection::timer::Timers;
use super::connection::unreachable::Unreachable;
use super::flow::end_order::OrderedEnds;
use super::flow::frame_pool::FramePool;
use super::flow::rma_state::RmaState;
use super::flow::slices::Slices;
use super::flow::{Flow, Flows};
use super::host::Index;
use super::random::Random;
use super::strangers::admission::Admission;
use super::strangers::handshake_limit::HandshakeLimit;
use super::strangers::reply::{MAX_REPLIES, Reply};
use super::strangers::reply_limit::ReplyLimit;
use crate::{Address, Time};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

/// Largest frame of messages. Larger frames gain little, and every buffer has this size. A message
/// of 8 KiB, the default maximum, fits as a whole.
const MESSAGE_FRAME: usize = (8 << 10) + crate::wire::DATA + crate::wire::MESSAGE_HEAD;

/// One endpoint's connections and what is in flight on them.
pub struct Engine {
    pub(super) config: Config,
    pub(super) cookie_key: [u64; 2],
    pub(super) random: Random,
    pub(super) table: Table,
    pub(super) small_peers: SmallPeers,
    /// Peers whose frames come from other addresses.
    pub(super) moved: MovedPeers,
    pub(super) sealed: SealedConns,
    /// Where sealed frames are opened; empty until one comes.
    pub(super) scratch: Vec<u8>,
    pub(super) flows: Flows,
    pub(super) frames: FramePool,
    pub(super) holds: FramePool,
    /// Frames of which slices have come.
    pub(super) slices: Slices,
    pub(super) timers: Timers,
    /// The next operation of each, in lists of operations that end together.
    pub(super) links: Vec<u32>,
    /// RMAs by their operation's number.
    pub(super) rmas: Vec<Option<RmaState>>,
    /// RO: the ends that are reported in order.
    pub(super) ordered_ends: OrderedEnds,
    /// Connections that have something to send.
    pub(super) ready: VecDeque<u32>,
    pub(super) in_a_row: u32,
    /// Connections that wait for a receive slot.
    pub(super) awaiting_slot: VecDeque<u32>,
    /// Answers that need no state.
    pub(super) replies: VecDeque<Reply>,
    /// Limits the replies to strangers.
    pub(super) reply_limit: ReplyLimit,
    /// Limits the sealed handshakes of strangers.
    pub(super) handshake_limit: HandshakeLimit,
    /// Connections that are being opened or closed.
    pub(super) exchanges: BTreeMap<u32, Exchange>,
    /// Bodies of the CLOSEs of connections that this side gave up, until their hosts close them.
    pub(super) farewells: BTreeMap<u32, Box<[u8]>>,
    /// Open connections whose peers the network reports as unreachable.
    pub(super) unreachable: BTreeMap<u32, Unreachable>,
    /// Recent requests, so that a repeated CONNECT is no second request.
    pub(super) admission: Admission,
    pub(super) expected: Vec<u64>,
    /// Counts RMAs; part of their number on the wire.
    pub(super) lives: u32,
    /// Number of the next message that is cut into parts. It is common to all connections, so it
    /// outlives their flows.
    pub(super) parts: u32,
    /// Connections that wait for a frame buffer.
    pub(super) awaiting_frame: VecDeque<u32>,
    /// Whether the engine gave a slot back itself.
    pub(super) freed: bool,
    pub(super) stats: Stats,
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
            moved: MovedPeers::default(),
            sealed: SealedConns::default(),
            scratch: Vec::new(),
            flows: Flows::new(),
            frames: FramePool::new(config.frames, stride),
            holds: FramePool::new(config.holds, stride),
            slices: Slices::default(),
            timers: Timers::new(),
            links: Vec::new(),
            rmas: Vec::new(),
            ordered_ends: OrderedEnds::default(),
            ready: VecDeque::with_capacity(64),
            in_a_row: 0,
            awaiting_slot: VecDeque::new(),
            replies: VecDeque::with_capacity(MAX_REPLIES),
            reply_limit: ReplyLimit::new(),
            handshake_limit: HandshakeLimit::new(),
            exchanges: BTreeMap::new(),
            farewells: BTreeMap::new(),
            unreachable: BTreeMap::new(),
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
    pub(super) fn has_output(&self) -> bool {
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
        let rtt = (conn.srtt > 0).then(|| Duration::from_micros(conn.srtt.into()));
        let mut report = Report { rtt, mtu: conn.mtu, moved: self.moved.of(index.0), ..Report::default() };
        let mtu = u64::from(conn.mtu.max(1));
        let mut window = u64::from(conn.peer_buffer);
        if let Some(flow) = self.flows.get(conn.flow) {
            window = window.min(flow.congestion.window(mtu));
            report.rate = flow.congestion.rate();
            report.in_flight = u32::try_from(flow.send_window.len()).unwrap_or(u32::MAX);
            (report.resent, report.not_ready) = (flow.send_window.resent(), flow.peer.times());
        }
        report.window = u32::try_from(window / mtu).unwrap_or(u32::MAX);
        if let Some(sealed) = self.sealed_conn(index.0) {
            let [send_phase, receive_phase] = sealed.phases();
            report.mtu = report.mtu.saturating_add(OVERHEAD);
            report.protection = Protection::Sealed { send_phase, receive_phase };
        }
        report
    }

    /// Returns the state of a sealed connection that has keys.
    pub(super) fn sealed_conn(&self, index: u32) -> Option<&SealedConn> {
        let conn = self.table.get(index).filter(|conn| conn.has(bit::SEALED) && conn.state != State::Requested)?;
        debug_assert!(conn.state != State::Asking);
        self.sealed.get(index)
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
            && self.exchanges.is_empty()
            && self.timers.next_ack().is_none()
            && self.flows.iter().all(Flow::is_quiet)
    }

    /// Appends a connection to the list of those that have something to send.
    pub(super) fn mark_ready(&mut self, index: u32) {
        if let Some(conn) = self.table.get_mut(index) {
            mark_conn_ready(conn, index, &mut self.ready);
        }
    }

    /// Returns the flow of a connection, if it has one.
    pub(super) fn flow_mut(&mut self, index: u32) -> Option<&mut Flow> {
        let flow = self.table.get(index)?.flow;
        self.flows.get_mut(flow)
    }
}

/// Bytes of a buffer on a link with this MTU.
fn stride(mtu: u16) -> usize {
    MESSAGE_FRAME.min(usize::from(mtu)) - crate::wire::DATA
}

/// As [`Engine::mark_ready`], for a connection at hand.
pub(super) fn mark_conn_ready(conn: &mut Conn, index: u32, ready: &mut VecDeque<u32>) {
    if !conn.has(bit::READY) {
        conn.set(bit::READY);
        ready.push_back(index);
    }
}

/// Returns the flow of a connection, and takes one if it has none.
pub(super) fn flow_of<'f>(flows: &'f mut Flows, conn: &mut Conn, index: u32) -> Option<&'f mut Flow> {
    if conn.flow == NONE {
        conn.flow = flows.take(index);
    }
    flows.get_mut(conn.flow)
}
