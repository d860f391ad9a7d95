//! What very many idle connections of one engine take. Their clients are frames only, so that nothing else grows.

use cci_proto::engine::{Config, Engine, Event, Host, Index, Op, Place, Source, Target};
use cci_proto::wire::{self, Confirm, Connect, Header, Kind, Offer};
use cci_proto::{Address, Attribute, Failure, Time};

/// Virtual time from one client to the next, nanoseconds.
const APART: u64 = 100_000;
/// Until everything that is remembered of handshakes is forgotten, nanoseconds.
const MINUTE: u64 = 60_000_000_000;

/// A program that accepts everybody and keeps nothing.
#[derive(Default)]
struct Doorman {
    asked: Option<Index>,
    open: u32,
}

impl Host for Doorman {
    type Piece = ();

    fn room(&self) -> u32 {
        64
    }
    fn begin(&mut self, _: u64, _: u32) -> Option<Place> {
        None
    }
    fn fill(&mut self, _: Place, _: u32, _: &[u8]) {}
    fn deliver(&mut self, _: u64, _: Place) {}
    fn abandon(&mut self, _: Place) {}
    fn write(&mut self, _: &Target, _: u64, _: &[u8]) -> Result<(), Failure> {
        Err(Failure::RemoteHandle)
    }
    fn source(&mut self, _: &Source, _: u64, _: u32) -> Result<(), Failure> {
        Err(Failure::RemoteHandle)
    }
    fn may_read(&mut self, _: &Target) -> Result<(), Failure> {
        Err(Failure::RemoteHandle)
    }
    fn place(&mut self, _: Op, _: u64, _: &[u8]) {}
    fn ended(&mut self, _: Op, _: Result<(), Failure>) {}
    fn event(&mut self, index: Index, _: u64, event: Event<'_>) -> bool {
        match event {
            Event::Request { .. } => self.asked = Some(index),
            Event::Open { .. } => self.open += 1,
            _ => {}
        }
        true
    }
}

/// An engine with its program.
struct Server {
    engine: Engine,
    doorman: Doorman,
    now: Time,
    buffer: Vec<u8>,
}

impl Server {
    fn new() -> Self {
        let config = Config {
            mtu: 1500,
            base_mtu: 1500,
            max_send_size: 8192,
            recv_buffer: 1 << 20,
            frames: 64,
            holds: 64,
            operations: 64,
            host: 0,
            unchecked_on_host: false,
            first_seq: None,
        };
        let engine = Engine::new(&config, [3, 1, 4, 1, 5, 9, 2, 6]);
        Self { engine, doorman: Doorman::default(), now: Time(1_000_000), buffer: vec![0; 2048] }
    }

    /// Handles a frame, and says how long the answer in the buffer is.
    fn exchange(&mut self, from: &Address, frame: &[u8]) -> Option<usize> {
        self.engine.handle_frame(self.now, from, frame, false, &mut self.doorman);
        if let Some(index) = self.doorman.asked.take() {
            self.engine.accept(self.now, index, 0).ok()?;
        }
        self.poll()
    }

    fn poll(&mut self) -> Option<usize> {
        Some(self.engine.poll_transmit(self.now, true, &mut self.buffer, &mut self.doorman)?.len)
    }

    fn pass(&mut self, time: u64) {
        self.now = Time(self.now.0 + time);
        while self.engine.poll_timeout().is_some_and(|due| due <= self.now) {
            self.engine.handle_timeout(self.now, &mut self.doorman);
            while self.poll().is_some() {}
        }
    }

    /// Lets a client come: CONNECT, RETRY, CONNECT with its cookie, ACCEPT, CONFIRM.
    fn admit(&mut self, client: u32, frame: &mut [u8]) -> Option<()> {
        let mut from = Address::default();
        from.0[..4].copy_from_slice(&client.to_be_bytes());
        let own = u64::from(client) << 20 | 1;
        let len = connect(frame, own, 0, 0);
        let len = self.exchange(&from, &frame[..len])?;
        let retry = wire::Retry::parse(&self.buffer[..len])?;
        let len = connect(frame, own, retry.cookie, retry.cookie_time);
        let len = self.exchange(&from, &frame[..len])?;
        let accept = Header::parse(&self.buffer[..len]).filter(|header| header.kind == Kind::Accept)?;
        let header = Header { kind: Kind::Confirm, to: accept.from, from: own, number: 2, time: 0 };
        let len = Confirm { header }.emit(frame);
        wire::seal(&mut frame[..len], 0, |check| check);
        self.exchange(&from, &frame[..len]);
        self.pass(APART);
        Some(())
    }
}

/// Writes a request; says how long it is.
fn connect(frame: &mut [u8], own: u64, cookie: u64, cookie_time: u32) -> usize {
    let header = Header { kind: Kind::Connect, to: 0, from: own, number: 1, time: 0 };
    let offer = Offer {
        features: 0,
        first_seq: 1,
        attribute: Attribute::ReliableOrdered,
        mtu: 1500,
        max_send_size: 8192,
        recv_buffer: 1 << 20,
        credit: 64,
        host: 0,
    };
    frame.fill(0);
    let len = Connect { header, offer, token: 0, cookie, cookie_time, payload: &[] }.emit(frame);
    wire::seal(&mut frame[..len], 0, |check| check);
    len
}

/// Bytes of this process that it shares with nobody.
fn private_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let kilobytes = |name: &str| -> Option<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    };
    Some(1024.0 * (kilobytes("Private_Clean:")? + kilobytes("Private_Dirty:")?))
}

/// Bytes that so many idle connections of one engine take; none if they do not open, or the kernel does not tell.
pub(crate) fn memory(count: u32) -> Option<f64> {
    let mut frame = vec![0; 2048];
    let mut server = Server::new();
    private_bytes()?;
    let before = private_bytes()?;
    for client in 0..count {
        server.admit(client, &mut frame)?;
    }
    server.pass(MINUTE);
    let after = private_bytes()?;
    (server.doorman.open == count).then_some(after - before)
}
