//! What a hostile peer, a bad network and unlucky timing may try. Each test is a fault that was
//! once there, or a promise that one of those would break.

mod addresses;
mod admission;
mod copy_verify;
mod farewell;
mod handshake;
mod hostile;
mod identity;
mod memory;
mod moved;
mod order;
mod path;
mod patience;
mod rate;
mod slots;
mod unreachable;

use super::{ADDRESSES, CONFIG, Pair, RecordingHost, message, recording_host};
use crate::engine::*;
use crate::wire::{self, Ack, Connect, Data, Header, Kind, Offer, Record, Retry, Share, flags};
use crate::{Access, Address, Attribute, Failure, Time};
use alloc::vec;
use alloc::vec::Vec;

extern crate std;

/// One engine, and a peer that says what the test wants.
struct Raw {
    engine: Engine,
    host: RecordingHost,
    now: Time,
    index: Index,
    /// Identifiers of the peer and of the engine.
    me: u64,
    it: u64,
    /// Next transmission number, sequence number, and what the peer has accepted of the engine's.
    number: u32,
    seq: u32,
    ack: u32,
    credit: u16,
}

/// The peer's address.
const PEER: Address = ADDRESSES[1];

impl Raw {
    /// A connection that the peer asked for and the engine's host accepted.
    fn new(attribute: Attribute) -> Self {
        Self::with(&CONFIG, attribute)
    }

    fn with(config: &Config, attribute: Attribute) -> Self {
        let mut raw = Self {
            engine: Engine::new(config, [9; 8]),
            host: recording_host(1 << 20),
            now: Time(1_000_000_000),
            index: Index(0),
            me: 0x0102_0304_0506_0708,
            it: 0,
            number: 100,
            seq: 500,
            ack: 0,
            credit: 1000,
        };
        raw.open(attribute);
        raw
    }

    /// A CONNECT of this client.
    fn connect_frame(&mut self, attribute: Attribute, cookie: u64, cookie_time: u32) -> Vec<u8> {
        let offer = Offer {
            features: 0,
            first_seq: self.seq,
            attribute,
            mtu: 1400,
            max_send_size: 8192,
            recv_buffer: 1 << 20,
            credit: 1000,
            host: 0,
        };
        let header = self.header(Kind::Connect);
        let mut frame = vec![0; 2000];
        let connect = Connect {
            header: Header { to: 0, ..header },
            offer,
            token: 0,
            cookie,
            cookie_time,
            payload: b"",
            share: Share::None,
        };
        let len = connect.emit(&mut frame);
        frame.truncate(len);
        frame
    }

    fn header(&mut self, kind: Kind) -> Header {
        self.number = self.number.wrapping_add(1);
        Header { kind, to: self.it, from: self.me, number: self.number, time: self.now.micros() }
    }

    /// Shows the server a CONNECT with a good cookie.
    fn ask(&mut self, attribute: Attribute) {
        let first = self.connect_frame(attribute, 0, 0);
        let answers = self.give(&first);
        let retry = answers.iter().find_map(|frame| Retry::parse(frame)).expect("a cookie");
        let second = self.connect_frame(attribute, retry.cookie, retry.cookie_time);
        self.give(&second);
    }

    fn open(&mut self, attribute: Attribute) {
        self.ask(attribute);
        self.index = self.host.requests.pop().expect("a request");
        self.engine.accept(self.now, self.index, 7).expect("accept");
        let frames = self.poll();
        let accept = frames.iter().find_map(|frame| wire::Accept::parse(frame)).expect("ACCEPT");
        (self.it, self.ack) = (accept.header.from, accept.offer.first_seq);
        let confirm = self.header(Kind::Confirm);
        let mut frame = vec![0; 32];
        confirm.emit(&mut frame);
        self.give(&frame);
        assert_eq!(self.host.opened, [self.index]);
    }

    /// Hands a frame in, and says what comes back.
    fn give(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        self.engine.handle_verified(self.now, &PEER, frame, false, &mut self.host);
        self.poll()
    }

    fn poll(&mut self) -> Vec<Vec<u8>> {
        let (mut out, mut buffer) = (Vec::new(), vec![0; 1400]);
        while let Some(transmit) = self.engine.poll_transmit(self.now, true, &mut buffer, &mut self.host) {
            let mut frame = buffer[..transmit.len].to_vec();
            frame.extend(transmit.piece.unwrap_or_default());
            out.push(frame);
            assert!(out.len() < 10_000, "frames without end");
        }
        out
    }

    /// A DATA frame of the peer: echoes the newest number that the engine can have used.
    fn data(&mut self, seq: Option<u32>, bits: u8, sack: &[u64], records: &[u8]) -> Vec<u8> {
        let newest = self.engine.table.get(self.index.0).map_or(0, |conn| conn.number.wrapping_sub(1));
        let ack = Ack {
            credit: self.credit,
            ack: self.ack,
            echo_number: newest,
            echo_time: self.now.micros(),
            delay: 0,
            congested: 0,
        };
        let header = self.header(Kind::Data);
        let bits = bits | if seq.is_some() { flags::SEQUENCED } else { 0 };
        let data = Data { header, seq: seq.unwrap_or(0), flags: bits, ack, sack_words: 0 };
        let mut frame = vec![0; 1400];
        let at = data.emit(sack, &mut frame);
        frame.truncate(at);
        frame.extend(records);
        frame
    }

    /// The peer's next frame of the sequence.
    fn next(&mut self, records: &[u8]) -> Vec<Vec<u8>> {
        let frame = self.data(Some(self.seq), 0, &[], records);
        self.seq = self.seq.wrapping_add(1);
        self.give(&frame)
    }

    /// The peer accepts everything that the engine has sent.
    fn accept_all(&mut self) -> Vec<Vec<u8>> {
        self.ack = self.engine.table.get(self.index.0).expect("open").next_seq;
        let frame = self.data(None, 0, &[], &[]);
        self.give(&frame)
    }

    /// Lets time pass, doing what is due; what was sent meanwhile.
    fn wait(&mut self, micros: u64) -> Vec<Vec<u8>> {
        let until = self.now.plus_micros(micros);
        let mut out = Vec::new();
        for _ in 0..100_000 {
            let due = self.engine.poll_timeout().filter(|due| *due <= until);
            let Some(due) = due else {
                self.now = until;
                return out;
            };
            self.now = due.max(self.now);
            self.engine.handle_timeout(self.now, &mut self.host);
            out.extend(self.poll());
        }
        panic!("the timers spin at {:?}", self.now);
    }

    fn rma(&mut self, op: u32, read: bool, len: u64, note: Option<&[u8]>) {
        let target = Target { handle: [7, 7], offset: 0, len };
        let rma = Rma { op: Op(op), target, access: access(read), fence: false, message: note };
        self.engine.rma(self.now, self.index, &rma).expect("an RMA");
    }
}

fn access(read: bool) -> Access {
    if read { Access::Read } else { Access::Write }
}

/// Every record of DATA frames.
fn records(frames: &[Vec<u8>]) -> Vec<Record<'_>> {
    frames.iter().filter_map(|frame| Data::parse(frame)).flat_map(|(.., records)| records).collect()
}

/// Bytes of a record that `emit` writes.
fn record(emit: impl FnOnce(&mut [u8]) -> usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 2000];
    let len = emit(&mut frame);
    frame.truncate(len);
    frame.extend(bytes);
    frame
}

fn result(op: u32, status: u8) -> Vec<u8> {
    record(|frame| wire::emit_result(frame, 0, op, status), &[])
}

fn note(bytes: &[u8]) -> Vec<u8> {
    record(|frame| wire::emit_message(frame, 0, false, &[bytes]), &[])
}

fn part(message: u32, total: u32, at: u32, bytes: &[u8]) -> Vec<u8> {
    record(|frame| wire::emit_part(frame, 0, message, total, at, bytes.len()), bytes)
}

fn write(op: u32, handle: u64, len: u64, at: u64, bytes: &[u8]) -> Vec<u8> {
    let target = Target { handle: [handle, handle], offset: 0, len };
    record(|frame| wire::emit_write(frame, 0, op, &target, at, bytes.len()), bytes)
}

/// Whether everything that an engine lends is back.
fn is_clean(engine: &Engine, host: &RecordingHost) -> bool {
    engine.frames.left() == engine.config.frames as usize
        && engine.holds.left() == engine.config.holds as usize
        && host.buffers.is_empty()
        && engine.is_quiet()
}
