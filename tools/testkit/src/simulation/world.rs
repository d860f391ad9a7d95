//! Nodes, each with an engine, over a virtual network.

use super::messages::Stream;
use super::path::Reports;
use super::plan::{End, NODES, Plan};
use super::program;
use super::side::{CheckedHost, ConnectionEvent, Operation, Oracle, Piece, Registration, Side};
use super::tamper::{Tamper, Tampering};
use super::violation::{Rule, Violation};
use cci_proto::engine::{Config, Engine, Index, Stats, Transmit};
use cci_proto::wire::Kind;
use cci_proto::{Address, Failure, wire};
use cci_sim::Random;
use cci_sim::network::{Frame, Graph, Network, NodeIndex, Occurrence, Time};

/// Virtual time in which a world must come to rest, nanoseconds.
const LIMIT: Time = Time(600_000_000_000);
/// Virtual time after which nobody says farewell any more.
const FAREWELL: u64 = 60_000_000_000;
/// So many frames of a million lost or damaged, and every farewell may be lost in one of many runs.
const LOSSY: u32 = 50_000;
/// Occurrences after which a world is taken for one that does not come to rest. Steps of programs
/// that wait for room do not count: where a third of all frames is lost they take minutes.
const OCCURRENCES: u32 = 3_000_000;
/// Occurrences of one moment after which an engine is taken for one that spins.
const AT_ONCE: u32 = 100_000;
/// Frames that one call may bring forth.
const OUTPUTS: u32 = 20_000;

/// Where a side of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not asked for yet.
    Before,
    /// Asked for, or accepted.
    Opening,
    /// Open.
    Open,
    /// The engine said that it is broken.
    Broken,
    /// Over, for this side.
    Over,
}

/// One side of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionEnd {
    pub(super) index: Index,
    pub(super) stage: Stage,
    pub(super) messages: u32,
    pub(super) transfers: u32,
    pub(super) posted: u32,
}

/// A node: its engine, and what the engine is driven with.
pub(super) struct Node {
    pub(super) engine: Engine,
    pub(super) side: Side,
    pub(super) random: Random,
    pub(super) step_at: Option<Time>,
    /// What routers say to it, and the generator of that.
    pub(super) reports: Reports,
    pub(super) router: Random,
    /// Requests that the program has not answered.
    pub(super) requests: Vec<(Index, u32)>,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages posted.
    pub messages: u32,
    /// RMAs posted.
    pub transfers: u32,
    /// Those that change a word.
    pub atomics: u32,
    /// Those that ask for their memory.
    pub large: u32,
    /// Frames handed to the network.
    pub frames: u64,
    /// Frames sent again.
    pub resent: u64,
    /// Slices of frames that the path did not carry any more.
    pub slices: u64,
    /// Messages that left by the fast path.
    pub at_once: u64,
    /// Clients that went where a broker sent them.
    pub redirected: u32,
    /// Frames whose bytes were in memory before they were checked.
    pub copied_unchecked: u32,
    /// Those of them that were broken.
    pub copied_broken: u32,
    /// Connections that ended because a router said that nobody is there.
    pub refused: u32,
    /// Virtual time, nanoseconds.
    pub time: u64,
    /// Occurrences handled, but for steps of programs that found nothing to do.
    pub occurrences: u32,
}

/// A world.
pub struct World {
    pub(super) plan: Plan,
    pub(super) network: Network,
    pub(super) nodes: Vec<Node>,
    pub(super) oracle: Oracle,
    pub(super) connections: Vec<[ConnectionEnd; 2]>,
    /// Where the next RMA's memory lies, for each node.
    pub(super) arena_next: Vec<usize>,
    /// Where the next read of each node's pattern begins.
    pub(super) read_next: Vec<u64>,
    pub(super) totals: Totals,
    pub(super) buffer: Vec<u8>,
    tampering: Tampering,
    at_once: (Time, u32),
}

/// The address of a node.
pub(super) fn address(node: u32) -> Address {
    let mut address = Address::default();
    address.0[..4].copy_from_slice(&(node + 1).to_be_bytes());
    address
}

pub(super) fn node_of(address: &Address) -> u32 {
    u32::from_be_bytes([address.0[0], address.0[1], address.0[2], address.0[3]]).wrapping_sub(1)
}

fn registrations(random: &mut Random, node: u32) -> Vec<Registration> {
    let mut make = |index: u64, arena, read, write| Registration {
        handle: [u64::from(node) << 32 | index, random.next()],
        arena,
        read,
        write,
        alive: true,
    };
    vec![
        make(0, true, false, true),
        make(1, false, true, false),
        make(2, true, false, true),
        make(3, false, true, false),
        make(4, true, false, false),
        make(5, true, true, false),
    ]
}

/// Whether a frame carries a slice of another: the kind of DATA's first record, behind its sack.
fn is_slice(frame: &[u8]) -> bool {
    let sack = frame.get(37).map_or(0, |words| 8 * usize::from(*words));
    frame[1] == Kind::Data as u8 && frame.get(wire::DATA + sack) == Some(&9)
}

impl World {
    /// The world of a plan, in which nothing has happened.
    #[must_use]
    pub fn new(plan: Plan, tamper: Tamper) -> Self {
        let network = Network::new(plan.seed, Graph::mesh(NODES, &plan.link));
        let nodes = (0..NODES).map(|number| {
            let mut random = Random::of(plan.seed, 0x90de, u64::from(number));
            let mut side = Side::new(number, plan.slots, plan.config.operations);
            side.registrations = registrations(&mut random, number);
            side.turn_away = u32::try_from(random.below(3)).unwrap_or(0);
            let secrets = std::array::from_fn(|_| random.next());
            // Two hosts with two of them each.
            let config = Config { machine: u64::from(1 + number / 2), ..plan.config };
            Node {
                engine: Engine::new(&config, secrets),
                side,
                random,
                step_at: Some(Time(0)),
                reports: Reports::default(),
                router: Random::of(plan.seed, 0x90df, u64::from(number)),
                requests: Vec::new(),
            }
        });
        let nodes = nodes.collect();
        let mut oracle = Oracle::default();
        let mut connections = Vec::new();
        for planned in &plan.connections {
            connections.push([0, 1].map(|side| ConnectionEnd {
                index: Index(u32::MAX),
                stage: Stage::Before,
                messages: planned.messages[side],
                transfers: planned.transfers[side],
                posted: 0,
            }));
            for _ in 0..2 {
                oracle.streams.push(Stream::new(planned.attribute));
                let is_cut = matches!(planned.end, End::Rejected | End::Nobody | End::Unreachable { .. });
                oracle.excused.push(planned.send_timeout > 0 || is_cut);
                oracle.over.push(false);
            }
        }
        Self {
            network,
            nodes,
            oracle,
            connections,
            arena_next: vec![0; NODES as usize],
            read_next: vec![0; NODES as usize],
            totals: Totals::default(),
            buffer: vec![0; usize::from(plan.config.mtu).max(2048)],
            tampering: Tampering::new(tamper),
            at_once: (Time(0), 0),
            plan,
        }
    }

    /// Runs to the end. Says the trace hash.
    ///
    /// # Errors
    ///
    /// The first rule that was broken.
    pub fn run(&mut self) -> Result<u64, Violation> {
        for node in 0..self.nodes.len() {
            self.settle(node, true);
        }
        self.until("all that was started ends", LIMIT, |world| world.has_ended() && world.is_quiet())?;
        self.end_keepalive();
        self.until("the network empties", LIMIT, |world| world.is_quiet() && world.network.in_flight() == 0)?;
        self.check_rest()?;
        self.end_connections()
    }

    /// Closes every connection, from one side or both, and sees everything come to an end.
    fn end_connections(&mut self) -> Result<u64, Violation> {
        for connection in 0..self.connections.len() {
            let side = usize::from(self.nodes[0].random.below(2) == 0);
            for side in [side, 1 - side] {
                self.close_if_open(connection, side);
                if self.nodes[0].random.below(2) == 0 {
                    break;
                }
            }
        }
        let patience = Time(self.network.now().0 + FAREWELL);
        let is_empty = |world: &Self| world.is_quiet() && world.network.in_flight() == 0;
        let is_reported = |world: &Self| is_empty(world) && world.is_told() || world.network.now() >= patience;
        self.until("all connections end", patience, is_reported)?;
        // Every farewell of a connection may have been lost, or damaged on the way, which comes to
        // the same.
        let faults = &self.plan.link.faults;
        if !self.is_told() && faults.loss + faults.corrupt < LOSSY {
            self.oracle.violate(Rule::Rest, format!("a connection's end was not reported; {}", self.unrest()));
        }
        for connection in 0..self.connections.len() {
            self.close_if_open(connection, 0);
            self.close_if_open(connection, 1);
        }
        self.until("nothing is left", LIMIT, |world| is_empty(world) && world.is_over())?;
        self.check_slots()?;
        self.totals.resent = self.nodes.iter().map(|node| node.engine.stats().resent).sum();
        self.totals.time = self.network.now().0;
        Ok(self.network.trace())
    }

    /// What the run did.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            copied_unchecked: self.oracle.copied_unchecked,
            copied_broken: self.oracle.copied_unchecked - self.oracle.accepted,
            ..self.totals
        }
    }

    /// Counters of a node's engine.
    #[must_use]
    pub fn stats(&self, node: usize) -> Stats {
        *self.nodes[node].engine.stats()
    }

    fn until(&mut self, what: &str, limit: Time, is_reached: impl Fn(&Self) -> bool) -> Result<(), Violation> {
        while !is_reached(self) {
            self.step(limit);
            if self.oracle.violation.is_none()
                && (self.network.now() >= LIMIT || self.totals.occurrences >= OCCURRENCES)
            {
                let detail =
                    format!("{what}: not by now, after {} occurrences; {}", self.totals.occurrences, self.unrest());
                self.oracle.violate(Rule::Rest, detail);
            }
            if let Some(violation) = self.oracle.violation.clone() {
                return Err(violation);
            }
        }
        self.oracle.violation.clone().map_or(Ok(()), Err)
    }

    /// Moves time to the next occurrence, and handles it.
    fn step(&mut self, limit: Time) {
        let before = self.totals;
        self.totals.occurrences += 1;
        let occurrence = self.network.advance(limit);
        self.oracle.now = self.network.now();
        self.shrink();
        let mut is_idle = false;
        let node = match occurrence {
            Some(Occurrence::Frame(node)) => {
                self.receive(node);
                node.0 as usize
            }
            Some(Occurrence::Wake(node)) => {
                is_idle = !self.wake(node.0 as usize);
                node.0 as usize
            }
            None => return,
        };
        let now = self.network.now();
        self.at_once = if self.at_once.0 == now { (now, self.at_once.1 + 1) } else { (now, 0) };
        if self.at_once.1 > AT_ONCE {
            self.oracle
                .violate(Rule::Bounds, format!("node {node} spins: {:?}", self.nodes[node].engine.poll_timeout()));
        }
        self.listen(node);
        let idle = !self.nodes[node].random.chance(self.plan.hasty);
        self.settle(node, idle);
        if is_idle && self.totals == (Totals { occurrences: self.totals.occurrences, ..before }) {
            self.totals.occurrences = before.occurrences;
        }
    }

    fn receive(&mut self, node: NodeIndex) {
        let now = self.network.now();
        let at = node.0 as usize;
        while let Some(frame) = self.network.take(node) {
            let Frame { from, congested, bytes, .. } = &frame;
            let Node { engine, side, .. } = &mut self.nodes[at];
            let mut host = CheckedHost { side, oracle: &mut self.oracle };
            // One that is broken is dropped.
            let _ = engine.handle_frame(now, &address(from.0), bytes, *congested, &mut host);
            self.network.recycle(frame);
        }
    }

    /// Wakes a node; whether its engine had something to do.
    fn wake(&mut self, at: usize) -> bool {
        let now = self.network.now();
        let node = &mut self.nodes[at];
        let is_due = node.engine.poll_timeout().is_some_and(|due| due <= now);
        if is_due {
            node.engine.handle_timeout(now, &mut CheckedHost { side: &mut node.side, oracle: &mut self.oracle });
        }
        if node.step_at.is_some_and(|due| due <= now) {
            node.step_at = None;
            program::step(self, at);
        }
        is_due
    }

    /// Handles what the engine has reported, sends what it has to send, and sets the node's
    /// wake-up.
    pub(super) fn settle(&mut self, at: usize, idle: bool) {
        while !self.nodes[at].side.connection_events.is_empty() {
            let mut events = std::mem::take(&mut self.nodes[at].side.connection_events);
            for (index, user, event) in events.drain(..) {
                self.on_connection_event(at, index, user, event);
            }
            if self.nodes[at].side.connection_events.is_empty() {
                self.nodes[at].side.connection_events = events;
            }
        }
        self.land(at);
        self.transmit(at, idle);
        let now = self.network.now();
        if self.nodes[at].step_at.is_none() && program::has_work(self, at) {
            let think = self.nodes[at].random.between(1, self.plan.think);
            self.nodes[at].step_at = Some(Time(now.0 + think));
        }
        let node = &self.nodes[at];
        let wake = [node.step_at, node.reports.next_at(), node.engine.poll_timeout()].into_iter().flatten().min();
        self.network.wake_at(NodeIndex(node.side.number), wake);
    }

    /// Gives large messages of peers memory: half of them at once, the others at the next
    /// opportunity, which their sender brings about by asking whether this node is still there.
    fn land(&mut self, at: usize) {
        let Node { engine, side, .. } = &mut self.nodes[at];
        let handle = side.registrations.first().map(|registration| registration.handle);
        side.landings.retain_mut(|asked| {
            let (connection, end) = (asked.user as usize / 2, asked.user as usize % 2);
            let waits = std::mem::take(&mut asked.waits);
            let (Some(ends), Some(handle)) = (self.connections.get(connection), handle) else { return false };
            waits || !engine.answer_large(ends[end].index, asked.operation, Ok(handle))
        });
    }

    fn transmit(&mut self, at: usize, idle: bool) {
        let now = self.network.now();
        for count in 0.. {
            let Node { engine, side, .. } = &mut self.nodes[at];
            let mut host = CheckedHost { side, oracle: &mut self.oracle };
            let Some(frame) = engine.poll_transmit(now, idle, &mut self.buffer, &mut host) else { return };
            let piece = frame.piece.as_ref().map_or(&[][..], |piece| side.piece(piece));
            let len = frame.len + piece.len();
            if piece.len() != frame.piece_len as usize || len > usize::from(self.plan.config.mtu) || count > OUTPUTS {
                let detail =
                    format!("node {at}: output {count} of one call has {len} bytes, {} in memory", frame.piece_len);
                return self.oracle.violate(Rule::Bounds, detail);
            }
            self.let_go(at, &frame);
        }
    }

    /// A frame, written to the buffer, leaves a node.
    pub(super) fn let_go(&mut self, at: usize, frame: &Transmit<Piece>) {
        let side = &self.nodes[at].side;
        let piece = frame.piece.as_ref().map_or(&[][..], |piece| side.piece(piece));
        let len = frame.len + piece.len();
        self.totals.frames += 1;
        self.totals.slices += u64::from(is_slice(&self.buffer[..frame.len]));
        let head = &mut self.buffer[..frame.len];
        if self.tampering.passes(side.number, head, piece.is_empty()) {
            wire::seal(head, piece.len(), |check| if frame.checked { check.update(piece) } else { check });
            self.network.send(NodeIndex(side.number), NodeIndex(node_of(&frame.to)), 0, &[head, piece]);
            self.route(at, frame.to, frame.len, len);
        }
    }

    fn on_connection_event(&mut self, at: usize, index: Index, user: u32, event: ConnectionEvent) {
        if let ConnectionEvent::Request(attribute, payload) = event {
            return program::request(self, at, index, attribute, &payload);
        }
        if let ConnectionEvent::Expected(attribute, token) = event {
            return program::expected(self, at, index, attribute, token);
        }
        if let Some(waiting) = self.nodes[at].requests.iter().position(|(request, _)| *request == index)
            && user == 0
            && matches!(event, ConnectionEvent::Broken(_))
        {
            // The client has given up before it was answered.
            self.nodes[at].requests.swap_remove(waiting);
            let now = self.network.now();
            let Node { engine, side, .. } = &mut self.nodes[at];
            return engine.close(now, index, &mut CheckedHost { side, oracle: &mut self.oracle });
        }
        let (connection, side) = (usize::try_from(user / 2).unwrap_or(usize::MAX), usize::from(user % 2 == 1));
        let Some(ends) = self.connections.get_mut(connection) else {
            return self.oracle.violate(Rule::Handshake, format!("node {at}: {event:?} with cookie {user}"));
        };
        let end = &mut ends[side];
        let planned = &self.plan.connections[connection];
        let excused = self.oracle.excused[connection * 2];
        let unexpected = match (&event, end.stage) {
            (ConnectionEvent::Open(size), Stage::Opening) if *size == self.plan.config.max_send_size => {
                end.stage = Stage::Open;
                let (send, keepalive) = (planned.send_timeout, planned.keepalive);
                if send > 0 || keepalive > 0 {
                    self.nodes[at].engine.set_timeouts(self.network.now(), end.index, send, keepalive);
                }
                return;
            }
            (ConnectionEvent::Redirected(node, token), Stage::Opening)
                if planned.broker.is_some() && planned.nodes[1] == *node =>
            {
                let index = end.index;
                self.totals.redirected += 1;
                return self.nodes[at].engine.follow(self.network.now(), index, address(*node), *token);
            }
            (ConnectionEvent::Refused(failure), Stage::Opening) => {
                end.stage = Stage::Over;
                match planned.end {
                    End::Rejected if side == 0 => *failure != Failure::Refused,
                    End::Nobody if *failure == Failure::Refused => self.plan.tells == 0,
                    End::Nobody => *failure != Failure::TimedOut,
                    _ => !excused,
                }
            }
            (ConnectionEvent::Broken(_), Stage::Opening | Stage::Open) => {
                end.stage = Stage::Broken;
                self.oracle.over[connection * 2 + (1 - side)] = true;
                // The other side will meet a connection that is gone.
                self.oracle.excused[connection * 2] = true;
                self.oracle.excused[connection * 2 + 1] = true;
                !excused
            }
            (ConnectionEvent::Silent, Stage::Open) => planned.keepalive == 0,
            _ => true,
        };
        if unexpected {
            let detail =
                format!("connection {connection}, side {side}, {planned:?}: {event:?} while {:?}", ends[side].stage);
            self.oracle.violate(Rule::Handshake, detail);
        }
    }

    /// One side closes a connection, if it has one.
    pub(super) fn close_if_open(&mut self, connection: usize, side: usize) {
        let end = &mut self.connections[connection][side];
        if !matches!(end.stage, Stage::Opening | Stage::Open | Stage::Broken) {
            return;
        }
        end.stage = Stage::Over;
        let own = connection * 2 + side;
        self.oracle.excused[connection * 2] = true;
        self.oracle.excused[connection * 2 + 1] = true;
        let at = self.plan.connections[connection].nodes[side] as usize;
        let (now, index) = (self.network.now(), end.index);
        let Node { engine, side: node, .. } = &mut self.nodes[at];
        engine.close(now, index, &mut CheckedHost { side: node, oracle: &mut self.oracle });
        self.oracle.over[own ^ 1] = true;
        let stream = u32::try_from(own).unwrap_or(u32::MAX);
        let transfers = &self.oracle.transfers;
        let left = self.nodes[at].side.open(|operation| match operation {
            Operation::Send(of, _) => of == stream,
            Operation::Transfer(number) => transfers.get(number).stream == stream,
        });
        if left > 0 {
            let detail = format!("connection {connection}: {left} operations are open after side {side} has closed it");
            self.oracle.violate(Rule::EndsOnce, detail);
        }
        self.settle(at, true);
    }
}
