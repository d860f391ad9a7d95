//! Very many connections of one engine. Their clients are frames only, so that nothing else grows.

use cci_proto::engine::{Config, Engine, RecordingHost};
use cci_proto::wire::{self, Confirm, Connect, Header, Kind, Offer, Share};
use cci_proto::{Address, Attribute, Time};

/// Virtual time from one client to the next, nanoseconds.
const APART: u64 = 100_000;
/// Time after which everything that an engine remembers of handshakes is forgotten, nanoseconds.
pub const FORGOTTEN: u64 = 60_000_000_000;

/// An engine with its program, and as many clients as were let in.
pub struct ManyPeers {
    engine: Engine,
    host: RecordingHost,
    open: u32,
    now: Time,
    buffer: Vec<u8>,
}

impl Default for ManyPeers {
    fn default() -> Self {
        Self::new()
    }
}

impl ManyPeers {
    /// An engine that nobody has come to yet.
    #[must_use]
    pub fn new() -> Self {
        let config = Config {
            mtu: 1500,
            base_mtu: 1500,
            max_send_size: 8192,
            recv_buffer: 1 << 20,
            frames: 64,
            holds: 64,
            operations: 64,
            machine: 0,
            unchecked_on_host: false,
            patient: false,
            first_seq: None,
        };
        let engine = Engine::new(&config, [3, 1, 4, 1, 5, 9, 2, 6]);
        let host = RecordingHost { slots: 64, ..RecordingHost::default() };
        Self { engine, host, open: 0, now: Time(1_000_000), buffer: vec![0; 2048] }
    }

    /// Connections that have opened.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.open
    }

    /// Lets clients come, one after the other. None: one did not get the answers that it should
    /// have got.
    #[must_use]
    pub fn admit(&mut self, clients: std::ops::Range<u32>) -> Option<()> {
        let mut frame = vec![0; 2048];
        for client in clients {
            self.admit_one(client, &mut frame)?;
            // A record of every connection would count as its memory.
            self.open += u32::from(self.host.opened.pop().is_some());
            self.pass(APART);
        }
        // Each client causes a request and an opening, and nothing else happens.
        (self.host.events == 2 * self.open).then_some(())
    }

    /// CONNECT, RETRY, CONNECT with its cookie, ACCEPT, CONFIRM.
    fn admit_one(&mut self, client: u32, frame: &mut [u8]) -> Option<()> {
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
        (self.exchange(&from, &frame[..len])? == 0).then_some(())
    }

    /// Handles a frame, and says how long the answer in the buffer is; 0 = there is none. None:
    /// more than one.
    fn exchange(&mut self, from: &Address, frame: &[u8]) -> Option<usize> {
        self.engine.handle_frame(self.now, from, frame, false, &mut self.host).ok()?;
        if let Some(index) = self.host.requests.pop() {
            self.engine.accept(self.now, index, 0).ok()?;
        }
        let Some(len) = self.transmit() else { return Some(0) };
        let second = self.engine.poll_transmit(self.now, true, &mut [0; 2048], &mut self.host);
        second.is_none().then_some(len)
    }

    fn transmit(&mut self) -> Option<usize> {
        Some(self.engine.poll_transmit(self.now, true, &mut self.buffer, &mut self.host)?.len)
    }

    /// What a program does that looks for something and finds nothing, a nanosecond later. Whether
    /// it found something.
    pub fn poll(&mut self) -> bool {
        self.now = Time(self.now.0 + 1);
        if self.engine.poll_timeout().is_some_and(|due| due <= self.now) {
            self.engine.handle_timeout(self.now, &mut self.host);
        }
        self.transmit().is_some()
    }

    /// Lets time pass, nanoseconds, and does what is due then.
    pub fn pass(&mut self, time: u64) {
        self.now = Time(self.now.0 + time);
        while self.engine.poll_timeout().is_some_and(|due| due <= self.now) {
            self.engine.handle_timeout(self.now, &mut self.host);
            while self.transmit().is_some() {}
        }
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
    let len = Connect { header, offer, token: 0, cookie, cookie_time, payload: &[], share: Share::None }.emit(frame);
    wire::seal(&mut frame[..len], 0, |check| check);
    len
}
