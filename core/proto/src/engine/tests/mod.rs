//! Two engines and a bad wire between them. The real proof is the simulation; here is what has to
//! hold first.

mod attacks;
mod large;
mod sealed;

use super::*;
use crate::wire::Header;
use crate::{Access, Address, Atomic, Attribute, Failure, RmaError, SendError, Time};
use alloc::vec;
use alloc::vec::Vec;
use std::collections::BTreeMap;

extern crate std;

impl Engine {
    /// Handles a frame as if its check were right.
    pub(super) fn handle_verified<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        frame: &[u8],
        congested: bool,
        host: &mut H,
    ) {
        let Some(header) = Header::parse(frame) else { return };
        match self.parse_data(from, header, frame) {
            Some(data) => self.handle_data(now, &data, congested, host),
            None => self.handle_other(now, from, header, frame, host),
        }
    }
}

/// Two engines, and a wire that loses one frame in `loss`.
pub(super) struct Pair {
    pub(super) engines: [Engine; 2],
    pub(super) hosts: [RecordingHost; 2],
    pub(super) now: Time,
    pub(super) wire: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    pub(super) count: u64,
    pub(super) loss: u64,
    /// Who sends and what: false loses the frame.
    pub(super) filter: Filter,
    /// Largest frame that the engines may send.
    mtu: usize,
    state: u64,
}

pub(super) type Filter = std::boxed::Box<dyn FnMut(usize, &[u8]) -> bool>;

pub(super) const ADDRESSES: [Address; 2] = [Address([1; 24]), Address([2; 24])];

pub(super) const CONFIG: Config = Config {
    mtu: 1400,
    base_mtu: 1200,
    max_send_size: 8192,
    recv_buffer: 1 << 20,
    frames: 1024,
    holds: 256,
    operations: 1 << 14,
    machine: 0,
    unchecked_on_host: false,
    patient: false,
    first_seq: Some(u32::MAX - 20),
};

/// A host with this many slots.
pub(super) fn recording_host(slots: u32) -> RecordingHost {
    RecordingHost { slots, memory: vec![3; 1 << 16], local: vec![5; 1 << 16], ..RecordingHost::default() }
}

impl Pair {
    pub(super) fn new(loss: u64) -> Self {
        Self::with(&CONFIG, loss)
    }

    pub(super) fn with(config: &Config, loss: u64) -> Self {
        Self {
            engines: [Engine::new(config, [1; 8]), Engine::new(config, [2; 8])],
            hosts: [recording_host(1 << 20), recording_host(1 << 20)],
            now: Time(1_000_000),
            wire: BTreeMap::new(),
            count: 0,
            loss,
            filter: std::boxed::Box::new(|_, _| true),
            mtu: config.mtu.into(),
            state: 88,
        }
    }

    fn chance(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state >> 33
    }

    pub(super) fn pump(&mut self) {
        let mut buffer = vec![0; self.mtu];
        for side in 0..2 {
            while let Some(out) = self.engines[side].poll_transmit(self.now, true, &mut buffer, &mut self.hosts[side]) {
                let piece = out.piece.clone().unwrap_or_default();
                let frame = whole_frame(&out, &buffer, &piece, &mut self.hosts[side]);
                let Some(frame) = frame else { continue };
                assert!(frame.len() <= self.mtu, "a frame of {} bytes", frame.len());
                self.count += 1;
                if !(self.filter)(side, &frame) {
                    continue;
                }
                if self.loss == 0 || !self.chance().is_multiple_of(self.loss) {
                    let jitter = self.chance() % 3000;
                    self.wire.insert((Time(self.now.0 + 20_000 + jitter), self.count), (1 - side, frame));
                }
            }
        }
    }

    pub(super) fn step(&mut self) -> bool {
        self.pump();
        let frame = self.wire.first_key_value().map(|((at, _), _)| *at);
        let timer = self.engines.iter().filter_map(Engine::poll_timeout).min();
        let Some(next) = frame.into_iter().chain(timer).min() else { return false };
        self.now = next.max(self.now);
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, frame) = entry.remove();
            let (engine, host) = (&mut self.engines[to], &mut self.hosts[to]);
            engine.handle_frame(self.now, &ADDRESSES[1 - to], &frame, false, host).expect("sealed");
        }
        for side in 0..2 {
            self.engines[side].handle_timeout(self.now, &mut self.hosts[side]);
        }
        true
    }

    pub(super) fn run(&mut self, mut until: impl FnMut(&Self) -> bool) {
        for _ in 0..200_000 {
            if until(self) {
                return;
            }
            assert!(self.step(), "nothing is left to do");
        }
        panic!("no end after 200,000 steps at {:?}", self.now);
    }

    /// Runs up to this moment.
    pub(super) fn run_until(&mut self, until: Time) {
        loop {
            self.pump();
            let frame = self.wire.first_key_value().map(|((at, _), _)| *at);
            let timer = self.engines.iter().filter_map(Engine::poll_timeout).min();
            if frame.into_iter().chain(timer).min().is_none_or(|next| next > until) {
                self.now = until;
                return;
            }
            self.step();
        }
    }

    /// A pair over a network that loses nothing, with a connection: its client, and its server.
    pub(super) fn connected(attribute: Attribute) -> (Self, [Index; 2]) {
        let mut pair = Self::new(0);
        let ends = pair.connect(attribute);
        (pair, ends)
    }

    pub(super) fn connect(&mut self, attribute: Attribute) -> [Index; 2] {
        let before = [self.hosts[0].opened.len(), self.hosts[1].opened.len()];
        let open = Open { to: ADDRESSES[1], attribute, payload: b"hello", host_cookie: 0, timeout: None, token: 0 };
        let client = self.engines[0].connect(self.now, &open).expect("connect");
        self.run(|pair| !pair.hosts[1].requests.is_empty());
        let server = self.hosts[1].requests.remove(0);
        self.engines[1].accept(self.now, server, 0).expect("accept");
        self.run(|pair| (0..2).all(|side| pair.hosts[side].opened.len() > before[side]));
        [client, server]
    }
}

pub(super) fn message(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.resize(len.max(4), number as u8);
    bytes
}

fn exchange(attribute: Attribute, loss: u64) -> Pair {
    let mut pair = Pair::new(loss);
    let [client, _] = pair.connect(attribute);
    let mut next = 0;
    let sizes = [4, 8, 100, 1000, 1150, 1200, 3000, 8192];
    pair.run(|_| true);
    while next < 2000 {
        let bytes = message(next, sizes[next as usize % sizes.len()]);
        match pair.engines[0].send(pair.now, client, &[&bytes[..2], &bytes[2..]], Op(next), false) {
            Ok(()) => next += 1,
            Err(SendError::NoBuffers) => assert!(pair.step()),
            Err(error) => panic!("{error}"),
        }
    }
    pair.run(|pair| pair.hosts[0].ended.len() == 2000);
    pair
}

#[test]
fn ordered_messages_arrive_once_and_in_order() {
    for loss in [0, 50, 5, 3] {
        let pair = exchange(Attribute::ReliableOrdered, loss);
        let sizes = [4, 8, 100, 1000, 1150, 1200, 3000, 8192];
        let want: Vec<_> = (0..2000).map(|number| message(number, sizes[number as usize % sizes.len()])).collect();
        assert_eq!(pair.hosts[1].received, want, "loss {loss}");
        assert!(pair.hosts[0].ended.values().all(Result::is_ok));
    }
}

#[test]
fn unordered_messages_arrive_once() {
    let mut pair = exchange(Attribute::ReliableUnordered, 5);
    pair.hosts[1].received.sort();
    let sizes = [4, 8, 100, 1000, 1150, 1200, 3000, 8192];
    let want: Vec<_> = (0..2000).map(|number| message(number, sizes[number as usize % sizes.len()])).collect();
    assert_eq!(pair.hosts[1].received, want);
}

#[test]
fn memory_is_written_and_read() {
    for loss in [0, 10, 4] {
        let mut pair = Pair::new(loss);
        let [client, _] = pair.connect(Attribute::ReliableOrdered);
        let target = Target { handle: [7, 7], offset: 100, len: 50_000 };
        let write = Rma { op: Op(1), target, access: Access::Write, fence: false, message: Some(b"written") };
        pair.engines[0].rma(pair.now, client, &write).expect("write");
        pair.run(|pair| pair.hosts[0].ended.contains_key(&1));
        assert_eq!(pair.hosts[0].ended[&1], Ok(()));
        assert_eq!(pair.hosts[1].received, [b"written".to_vec()]);
        assert!(pair.hosts[1].memory[100..50_100].iter().all(|byte| *byte == 5));
        assert_eq!(pair.hosts[1].memory[99], 3);
        pair.hosts[1].memory.fill(9);
        let read = Rma { op: Op(2), access: Access::Read, message: Some(b"read"), fence: true, ..write };
        pair.engines[0].rma(pair.now, client, &read).expect("read");
        pair.run(|pair| pair.hosts[0].ended.contains_key(&2));
        assert_eq!(pair.hosts[0].ended[&2], Ok(()));
        assert!(pair.hosts[0].local[..50_000].iter().all(|byte| *byte == 9));
        assert_eq!(pair.hosts[1].received.len(), 2);
        let wrong = Rma { op: Op(3), target: Target { handle: [7, 8], ..target }, access: Access::Write, ..write };
        pair.engines[0].rma(pair.now, client, &wrong).expect("write");
        pair.run(|pair| pair.hosts[0].ended.contains_key(&3));
        assert_eq!(pair.hosts[0].ended[&3], Err(Failure::RemoteHandle));
        assert_eq!(pair.hosts[1].received.len(), 2, "the message of a refused write");
    }
}

#[test]
fn a_word_is_changed_once_whatever_is_lost() {
    const COUNT: u32 = 200;
    for loss in [0, 10, 3] {
        let mut pair = Pair::new(loss);
        let [client, _] = pair.connect(Attribute::ReliableOrdered);
        pair.hosts[1].memory[8..16].fill(0);
        let target = Target { handle: [7, 7], offset: 8, len: 8 };
        let access = Access::Atomic(Atomic::FetchAdd(1));
        let add = |op| Rma { op: Op(op), target, access, fence: false, message: Some(b"added") };
        let mut values = Vec::new();
        for op in 0..COUNT {
            pair.engines[0].rma(pair.now, client, &add(op)).expect("an atomic operation");
            if op % 8 == 7 {
                // The last of them to end has left its old value.
                pair.run(|pair| pair.hosts[0].ended.len() > op as usize);
                values.push(u64::from_le_bytes(pair.hosts[0].local[..8].try_into().expect("8 bytes")));
            }
        }
        assert!(pair.hosts[0].ended.values().all(Result::is_ok), "loss {loss}");
        assert_eq!(pair.hosts[1].changes, COUNT, "loss {loss}");
        assert_eq!(pair.hosts[1].memory[8..16], u64::from(COUNT).to_le_bytes(), "loss {loss}");
        assert!(values.is_sorted() && values.iter().all(|value| *value < COUNT.into()), "{values:?}");
        assert_eq!(pair.hosts[1].received.len(), COUNT as usize, "each message after its operation");
    }
}

#[test]
fn a_word_is_swapped_only_where_it_is_as_expected() {
    let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableUnordered);
    let mut word = |op: u32, len: u64, handle: u64, atomic: Atomic| {
        let target = Target { handle: [7, handle], offset: 16, len };
        let rma = Rma { op: Op(op), target, access: Access::Atomic(atomic), fence: false, message: None };
        pair.engines[0].rma(pair.now, client, &rma)?;
        pair.run(|pair| pair.hosts[0].ended.contains_key(&op));
        let old = u64::from_le_bytes(pair.hosts[0].local[..8].try_into().expect("8 bytes"));
        Ok((pair.hosts[0].ended[&op], old, pair.hosts[1].memory[16..24].to_vec()))
    };
    let three = 0x0303_0303_0303_0303;
    let swap = |expected, desired| Atomic::CompareSwap { expected, desired };
    assert_eq!(word(1, 8, 7, swap(4, 9)), Ok((Ok(()), three, vec![3; 8])), "another value");
    assert_eq!(
        word(2, 4, 7, swap(three, 0)),
        Ok((Ok(()), three, vec![0, 0, 0, 0, 3, 3, 3, 3])),
        "the half that counts"
    );
    let (ended, ..) = word(3, 8, 8, swap(0, 1)).expect("begun");
    assert_eq!(ended, Err(Failure::RemoteHandle));
    assert_eq!(word(4, 2, 7, swap(0, 1)).map(drop), Err(RmaError::WordLength));
}

/// A peer that closes has told what it did: the value of a word that it changed comes with its
/// CLOSE.
#[test]
fn a_farewell_brings_the_value_of_a_word() {
    let (mut pair, [client, server]) = Pair::connected(Attribute::ReliableOrdered);
    let target = Target { handle: [7, 7], offset: 0, len: 8 };
    let access = Access::Atomic(Atomic::FetchAdd(1));
    let rma = Rma { op: Op(1), target, access, fence: false, message: None };
    pair.engines[0].rma(pair.now, client, &rma).expect("begun");
    // The value is lost on its way, and then its sender closes.
    let is_value = |frame: &[u8]| {
        crate::wire::Data::parse(frame)
            .is_some_and(|(.., mut records)| records.any(|record| matches!(record, crate::wire::Record::Value { .. })))
    };
    pair.filter = std::boxed::Box::new(move |_, frame| !is_value(frame));
    pair.run(|pair| pair.hosts[1].changes == 1);
    pair.pump();
    let now = pair.now;
    let [_, engine] = &mut pair.engines;
    engine.close(now, server, &mut pair.hosts[1]);
    pair.run(|pair| pair.hosts[0].ended.contains_key(&1));
    assert_eq!(pair.hosts[0].ended[&1], Ok(()));
    assert_eq!(pair.hosts[0].local[..8], [3; 8]);
}

#[test]
fn a_receiver_without_slots_is_waited_for() {
    let mut pair = Pair::new(7);
    let [client, _] = pair.connect(Attribute::ReliableOrdered);
    pair.hosts[1].slots = 3;
    for number in 0..100 {
        pair.engines[0].send(pair.now, client, &[&message(number, 8)], Op(number), false).expect("send");
    }
    for round in 0..40 {
        let want = (3 + round * 3).min(100) as usize;
        pair.run(|pair| pair.hosts[1].received.len() >= want);
        assert_eq!(pair.hosts[1].received.len(), want);
        for _ in 0..20 {
            pair.step();
        }
        pair.hosts[1].slots += 3;
        let [_, engine] = &mut pair.engines;
        engine.refill(&mut pair.hosts[1]);
    }
    pair.run(|pair| pair.hosts[0].ended.len() == 100);
}

#[test]
fn a_farewell_is_heard_and_ends_what_is_open() {
    let mut pair = Pair::new(3);
    let [client, server] = pair.connect(Attribute::ReliableOrdered);
    pair.hosts[1].slots = 0;
    pair.engines[0].send(pair.now, client, &[b"never"], Op(1), false).expect("send");
    for _ in 0..10 {
        pair.step();
    }
    let now = pair.now;
    pair.engines[0].close(now, client, &mut pair.hosts[0]);
    assert_eq!(pair.hosts[0].ended[&1], Err(Failure::Disconnected));
    pair.run(|pair| pair.hosts[1].broken == [(server, Failure::Disconnected)]);
}

#[test]
fn who_waits_is_told_with_what_for_and_since_when() {
    let mut pair = Pair::new(0);
    pair.filter = std::boxed::Box::new(|_, _| false);
    let open = Open {
        to: ADDRESSES[1],
        attribute: Attribute::ReliableOrdered,
        payload: &[],
        host_cookie: 9,
        timeout: None,
        token: 0,
    };
    let begun = pair.now;
    let asking = pair.engines[0].connect(begun, &open).expect("connect");
    pair.run_until(begun.plus_micros(100_000));
    let waits = |pair: &Pair, side: usize| pair.engines[side].waits().collect::<Vec<_>>();
    let handshake = Wait { index: asking, what: WaitsFor::Handshake, since: begun, operations: 1 };
    assert_eq!(waits(&pair, 0), [handshake]);
    assert_eq!(waits(&pair, 1), []);

    let (mut pair, [client, _]) = Pair::connected(Attribute::ReliableOrdered);
    assert_eq!(waits(&pair, 0), [], "an open connection waits for nobody");
    pair.filter = std::boxed::Box::new(|_, _| false);
    let sent = pair.now;
    pair.engines[0].send(sent, client, &[b"lost"], Op(1), false).expect("send");
    pair.run_until(sent.plus_micros(500_000));
    let unanswered = Wait { index: client, what: WaitsFor::Acknowledgement, since: sent, operations: 1 };
    assert_eq!(waits(&pair, 0), [unanswered]);
    pair.filter = std::boxed::Box::new(|_, _| true);
    pair.run(|pair| pair.hosts[0].ended.contains_key(&1));
    assert_eq!(waits(&pair, 0), [], "it was answered");

    // Whether it says so with the first refusal or a later one, it is since then.
    pair.hosts[1].slots = 0;
    let before = pair.engines[0].stats().not_ready;
    pair.engines[0].send(pair.now, client, &[b"no slot"], Op(2), false).expect("send");
    pair.run(|pair| pair.engines[0].stats().not_ready == before + 1);
    let since = pair.now;
    pair.run_until(since.plus_micros(300_000));
    let refused = Wait { index: client, what: WaitsFor::Slot, since, operations: 1 };
    assert_eq!(waits(&pair, 0), [refused]);

    // Those that follow wait together, and each counts; an RMA counts once, whether it has started
    // or not.
    for op in 3..6 {
        pair.engines[0].send(pair.now, client, &[b"behind"], Op(op), false).expect("send");
    }
    assert_eq!(waits(&pair, 0), [Wait { operations: 4, ..refused }]);
}

#[test]
fn large_frames_of_memory_begin_where_the_first_does_in_its_line() {
    for (room, left, phase, len) in [
        (64_892, 1 << 20, 0, 64_832),
        (64_892, 1 << 20, 8, 64_888),
        (64_892, 1 << 20, 63, 64_833),
        (4096, 4097, 0, 4096),
        (4096, 4097, 1, 4095),
        (4100, 4101, 0, 4096),
        (4100, 4100, 3, 4100),
        (1364, 5000, 0, 1360),
        (1364, 5000, 4, 1364),
        (1364, 5000, 7, 1361),
        (64_892, 1, 0, 1),
    ] {
        let cut = send::new_frame::memory_len(room, left, || phase);
        assert_eq!(cut, len, "{left} bytes left, room for {room}, from {phase}");
    }
}

#[test]
fn the_shorter_limit_of_two_endpoints_holds_on_both_sides_and_is_forgotten() {
    for small in 0..2 {
        let mut pair = Pair::new(0);
        let config = Config { max_send_size: 100, ..CONFIG };
        pair.engines[small] = Engine::new(&config, [3; 8]);
        let indices = pair.connect(Attribute::ReliableOrdered);
        for (engine, index) in pair.engines.iter_mut().zip(indices) {
            let now = pair.now;
            assert_eq!(engine.send(now, index, &[&[0; 60][..], &[0; 41]], Op(1), false), Err(SendError::TooLong));
            assert_eq!(engine.send(now, index, &[&[0; 60][..], &[0; 40]], Op(1), false), Ok(()));
        }
        pair.run(|pair| pair.hosts.iter().all(|host| host.received.len() == 1));
        let large = 1 - small;
        assert_eq!(pair.engines[large].small_peers.len(), 1);
        assert_eq!(pair.engines[small].small_peers.len(), 0, "its own limit is the shorter one");
        let now = pair.now;
        pair.engines[large].close(now, indices[large], &mut pair.hosts[large]);
        pair.run(|pair| pair.engines[large].table.len() == 0);
        assert_eq!(pair.engines[large].small_peers.len(), 0);
    }
}
