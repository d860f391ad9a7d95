//! A fixture: a few engines over a virtual network, driven step by step, so that a test can make
//! one thing go wrong.

use super::world::address;
use cci_proto::engine::{Config, Engine, Index, Op, Open, RecordingHost, whole_frame};
use cci_proto::{Address, Attribute, Failure, SendError, wire};
use cci_sim::Random;
use cci_sim::network::{Graph, Network, NodeIndex, Occurrence, Time};
use std::time::Duration;

/// A frame that was sent: who, to whom, when, and its bytes.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its sender.
    pub from: u32,
    /// Its receiver.
    pub to: u32,
    /// When.
    pub at: Time,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Sent {
    /// The sequence number of a DATA frame that has one.
    #[must_use]
    pub fn seq(&self) -> Option<u32> {
        let header = wire::Header::parse(&self.bytes).filter(|header| header.kind == wire::Kind::Data)?;
        let (data, ..) = wire::Data::parse(&self.bytes).filter(|_| header.to != 0)?;
        (data.flags & wire::flags::SEQUENCED != 0).then_some(data.seq)
    }
}

/// What a fixture does with a frame that is being sent: false, and it is lost.
pub type Filter = Box<dyn FnMut(&Sent) -> bool>;

/// A node of a fixture.
pub struct Player {
    /// Its engine.
    pub engine: Engine,
    /// Records what its engine reports. Messages and ends move on to the fields below.
    pub host: RecordingHost,
    /// The first four bytes of each delivered message: its number.
    pub delivered: Vec<u32>,
    /// Bytes of all delivered messages.
    pub bytes: u64,
    /// Operations that have not ended.
    pub open: u64,
    /// Failures of operations, oldest first.
    pub failures: Vec<Failure>,
    accepted: usize,
    next_user: u32,
    free_ops: Vec<u32>,
}

impl Player {
    /// Takes messages and ends from the host, so that operations can be reused. Returns true if
    /// there were messages.
    fn take_recorded(&mut self) -> bool {
        let before = self.delivered.len();
        for message in self.host.received.drain(..) {
            self.bytes += message.len() as u64;
            self.delivered.push(message.first_chunk().map_or(0, |head| u32::from_be_bytes(*head)));
        }
        for op in self.host.order.drain(..) {
            self.failures.extend(self.host.ended.remove(&op).and_then(Result::err));
            self.free_ops.push(op);
            self.open -= 1;
        }
        self.delivered.len() > before
    }
}

/// Engines over a network.
pub struct Fixture {
    /// The network.
    pub network: Network,
    /// The nodes that have an engine: the first ones of the graph.
    pub players: Vec<Player>,
    /// Sees every frame that is sent.
    pub filter: Option<Filter>,
    /// Slots that each player's program has.
    pub slots: u32,
    buffer: Vec<u8>,
    seed: u64,
    config: Config,
}

/// A configuration that does not stand in the way.
#[must_use]
pub fn ample(mtu: u16) -> Config {
    Config {
        mtu,
        base_mtu: mtu,
        max_send_size: 65_536,
        recv_buffer: 8 << 20,
        frames: 8192,
        holds: 4096,
        operations: 65_536,
        machine: 0,
        unchecked_on_host: false,
        patient: false,
        first_seq: Some(u32::MAX - 100),
    }
}

impl Fixture {
    /// As many engines as `players`, all alike, at the first nodes of the graph.
    #[must_use]
    pub fn new(seed: u64, graph: Graph, players: u32, config: &Config, slots: u32) -> Self {
        let mut fixture = Self {
            network: Network::new(seed, graph),
            players: Vec::new(),
            filter: None,
            slots,
            buffer: vec![0; usize::from(config.mtu).max(2048)],
            seed,
            config: *config,
        };
        for number in 0..players {
            let player = fixture.player(number, 0);
            fixture.players.push(player);
        }
        fixture
    }

    fn player(&self, number: u32, life: u64) -> Player {
        let mut random = Random::of(self.seed, u64::from(number), life);
        let engine = Engine::new(&self.config, std::array::from_fn(|_| random.next()));
        Player {
            engine,
            host: RecordingHost { slots: self.slots, returns: true, ..RecordingHost::default() },
            delivered: Vec::new(),
            bytes: 0,
            open: 0,
            failures: Vec::new(),
            accepted: 0,
            next_user: 1,
            free_ops: (0..self.config.operations).rev().collect(),
        }
    }

    /// A node's process ends without a word, and another starts at the same address.
    pub fn restart(&mut self, node: usize) {
        self.players[node] = self.player(u32::try_from(node).unwrap_or(0), 1);
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.network.now()
    }

    /// The address of a node.
    #[must_use]
    pub fn address(node: u32) -> Address {
        address(node)
    }

    /// Opens a connection, and runs until both sides have it: their indices, and the client's
    /// cookie.
    ///
    /// # Panics
    ///
    /// It does not open within ten seconds.
    pub fn open(&mut self, from: usize, to: usize, attribute: Attribute) -> [Index; 2] {
        let index = self.ask(from, to, attribute, None);
        let seen = self.players[to].host.opened.len();
        let is_open = |fixture: &Self| {
            fixture.players[to].host.opened.len() > seen && fixture.players[from].host.opened.contains(&index)
        };
        assert!(self.run(Duration::from_secs(10), is_open), "the connection does not open");
        [index, *self.players[to].host.opened.last().expect("it is open")]
    }

    /// Asks for a connection.
    ///
    /// # Panics
    ///
    /// The engine refuses.
    pub fn ask(&mut self, from: usize, to: usize, attribute: Attribute, timeout: Option<Duration>) -> Index {
        let now = self.now();
        let player = &mut self.players[from];
        let user = player.next_user;
        player.next_user += 1;
        let to = address(u32::try_from(to).unwrap_or(u32::MAX));
        let open = Open { to, attribute, payload: &[], host_cookie: user, timeout, token: 0 };
        let index = player.engine.connect(now, &open).expect("a connect with good arguments");
        self.settle(from);
        index
    }

    /// Sends a message of `len` bytes that begins with `number`. Frames leave with the next
    /// [`Fixture::settle`].
    ///
    /// # Errors
    ///
    /// The engine refuses.
    pub fn send(&mut self, node: usize, index: Index, number: u32, len: usize) -> Result<Op, SendError> {
        static ZEROS: [u8; 65_536] = [0; 65_536];
        let now = self.now();
        let Player { engine, free_ops, open, .. } = &mut self.players[node];
        let op = Op(free_ops.last().copied().ok_or(SendError::NoBuffers)?);
        let head = number.to_be_bytes();
        let head = &head[..len.min(4)];
        engine.send(now, index, &[head, &ZEROS[..len - head.len()]], op, false)?;
        free_ops.pop();
        *open += 1;
        Ok(op)
    }

    /// The program of a node returns so many events.
    pub fn give_back(&mut self, node: usize, count: u32) {
        let Player { engine, host, .. } = &mut self.players[node];
        host.slots += count;
        engine.refill(host);
        self.settle(node);
    }

    /// A node closes a connection.
    pub fn close(&mut self, node: usize, index: Index) {
        let now = self.now();
        let Player { engine, host, .. } = &mut self.players[node];
        engine.close(now, index, host);
        self.settle(node);
    }

    /// Hands a node a frame as if the network had brought it, now.
    pub fn inject(&mut self, node: usize, from: u32, bytes: &[u8]) {
        let now = self.now();
        let Player { engine, host, .. } = &mut self.players[node];
        // One that is broken is dropped.
        let _ = engine.handle_frame(now, &address(from), bytes, false, host);
        self.settle(node);
    }

    /// Answers requests, sends what a node has to send, and sets its wake-up.
    pub fn settle(&mut self, node: usize) {
        let now = self.now();
        let player = &mut self.players[node];
        while let Some(index) = player.host.requests.get(player.accepted) {
            // A client that has gone meanwhile is none.
            let _ = player.engine.accept(now, *index, player.next_user);
            player.next_user += 1;
            player.accepted += 1;
        }
        while player.take_recorded() && player.host.returns {
            player.engine.refill(&mut player.host);
        }
        let from = u32::try_from(node).unwrap_or(u32::MAX);
        while let Some(frame) = player.engine.poll_transmit(now, true, &mut self.buffer, &mut player.host) {
            let piece = frame.piece.clone().unwrap_or_default();
            // A sealer that refuses loses the frame.
            let Some(whole) = whole_frame(&frame, &self.buffer, &piece, &mut player.host) else { continue };
            let to = u32::from_be_bytes([frame.to.0[0], frame.to.0[1], frame.to.0[2], frame.to.0[3]]) - 1;
            if let Some(filter) = &mut self.filter
                && !filter(&Sent { from, to, at: now, bytes: whole.clone() })
            {
                continue;
            }
            self.network.send(NodeIndex(from), NodeIndex(to), 0, &[&whole]);
        }
        player.take_recorded();
        self.network.wake_at(NodeIndex(from), player.engine.poll_timeout());
    }

    /// Runs until something is so, at most for `limit`; whether it is.
    pub fn run(&mut self, limit: Duration, mut is_so: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now() + limit;
        while !is_so(self) {
            if !self.step(end) {
                return is_so(self);
            }
        }
        true
    }

    /// Runs for a time.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now() + time;
        while self.step(end) {}
    }

    /// The next occurrence; false when there is none until `end`.
    pub fn step(&mut self, end: Time) -> bool {
        let Some(occurrence) = self.network.advance(end) else { return false };
        let now = self.now();
        let (Occurrence::Frame(NodeIndex(node)) | Occurrence::Wake(NodeIndex(node))) = occurrence;
        let at = node as usize;
        while let Some(frame) = self.network.take(NodeIndex(node)) {
            let Some(Player { engine, host, .. }) = self.players.get_mut(at) else { return true };
            // One that is broken is dropped.
            let _ = engine.handle_frame(now, &address(frame.from.0), &frame.bytes, frame.congested, host);
            self.network.recycle(frame);
        }
        let Some(Player { engine, host, .. }) = self.players.get_mut(at) else { return true };
        if engine.poll_timeout().is_some_and(|due| due <= now) {
            engine.handle_timeout(now, host);
        }
        self.settle(at);
        true
    }
}
