//! Very many connections of one engine: what they take, and what polling costs then. In virtual time; the clients are frames.

mod sys;

use cci_proto::engine::{Config, Engine, Event, Host, Index, Op, Place, Source, Target};
use cci_proto::wire::{self, CONNECT, Confirm, Connect, Header, Kind, Offer};
use cci_proto::{Address, Attribute, Failure, Time};
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: sys::Summing = sys::Summing;

/// Memory is counted for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Connections of the large engine, and with them as many as a debug build opens in reasonable time.
const MANY: u32 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
/// What they may take, bytes for each: 256 MiB for a million.
const SHARE: usize = 268;
/// Virtual time from one client to the next, nanoseconds.
const APART: u64 = 100_000;

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
            other => panic!("{other:?}"),
        }
        true
    }
}

/// An engine with its program, and the frame that it has sent last.
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

    /// Handles a frame, and says what the engine sends then.
    fn exchange(&mut self, from: &Address, frame: &[u8]) -> Option<Vec<u8>> {
        assert!(wire::verify(frame).is_ok());
        self.engine.handle_frame(self.now, from, frame, false, &mut self.doorman);
        if let Some(index) = self.doorman.asked.take() {
            self.engine.accept(self.now, index, 0).expect("a request");
        }
        self.poll()
    }

    fn poll(&mut self) -> Option<Vec<u8>> {
        let sent = self.engine.poll_transmit(self.now, true, &mut self.buffer, &mut self.doorman)?;
        assert!(self.engine.poll_transmit(self.now, true, &mut [0; 2048], &mut self.doorman).is_none());
        Some(self.buffer[..sent.len].to_vec())
    }

    fn pass(&mut self, time: u64) {
        self.now = Time(self.now.0 + time);
        while self.engine.poll_timeout().is_some_and(|due| due <= self.now) {
            self.engine.handle_timeout(self.now, &mut self.doorman);
            while self.poll().is_some() {}
        }
    }

    /// Lets clients come, one after the other.
    fn admit(&mut self, clients: std::ops::Range<u32>) {
        let mut frame = vec![0; 2048];
        for client in clients {
            let mut from = Address::default();
            from.0[..4].copy_from_slice(&client.to_be_bytes());
            let own = u64::from(client) << 20 | 1;
            let mut connect = |cookie, cookie_time| {
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
                frame.resize(2048, 0);
                let len = Connect { header, offer, token: 0, cookie, cookie_time, payload: &[] }.emit(&mut frame);
                assert!(len >= CONNECT);
                frame.truncate(len);
                wire::seal(&mut frame, 0, |check| check);
                frame.clone()
            };
            let answer = self.exchange(&from, &connect(0, 0)).expect("a RETRY");
            let retry = wire::Retry::parse(&answer).expect("a RETRY");
            let answer = self.exchange(&from, &connect(retry.cookie, retry.cookie_time)).expect("an ACCEPT");
            let accept = Header::parse(&answer).filter(|header| header.kind == Kind::Accept).expect("an ACCEPT");
            let header = Header { kind: Kind::Confirm, to: accept.from, from: own, number: 2, time: 0 };
            let mut confirm = vec![0; 64];
            let len = Confirm { header }.emit(&mut confirm);
            confirm.truncate(len);
            wire::seal(&mut confirm, 0, |check| check);
            assert_eq!(self.exchange(&from, &confirm), None);
            self.pass(APART);
        }
    }
}

#[test]
fn many_connections_take_little() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = sys::in_use();
    let mut server = Server::new();
    let empty = sys::in_use() - before;
    server.admit(0..MANY);
    assert_eq!(server.doorman.open, MANY);
    let full = sys::in_use() - before;
    // What is remembered of handshakes is forgotten after a while.
    server.pass(60_000_000_000);
    let idle = sys::in_use() - before;
    let share = |bytes: usize| (bytes - empty) / MANY as usize;
    assert!(
        share(idle) <= SHARE,
        "{} bytes for each of {MANY} connections, {} while they came",
        share(idle),
        share(full)
    );
    assert!(share(full) <= SHARE, "{} bytes for each of {MANY} connections while they came", share(full));
    assert!(share(idle) >= 64, "{} bytes cannot be a connection: nothing was counted", share(idle));
}

/// The shortest of many blocks of polls, and which of two engines it is measured on in turn.
fn polls(server: &mut Server) -> Duration {
    let begun = Instant::now();
    for _ in 0..2000 {
        server.now = Time(server.now.0 + 1);
        if server.engine.poll_timeout().is_some_and(|due| due <= server.now) {
            server.engine.handle_timeout(server.now, &mut server.doorman);
        }
        black_box(server.engine.poll_transmit(server.now, true, &mut server.buffer, &mut server.doorman).is_some());
    }
    begun.elapsed()
}

#[test]
fn polling_costs_the_same_whatever_the_number_of_idle_connections() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut one, mut many) = (Server::new(), Server::new());
    one.admit(0..1);
    many.admit(0..100_000);
    one.pass(60_000_000_000);
    many.pass(60_000_000_000);
    let (mut least, mut most) = (Duration::MAX, Duration::MAX);
    for _ in 0..200 {
        least = least.min(polls(&mut one));
        most = most.min(polls(&mut many));
    }
    // A cost that grew with connections would show as a factor of thousands.
    assert!(most < 3 * least, "{most:?} with 100,000 connections, {least:?} with one");
}
