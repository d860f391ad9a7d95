//! A laboratory: a few engines over a virtual network, driven step by step, so that a test can make
//! one thing go wrong.

use super::world::address;
use cci_proto::engine::{Config, Engine, Event, Host, Index, MessageBuffer, Op, Open, Source, Target};
use cci_proto::{Address, Attribute, Failure, SendError, wire};
use cci_sim::Random;
use cci_sim::network::{Graph, Network, NodeIndex, Occurrence, Time};
use std::time::Duration;

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Somebody asked for it; a laboratory accepts.
    Asked,
    /// It opened.
    Opened,
    /// It was refused.
    Refused(Failure),
    /// It broke.
    Broken(Failure),
    /// Nothing was heard for the keepalive timeout.
    Silent,
}

/// A message that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// When.
    pub at: Time,
    /// The connection's cookie.
    pub user: u32,
    /// Bytes.
    pub len: u32,
    /// The first four bytes: the message's number.
    pub number: u32,
}

/// What an engine tells its program: noted down.
#[derive(Debug)]
pub struct Notes {
    /// Messages that were delivered.
    pub delivered: Vec<Delivered>,
    /// Bytes of them, for each cookie.
    pub bytes: Vec<u64>,
    /// Operations that ended: when, which, how.
    pub ended: Vec<(Time, Op, Result<(), Failure>)>,
    /// How many have.
    pub over: u64,
    /// What happened to connections, when.
    pub happened: Vec<(Time, Index, u32, Happened)>,
    /// Whether messages are noted one by one, or only counted.
    pub is_brief: bool,
    /// Slots that are free.
    pub slots: u32,
    /// Whether the program returns each event at once.
    pub returns: bool,
    /// The memory that RMA reads and writes, whatever the handle.
    pub memory: Vec<u8>,
    now: Time,
    asked: Vec<Index>,
    places: Vec<Vec<u8>>,
    free: Vec<u32>,
    returned: bool,
    free_ops: Vec<u32>,
}

impl Notes {
    fn new(slots: u32, operations: u32) -> Self {
        Self {
            delivered: Vec::new(),
            bytes: Vec::new(),
            ended: Vec::new(),
            over: 0,
            happened: Vec::new(),
            is_brief: false,
            slots,
            returns: true,
            memory: Vec::new(),
            now: Time(0),
            asked: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            returned: false,
            free_ops: (0..operations).rev().collect(),
        }
    }

    /// Whether this happened to any connection.
    #[must_use]
    pub fn has(&self, what: Happened) -> bool {
        self.happened.iter().any(|(_, _, _, happened)| *happened == what)
    }

    /// When this happened first.
    #[must_use]
    pub fn when(&self, what: Happened) -> Option<Time> {
        self.happened.iter().find(|(_, _, _, happened)| *happened == what).map(|(at, ..)| *at)
    }

    fn note(&mut self, user: u32, bytes: &[u8]) {
        let at = usize::try_from(user).unwrap_or(0);
        if self.bytes.len() <= at {
            self.bytes.resize(at + 1, 0);
        }
        self.bytes[at] += bytes.len() as u64;
        if !self.is_brief {
            let number = bytes.first_chunk().map_or(0, |head| u32::from_be_bytes(*head));
            let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            self.delivered.push(Delivered { at: self.now, user, len, number });
        }
    }
}

impl Host for Notes {
    type Piece = (usize, usize);

    fn room(&self) -> u32 {
        self.slots
    }

    fn begin(&mut self, _: u32, len: u32) -> Option<MessageBuffer> {
        self.slots = self.slots.checked_sub(1)?;
        let buffer = self.free.pop().unwrap_or_else(|| {
            self.places.push(Vec::new());
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        self.places[buffer as usize].clear();
        self.places[buffer as usize].resize(len as usize, 0);
        Some(MessageBuffer(buffer))
    }

    fn fill(&mut self, buffer: MessageBuffer, at: u32, bytes: &[u8]) {
        self.places[buffer.0 as usize][at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }

    fn deliver(&mut self, user: u32, buffer: MessageBuffer) {
        let bytes = std::mem::take(&mut self.places[buffer.0 as usize]);
        self.note(user, &bytes);
        self.places[buffer.0 as usize] = bytes;
        self.free.push(buffer.0);
        if self.returns {
            self.slots += 1;
            self.returned = true;
        }
    }

    fn abandon(&mut self, buffer: MessageBuffer) {
        self.free.push(buffer.0);
        self.slots += 1;
    }

    fn write(&mut self, _: u32, target: &Target, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        let start = usize::try_from(target.offset + at).map_err(|_| Failure::RemoteHandle)?;
        let range = self.memory.get_mut(start..start + bytes.len()).ok_or(Failure::RemoteHandle)?;
        range.copy_from_slice(bytes);
        Ok(())
    }

    fn source(&mut self, source: &Source, at: u64, len: u32) -> Result<Self::Piece, Failure> {
        let offset = match source {
            Source::Local(_) => 0,
            Source::Served(target) => target.offset,
        };
        Ok((usize::try_from(offset + at).unwrap_or(0), len as usize))
    }

    fn may_read(&mut self, _: u32, target: &Target) -> Result<(), Failure> {
        let end = target.offset.checked_add(target.len).ok_or(Failure::RemoteHandle)?;
        if end <= self.memory.len() as u64 { Ok(()) } else { Err(Failure::RemoteHandle) }
    }

    fn place(&mut self, _: Op, at: u64, bytes: &[u8]) {
        let at = usize::try_from(at).unwrap_or(0);
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn ended(&mut self, op: Op, outcome: Result<(), Failure>) {
        self.free_ops.push(op.0);
        self.over += 1;
        if !self.is_brief || outcome.is_err() {
            self.ended.push((self.now, op, outcome));
        }
    }

    fn event(&mut self, index: Index, user: u32, event: Event<'_>) -> bool {
        let happened = match event {
            Event::Request { .. } | Event::Expected { .. } => {
                self.asked.push(index);
                Happened::Asked
            }
            Event::Open { .. } => Happened::Opened,
            Event::Refused(failure) => Happened::Refused(failure),
            Event::Broken(failure) => Happened::Broken(failure),
            Event::Silent => Happened::Silent,
            Event::Redirected { .. } => return true,
        };
        self.happened.push((self.now, index, user, happened));
        true
    }
}

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

/// What a laboratory does with a frame that is being sent: false, and it is lost.
pub type Filter = Box<dyn FnMut(&Sent) -> bool>;

/// A node of a laboratory.
pub struct Player {
    /// Its engine.
    pub engine: Engine,
    /// What its engine told it.
    pub notes: Notes,
    /// Messages that it has sent.
    pub posted: u64,
    next_user: u32,
}

/// Engines over a network.
pub struct Lab {
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
        host: 0,
        unchecked_on_host: false,
        first_seq: Some(u32::MAX - 100),
    }
}

impl Lab {
    /// As many engines as `players`, all alike, at the first nodes of the graph.
    #[must_use]
    pub fn new(seed: u64, graph: Graph, players: u32, config: &Config, slots: u32) -> Self {
        let mut lab = Self {
            network: Network::new(seed, graph),
            players: Vec::new(),
            filter: None,
            slots,
            buffer: vec![0; usize::from(config.mtu).max(2048)],
            seed,
            config: *config,
        };
        for number in 0..players {
            let player = lab.player(number, 0);
            lab.players.push(player);
        }
        lab
    }

    fn player(&self, number: u32, life: u64) -> Player {
        let mut random = Random::of(self.seed, u64::from(number), life);
        let engine = Engine::new(&self.config, std::array::from_fn(|_| random.next()));
        Player { engine, notes: Notes::new(self.slots, self.config.operations), posted: 0, next_user: 1 }
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
        let seen = self.players[to].notes.happened.len();
        let is_open = |lab: &Self| {
            let open = |notes: &Notes| {
                notes.happened.iter().skip(seen.min(notes.happened.len())).any(|(.., what)| *what == Happened::Opened)
            };
            open(&lab.players[to].notes)
                && lab.players[from]
                    .notes
                    .happened
                    .iter()
                    .any(|(_, at, _, what)| *at == index && *what == Happened::Opened)
        };
        assert!(self.run(Duration::from_secs(10), is_open), "the connection does not open");
        let server = self.players[to].notes.happened.iter().rev().find(|(.., what)| *what == Happened::Opened);
        [index, server.map(|(_, index, ..)| *index).expect("it is open")]
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
    /// [`Lab::settle`].
    ///
    /// # Errors
    ///
    /// The engine refuses.
    pub fn send(&mut self, node: usize, index: Index, number: u32, len: usize) -> Result<Op, SendError> {
        static ZEROS: [u8; 65_536] = [0; 65_536];
        let now = self.now();
        let Player { engine, notes, posted, .. } = &mut self.players[node];
        let op = Op(notes.free_ops.last().copied().ok_or(SendError::NoBuffers)?);
        let head = number.to_be_bytes();
        let head = &head[..len.min(4)];
        engine.send(now, index, &[head, &ZEROS[..len - head.len()]], op, false)?;
        notes.free_ops.pop();
        *posted += 1;
        Ok(op)
    }

    /// The program of a node returns so many events.
    pub fn give_back(&mut self, node: usize, count: u32) {
        let now = self.now();
        let Player { engine, notes, .. } = &mut self.players[node];
        notes.slots += count;
        notes.now = now;
        engine.refill(notes);
        self.settle(node);
    }

    /// A node closes a connection.
    pub fn close(&mut self, node: usize, index: Index) {
        let now = self.now();
        let Player { engine, notes, .. } = &mut self.players[node];
        notes.now = now;
        engine.close(now, index, notes);
        self.settle(node);
    }

    /// Hands a node a frame as if the network had brought it, now.
    pub fn inject(&mut self, node: usize, from: u32, bytes: &[u8]) {
        let now = self.now();
        let Player { engine, notes, .. } = &mut self.players[node];
        notes.now = now;
        // One that is broken is dropped.
        let _ = engine.handle_frame(now, &address(from), bytes, false, notes);
        self.settle(node);
    }

    /// Answers requests, sends what a node has to send, and sets its wake-up.
    pub fn settle(&mut self, node: usize) {
        let now = self.now();
        let Player { engine, notes, next_user, .. } = &mut self.players[node];
        notes.now = now;
        while let Some(index) = notes.asked.pop() {
            // A client that has gone meanwhile is none.
            let _ = engine.accept(now, index, *next_user);
            *next_user += 1;
        }
        if std::mem::take(&mut notes.returned) {
            engine.refill(notes);
        }
        let from = u32::try_from(node).unwrap_or(u32::MAX);
        while let Some(frame) = engine.poll_transmit(now, true, &mut self.buffer, notes) {
            let piece = frame.piece.map_or(&[][..], |(start, len)| &notes.memory[start..start + len]);
            let head = &mut self.buffer[..frame.len];
            wire::seal(head, piece.len(), |check| if frame.checked { check.update(piece) } else { check });
            let to = u32::from_be_bytes([frame.to.0[0], frame.to.0[1], frame.to.0[2], frame.to.0[3]]) - 1;
            if let Some(filter) = &mut self.filter {
                let bytes = [&head[..], piece].concat();
                if !filter(&Sent { from, to, at: now, bytes }) {
                    continue;
                }
            }
            self.network.send(NodeIndex(from), NodeIndex(to), 0, &[head, piece]);
        }
        self.network.wake_at(NodeIndex(from), engine.poll_timeout());
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
            let Some(Player { engine, notes, .. }) = self.players.get_mut(at) else { return true };
            notes.now = now;
            // One that is broken is dropped.
            let _ = engine.handle_frame(now, &address(frame.from.0), &frame.bytes, frame.congested, notes);
            self.network.recycle(frame);
        }
        let Some(Player { engine, notes, .. }) = self.players.get_mut(at) else { return true };
        notes.now = now;
        if engine.poll_timeout().is_some_and(|due| due <= now) {
            engine.handle_timeout(now, notes);
        }
        self.settle(at);
        true
    }
}
