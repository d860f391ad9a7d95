//! What the other side sends: frames that are nearly right, so that they get past the first door.

use super::host::HANDLE;
use crate::bytes::Bytes;
use cci_proto::engine::Target;
use cci_proto::wire::*;
use cci_proto::{Address, Atomic, Attribute};

/// Peers; the last never proves its address.
pub(super) const PEERS: usize = 4;

/// What is known of one peer's connection, as that peer sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peer {
    /// The engine's identifier, once a frame has told it.
    engine: u64,
    /// This side's.
    id: u64,
    number: u32,
    seq: u32,
    /// The newest sequence number and transmission that came from the engine.
    heard_seq: u32,
    heard_number: u32,
    heard_time: u32,
    cookie: u64,
    cookie_time: u32,
    /// What the engine's newest CONNECT shows.
    shown: u64,
    /// Bytes sent to the engine and received from it.
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// The address of a peer.
pub(super) fn address(peer: usize) -> Address {
    Address([u8::try_from(peer).unwrap_or(0) + 1; 24])
}

impl Peer {
    /// A frame of the engine, for this peer.
    pub(super) fn hear(&mut self, frame: &[u8]) {
        let Some(header) = Header::parse(frame) else { return };
        match header.kind {
            Kind::Retry => {
                let retry = Retry::parse(frame).expect("the engine writes what parses");
                (self.cookie, self.cookie_time) = (retry.cookie, retry.cookie_time);
            }
            Kind::Connect => {
                let connect = Connect::parse(frame).expect("the engine writes what parses");
                (self.engine, self.heard_seq) = (header.from, connect.offer.first_seq.wrapping_sub(1));
                self.shown = connect.cookie;
            }
            Kind::Accept => {
                let accept = Accept::parse(frame).expect("the engine writes what parses");
                (self.engine, self.heard_seq) = (header.from, accept.offer.first_seq.wrapping_sub(1));
            }
            Kind::Data => {
                let (data, ..) = Data::parse(frame).expect("the engine writes what parses");
                if data.flags & flags::SEQUENCED != 0 {
                    self.heard_seq = data.seq;
                }
            }
            _ => {}
        }
        if header.to != 0 && header.to != self.id {
            self.id = header.to;
        }
        (self.heard_number, self.heard_time) = (header.number, header.time);
    }

    /// The next frame's header; rarely a wrong one.
    fn header(&mut self, kind: Kind, bytes: &mut Bytes<'_>, time: u32) -> Header {
        let twist = bytes.byte();
        if twist != 0xFF {
            self.number = self.number.wrapping_add(1);
        }
        let engine = if twist == 0xFE { !self.engine } else { self.engine };
        let from = if twist == 0xFD { !self.id } else { self.id };
        Header { kind, to: engine, from, number: self.number, time }
    }

    fn offer(bytes: &mut Bytes<'_>) -> Offer {
        Offer {
            features: bytes.byte().into(),
            first_seq: u32::MAX - 5,
            attribute: [Attribute::ReliableOrdered, Attribute::ReliableUnordered, Attribute::Unreliable]
                [bytes.below(3)],
            mtu: bytes.short(),
            max_send_size: bytes.short().into(),
            recv_buffer: bytes.word(),
            credit: bytes.byte().into(),
            host: bytes.byte().into(),
        }
    }

    /// Asks for a connection, with the right cookie if `proves`.
    pub(super) fn connect(&mut self, bytes: &mut Bytes<'_>, time: u32, proves: bool, frame: &mut [u8]) -> usize {
        if bytes.flag() {
            self.id = 1 + u64::from(bytes.byte());
            self.seq = u32::MAX - 5;
        }
        let header = Header { to: 0, ..self.header(Kind::Connect, bytes, time) };
        let (cookie, cookie_time) = if proves { (self.cookie, self.cookie_time) } else { (bytes.long(), 0) };
        let token = bytes.byte().into();
        let payload = bytes.some();
        Connect { header, offer: Self::offer(bytes), token, cookie, cookie_time, payload, share: Share::None }
            .emit(frame)
    }

    /// One of the other kinds but DATA.
    pub(super) fn control(&mut self, bytes: &mut Bytes<'_>, time: u32, frame: &mut [u8]) -> usize {
        let kind = Kind::from_u8(2 + bytes.byte() % 9).unwrap_or(Kind::Confirm);
        let header = self.header(kind, bytes, time);
        let cookie = if bytes.flag() { self.shown } else { 0 };
        match kind {
            Kind::Retry => {
                Retry { header: Header { from: 0, ..header }, cookie: bytes.long(), cookie_time: bytes.word() }
                    .emit(frame)
            }
            Kind::Accept => {
                self.id = header.from;
                self.seq = u32::MAX - 5;
                Accept { header, offer: Self::offer(bytes), cookie, share: &[] }.emit(frame)
            }
            Kind::Reject => {
                let reason = Reason::from_u8(bytes.byte() & 3).unwrap_or(Reason::Program);
                Reject { header, reason, cookie, tag: None }.emit(frame)
            }
            Kind::Redirect => {
                let (token, uri) = (bytes.byte().into(), bytes.some());
                Redirect { header, cookie, token, uri, tag: None }.emit(frame)
            }
            Kind::Close => {
                let (reason, is_answer, messages) = (bytes.byte(), bytes.flag(), bytes.byte().into());
                let ack = self.heard_seq.wrapping_add(bytes.near());
                let sack = [bytes.long()];
                let sack = if bytes.flag() { &sack[..] } else { &[] };
                let mut end = Close { header, reason, is_answer, ack, messages }.emit(sack, frame);
                if bytes.flag() {
                    end = emit_result(frame, end, operation(bytes), bytes.byte() % 3);
                }
                end
            }
            Kind::Reset => {
                let number = self.heard_number.wrapping_add(bytes.near());
                Reset { header, number }.emit(frame)
            }
            _ => Confirm { header }.emit(frame),
        }
    }

    /// DATA with sound records.
    pub(super) fn data(&mut self, bytes: &mut Bytes<'_>, time: u32, frame: &mut [u8]) -> usize {
        let header = self.header(Kind::Data, bytes, time);
        let flags = bytes.byte() & flags::ALL;
        let seq = self.seq.wrapping_add(bytes.near());
        if flags & flags::SEQUENCED != 0 && seq == self.seq {
            self.seq = self.seq.wrapping_add(1);
        }
        let ack = Ack {
            credit: bytes.byte().into(),
            ack: self.heard_seq.wrapping_add(bytes.near()),
            echo_number: self.heard_number.wrapping_add(bytes.near()),
            echo_time: self.heard_time.wrapping_add(bytes.near()),
            delay: bytes.byte().into(),
            congested: bytes.byte().into(),
        };
        let sack: Vec<u64> = (0..bytes.below(3)).map(|_| bytes.long()).collect();
        let mut at = Data { header, seq, flags, ack, sack_words: 0 }.emit(&sack, frame);
        for _ in 0..bytes.below(4) {
            at = message(bytes, frame, at);
        }
        last(bytes, frame, at)
    }

    /// A header that is right, then anything.
    pub(super) fn anything(&mut self, bytes: &mut Bytes<'_>, time: u32, frame: &mut [u8]) -> usize {
        let kind = Kind::from_u8(1 + bytes.byte() % 10).unwrap_or(Kind::Data);
        self.header(kind, bytes, time).emit(frame);
        let body = bytes.some();
        frame[HEADER..HEADER + body.len()].copy_from_slice(body);
        HEADER + body.len()
    }
}

/// A record that others may follow.
fn message(bytes: &mut Bytes<'_>, frame: &mut [u8], at: usize) -> usize {
    match bytes.below(6) {
        0 => emit_message(frame, at, bytes.flag(), &[bytes.some()]),
        1 => {
            let (message, total, part_at) = (bytes.byte().into(), bytes.short().into(), bytes.short().into());
            let part = bytes.some();
            let end = emit_part(frame, at, message, total, part_at, part.len());
            frame[end..end + part.len()].copy_from_slice(part);
            end + part.len()
        }
        2 => emit_read(frame, at, bytes.byte().into(), &target(bytes)),
        3 => emit_value(frame, at, operation(bytes), bytes.short().into()),
        4 => emit_landing(frame, at, operation(bytes), target(bytes).handle),
        _ => emit_result(frame, at, operation(bytes), bytes.byte() % 4),
    }
}

/// A record that ends its frame, or none.
fn last(bytes: &mut Bytes<'_>, frame: &mut [u8], at: usize) -> usize {
    match bytes.below(8) {
        0 => {
            let (op, target, op_at) = (bytes.byte().into(), target(bytes), bytes.short().into());
            let memory = bytes.some();
            let end = emit_write(frame, at, op, &target, op_at, memory.len());
            frame[end..end + memory.len()].copy_from_slice(memory);
            end + memory.len()
        }
        1 => {
            let (op, op_at) = (operation(bytes), bytes.short().into());
            let memory = bytes.some();
            let end = emit_read_bytes(frame, at, op, op_at, memory.len());
            frame[end..end + memory.len()].copy_from_slice(memory);
            end + memory.len()
        }
        2 => emit_probe(frame, at, bytes.short() & 0x7FF),
        3 => emit_probe_reply(frame, at, bytes.short() & 0x7FF),
        4 => slice(bytes, frame, at),
        5 => {
            let target = Target { len: 4 << (bytes.byte() & 1), ..target(bytes) };
            emit_atomic(frame, at, bytes.byte().into(), &target, Atomic::FetchAdd(bytes.short().into()))
        }
        6 => emit_large(frame, at, bytes.byte().into(), bytes.short().into()),
        _ => at,
    }
}

/// A slice of anything, or of a sound record, or all of one.
fn slice(bytes: &mut Bytes<'_>, frame: &mut [u8], at: usize) -> usize {
    let mut whole = vec![0; 512];
    let len = if bytes.flag() {
        message(bytes, &mut whole, 0)
    } else {
        let some = bytes.some();
        whole[..some.len()].copy_from_slice(some);
        some.len()
    };
    let from = bytes.below(len.min(200) + 1);
    let to = if bytes.flag() { len } else { from + bytes.below(len - from + 1) };
    let total = len + if bytes.flag() { 0 } else { usize::from(bytes.byte()) };
    let narrow = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
    let end = emit_slice(frame, at, narrow(total), narrow(from), to - from);
    frame[end..end + to - from].copy_from_slice(&whole[from..to]);
    end + to - from
}

/// A number of one of the engine's operations: the host's number, and how often there was an RMA
/// before.
fn operation(bytes: &mut Bytes<'_>) -> u32 {
    u32::from(bytes.byte()) | u32::from(bytes.byte()) << 20
}

fn target(bytes: &mut Bytes<'_>) -> Target {
    let handle = if bytes.flag() { HANDLE } else { [bytes.byte().into(), 7] };
    Target { handle, offset: bytes.short().into(), len: bytes.short().into() }
}
