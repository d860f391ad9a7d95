//! What a client sends: frames as bytes decide.

use super::server::{CONNECTIONS, MEMORY};
use crate::bytes::Bytes;
use cci_proto::wire::Crc;
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of a header.
pub(super) const HEADER: usize = 16;
/// Messages that a lane may always send at first.
pub(super) const MESSAGES: u32 = 4;
/// The message of [`Stream::greeting`].
pub(super) const GREETING: &[u8] = b"after all that";
/// Messages without grants, and requests: fewer than the endpoint has slots for.
const MOST_UNGRANTED: usize = 16;
const MOST_REQUESTS: usize = 8;
/// Operations of a stream.
const MOST_OPERATIONS: usize = 64;
/// Largest message, bytes.
const MAX_SEND: u32 = 8192;
/// What no connection and no operation has for its number.
const STRANGER: u32 = 0x7777_03E7;

/// Flags of frames.
const OWN: u8 = 1;
const OF_OPERATION: u8 = 2;
const WANT: u8 = 4;
const HAS_MESSAGE: u8 = 8;
const CHECKED: u8 = 16;
const IN_PARTS: u8 = 32;

/// What a frame is, as far as it is sent or looked at here.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Kind {
    Connect = 1,
    Accept = 2,
    Disconnect = 6,
    Message = 7,
    Datagram = 8,
    Ping = 9,
    Pong = 10,
    Write = 11,
    Read = 12,
    Data = 13,
    Answer = 14,
    Result = 15,
    Cancel = 16,
    Atomic = 17,
    Grant = 18,
    Recall = 19,
    Landed = 23,
    WritePart = 24,
    AnswerPart = 25,
    Abandon = 26,
}

/// By what a client names connections and memory of the endpoint.
pub(super) struct Names {
    pub(super) connections: [u32; CONNECTIONS],
    pub(super) written: [u64; 2],
    pub(super) read: [u64; 2],
}

/// A write of which bytes are missing.
struct Open {
    number: u32,
    left: usize,
    has_message: bool,
}

/// A write in parts of which bytes are missing: those from one position to another.
struct OpenParts {
    number: u32,
    connection: u32,
    target: Vec<u8>,
    total: usize,
    missing: Range<usize>,
}

/// The bytes that a client sends, and what is known of their effects.
pub(super) struct Stream {
    pub(super) bytes: Vec<u8>,
    /// RESULT frames that it causes.
    pub(super) results: usize,
    /// Reads whose connection ends, before or after they are answered.
    pub(super) unsure: BTreeSet<u32>,
    names: Names,
    open: Vec<Open>,
    /// Whether the endpoint takes parts, and those writes.
    takes_parts: bool,
    parts: Vec<OpenParts>,
    reads: Vec<(u32, u32)>,
    operations: usize,
    messages: u32,
    ungranted: usize,
    requests: usize,
    granted: u32,
}

/// The HELLO of a client; of a further stream, with the offer and its number.
pub(super) fn hello(offer: [u8; 16], stream: u64) -> Vec<u8> {
    let mut hello = Vec::from(*b"cci-tcp1");
    hello.extend_from_slice(&1_u16.to_le_bytes());
    hello.extend_from_slice(&(1_u16 << 15).to_le_bytes());
    hello.extend_from_slice(&MAX_SEND.to_le_bytes());
    hello.extend_from_slice(&[7; 16]);
    hello.extend_from_slice(&offer);
    hello.extend_from_slice(&1024_u32.to_le_bytes());
    hello.extend_from_slice(&[0; 4]);
    hello.extend_from_slice(&stream.to_le_bytes());
    hello
}

/// The header of a frame.
pub(super) fn emit(kind: u8, flags: u8, connection: u32, len: usize) -> Vec<u8> {
    let mut header = Vec::from((len as u32).to_le_bytes());
    header.extend_from_slice(&[kind, flags, 0, 0]);
    header.extend_from_slice(&connection.to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    header
}

fn frame(kind: Kind, flags: u8, connection: u32, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [emit(kind as u8, flags, connection, body.len()), body].concat()
}

/// Asks for a connection by this number, each with another attribute.
pub(super) fn connect(number: usize) -> Vec<u8> {
    request(number as u32, number as u32, b"")
}

fn request(number: u32, attribute: u32, payload: &[u8]) -> Vec<u8> {
    let head = [&attribute.to_le_bytes()[..], &[0; 4], &[1; 16], &[0; 8]].concat();
    frame(Kind::Connect, 0, number, &[&head, payload])
}

impl Stream {
    fn new(names: Names) -> Self {
        Self {
            bytes: Vec::new(),
            results: 0,
            unsure: BTreeSet::new(),
            names,
            open: Vec::new(),
            takes_parts: false,
            parts: Vec::new(),
            reads: Vec::new(),
            operations: 0,
            messages: 0,
            ungranted: 0,
            requests: 0,
            granted: 0,
        }
    }

    /// Frames that keep the protocol.
    pub(super) fn right(decisions: &mut Bytes<'_>, names: Names, takes_parts: bool) -> Self {
        let mut stream = Self { takes_parts, ..Self::new(names) };
        while !decisions.is_empty() {
            let kind = decisions.byte();
            stream.add(kind, decisions);
        }
        stream
    }

    /// Frames that keep the protocol, frames that do not, and any bytes.
    pub(super) fn any(decisions: &mut Bytes<'_>, names: Names, takes_parts: bool) -> Self {
        let mut stream = Self { takes_parts, ..Self::new(names) };
        while !decisions.is_empty() {
            match decisions.byte() {
                kind @ 0..128 => stream.add(kind, decisions),
                128..192 => stream.bytes.extend_from_slice(decisions.some()),
                _ => stream.add_wrong(decisions),
            }
        }
        stream
    }

    /// One message.
    pub(super) fn greeting(names: Names) -> Self {
        let mut stream = Self::new(names);
        stream.put(Kind::Message, 0, stream.names.connections[0], &[GREETING]);
        stream
    }

    fn put(&mut self, kind: Kind, flags: u8, connection: u32, parts: &[&[u8]]) {
        self.bytes.extend_from_slice(&frame(kind, flags, connection, parts));
    }

    /// A frame whose head is right, and whose kind, flags, connection and length are anything.
    fn add_wrong(&mut self, decisions: &mut Bytes<'_>) {
        let kinds = if self.takes_parts { 28 } else { 26 };
        let (kind, flags) = (decisions.byte() % kinds, decisions.byte());
        let (connection, body) = (self.connection(decisions), decisions.some());
        let len = if decisions.flag() { body.len() } else { decisions.word() as usize };
        self.bytes.extend_from_slice(&emit(kind, flags, connection, len));
        self.bytes.extend_from_slice(body);
    }

    fn add(&mut self, kind: u8, decisions: &mut Bytes<'_>) {
        if self.takes_parts && kind & 64 != 0 {
            return self.add_parts(kind, decisions);
        }
        match kind % 16 {
            0 => self.add_message(decisions),
            1 => self.add_datagram(decisions),
            2 | 3 => self.add_write(decisions),
            4..=6 => self.add_data(decisions),
            7 | 8 => self.add_read(decisions),
            9 => self.add_atomic(decisions),
            10 => self.add_cancel(decisions),
            11 => self.put(Kind::Ping, 0, 0, &[]),
            12 => self.add_request(decisions),
            13 => self.add_disconnect(decisions),
            14 => self.add_grant(decisions),
            _ => self.add_rare(decisions),
        }
    }

    /// A connection, or none that there is.
    fn connection(&self, decisions: &mut Bytes<'_>) -> u32 {
        self.names.connections.get(decisions.below(CONNECTIONS + 1)).copied().unwrap_or(STRANGER)
    }

    fn add_message(&mut self, decisions: &mut Bytes<'_>) {
        if self.messages < MESSAGES {
            self.messages += 1;
            let connection = self.connection(decisions);
            let len = u32::from(decisions.short()) % (MAX_SEND + 1);
            self.put(Kind::Message, 0, connection, &[&vec![self.messages as u8; len as usize]]);
        }
    }

    fn add_datagram(&mut self, decisions: &mut Bytes<'_>) {
        if self.ungranted < MOST_UNGRANTED {
            self.ungranted += 1;
            let connection = self.connection(decisions);
            self.put(Kind::Datagram, 0, connection, &[decisions.some()]);
        }
    }

    /// The number of a new operation, if there may be one more.
    fn operation(&mut self, decisions: &mut Bytes<'_>) -> Option<u32> {
        self.operations += 1;
        let generation = u32::from(decisions.byte()) << 16;
        (self.operations <= MOST_OPERATIONS).then_some(generation | self.operations as u32)
    }

    /// Offset and length: most lie inside.
    fn range(decisions: &mut Bytes<'_>) -> (u64, usize) {
        let scale = [1, 16, 1024][decisions.below(3)];
        let (offset, len) = (decisions.short(), 1 + usize::from(decisions.byte()) * scale);
        (offset.into(), len.min(MEMORY))
    }

    fn handle(&self, decisions: &mut Bytes<'_>, usual: [u64; 2]) -> [u64; 2] {
        match decisions.byte() {
            0 => self.names.read,
            1 => self.names.written,
            2 => [usual[0], 1],
            _ => usual,
        }
    }

    fn target(number: u32, handle: [u64; 2], offset: u64, total: usize) -> Vec<u8> {
        let words = [handle[0], handle[1], offset, total as u64].map(u64::to_le_bytes).concat();
        [&number.to_le_bytes()[..], &[0; 4], &words].concat()
    }

    fn add_write(&mut self, decisions: &mut Bytes<'_>) {
        let Some(number) = self.operation(decisions) else { return };
        let connection = self.connection(decisions);
        let handle = self.handle(decisions, self.names.written);
        let (offset, total) = Self::range(decisions);
        let has_message = decisions.byte() % 8 == 1 && self.messages < MESSAGES;
        self.messages += u32::from(has_message);
        let target = Self::target(number, handle, offset, total);
        let flags = if has_message { HAS_MESSAGE } else { 0 };
        let first = usize::from(decisions.short()).min(total);
        self.put_bytes((Kind::Write, flags, connection), &target, first, decisions);
        self.open.push(Open { number, left: total - first, has_message });
        self.close_written(self.open.len() - 1);
    }

    fn add_data(&mut self, decisions: &mut Bytes<'_>) {
        if self.open.is_empty() {
            return self.put_bytes((Kind::Data, 0, 0), &STRANGER.to_le_bytes(), 100, decisions);
        }
        let at = decisions.below(self.open.len());
        let (number, left) = (self.open[at].number, self.open[at].left);
        let count = (1 + usize::from(decisions.short())).min(left);
        self.put_bytes((Kind::Data, 0, 0), &number.to_le_bytes(), count, decisions);
        self.open[at].left -= count;
        self.close_written(at);
    }

    fn add_parts(&mut self, kind: u8, decisions: &mut Bytes<'_>) {
        match kind % 8 {
            0 | 1 => self.add_write_in_parts(decisions),
            2..=5 => self.add_part(decisions),
            6 => self.add_abandon(decisions),
            _ => self.add_read_in_parts(decisions),
        }
    }

    fn add_write_in_parts(&mut self, decisions: &mut Bytes<'_>) {
        let Some(number) = self.operation(decisions) else { return };
        let connection = self.connection(decisions);
        let handle = self.handle(decisions, self.names.written);
        let (offset, total) = Self::range(decisions);
        let target = Self::target(number, handle, offset, total);
        self.parts.push(OpenParts { number, connection, target, total, missing: 0..total });
    }

    /// A part from either end of what is missing of a write.
    fn add_part(&mut self, decisions: &mut Bytes<'_>) {
        let at = decisions.below(self.parts.len().max(1));
        let Some(open) = self.parts.get_mut(at) else { return };
        let count = (1 + usize::from(decisions.short())).min(open.missing.len());
        let position = if decisions.flag() { open.missing.start } else { open.missing.end - count };
        if position == open.missing.start {
            open.missing.start += count;
        } else {
            open.missing.end -= count;
        }
        let (connection, is_over) = (open.connection, open.missing.is_empty());
        let head = [&open.target[..], &(position as u64).to_le_bytes()].concat();
        self.put_bytes((Kind::WritePart, 0, connection), &head, count, decisions);
        if is_over {
            self.parts.swap_remove(at);
            self.results += 1;
        }
    }

    /// No more of a write comes than has come.
    fn add_abandon(&mut self, decisions: &mut Bytes<'_>) {
        if !self.parts.is_empty() {
            let open = self.parts.swap_remove(decisions.below(self.parts.len()));
            let handed = (open.total - open.missing.len()) as u64;
            self.put(Kind::Abandon, 0, 0, &[&open.number.to_le_bytes(), &[0; 4], &handed.to_le_bytes()]);
            self.results += 1;
        }
    }

    fn add_read_in_parts(&mut self, decisions: &mut Bytes<'_>) {
        let Some(number) = self.operation(decisions) else { return };
        let connection = self.connection(decisions);
        let (offset, total) = Self::range(decisions);
        self.put(Kind::Read, IN_PARTS, connection, &[&Self::target(number, self.names.read, offset, total)]);
        self.reads.push((number, connection));
        self.results += 1;
    }

    /// Bytes of a write, with a sum now and then, which is wrong now and then.
    fn put_bytes(
        &mut self,
        (kind, flags, connection): (Kind, u8, u32),
        head: &[u8],
        count: usize,
        decisions: &mut Bytes<'_>,
    ) {
        let (first, check) = (decisions.byte(), decisions.byte());
        let bytes: Vec<u8> = (0..count).map(|at| first.wrapping_add(at as u8)).collect();
        let sum = Crc::new().update(&bytes).value() ^ u32::from(check == 1);
        let sum = if check < 64 { &sum.to_le_bytes()[..] } else { &[] };
        let flags = if sum.is_empty() { flags } else { flags | CHECKED };
        self.put(kind, flags, connection, &[head, sum, &bytes]);
    }

    /// A write of which nothing is left ends, by its message where it has one.
    fn close_written(&mut self, at: usize) {
        if self.open[at].left > 0 {
            return;
        }
        let open = self.open.swap_remove(at);
        self.results += 1;
        if open.has_message {
            self.put(Kind::Message, OF_OPERATION, self.names.connections[0], &[&open.number.to_le_bytes(), b"written"]);
        }
    }

    fn add_read(&mut self, decisions: &mut Bytes<'_>) {
        let Some(number) = self.operation(decisions) else { return };
        let connection = self.connection(decisions);
        // What is written meanwhile may be read or not.
        let handle = if decisions.byte() == 0 { [1, 2] } else { self.names.read };
        let (offset, total) = Self::range(decisions);
        self.put(Kind::Read, 0, connection, &[&Self::target(number, handle, offset, total)]);
        self.reads.push((number, connection));
        self.results += 1;
    }

    fn add_atomic(&mut self, decisions: &mut Bytes<'_>) {
        let Some(number) = self.operation(decisions) else { return };
        let connection = self.connection(decisions);
        let handle = self.handle(decisions, self.names.written);
        let (offset, total) = (u64::from(decisions.short()) * 4, [8, 4, 3][decisions.below(3)]);
        let (first, second) = (decisions.long(), u64::from(decisions.byte()));
        let words = if decisions.flag() { [1, first, 0] } else { [2, second, first] };
        let target = Self::target(number, handle, offset, total);
        self.put(Kind::Atomic, 0, connection, &[&target, &words.map(u64::to_le_bytes).concat()]);
        self.results += 1;
    }

    fn add_cancel(&mut self, decisions: &mut Bytes<'_>) {
        let number = if self.open.is_empty() {
            STRANGER
        } else {
            let open = self.open.swap_remove(decisions.below(self.open.len()));
            self.messages -= u32::from(open.has_message);
            open.number
        };
        self.put(Kind::Cancel, 0, 0, &[&number.to_le_bytes()]);
        self.results += 1;
    }

    fn add_request(&mut self, decisions: &mut Bytes<'_>) {
        if self.requests < MOST_REQUESTS {
            self.requests += 1;
            let number = 100 + self.requests as u32;
            let attribute = decisions.below(CONNECTIONS) as u32;
            self.bytes.extend_from_slice(&request(number, attribute, decisions.some()));
        }
    }

    fn add_disconnect(&mut self, decisions: &mut Bytes<'_>) {
        if decisions.flag() {
            return self.put(Kind::Disconnect, OWN, 100 + u32::from(decisions.byte() % 16), &[]);
        }
        let connection = self.connection(decisions);
        self.unsure.extend(self.reads.iter().filter(|(_, of)| *of == connection).map(|(number, _)| *number));
        self.put(Kind::Disconnect, 0, connection, &[]);
    }

    fn add_grant(&mut self, decisions: &mut Bytes<'_>) {
        self.granted = (self.granted + u32::from(decisions.byte())).min(256);
        let flags = if decisions.flag() { WANT } else { 0 };
        self.put(Kind::Grant, flags, 0, &[&self.granted.to_le_bytes()]);
    }

    fn add_rare(&mut self, decisions: &mut Bytes<'_>) {
        match decisions.below(3) {
            0 => self.put(Kind::Recall, 0, 0, &[]),
            1 => self.put(Kind::Pong, WANT, 0, &[]),
            _ => {
                self.put(Kind::Landed, 0, self.names.connections[0], &[&STRANGER.to_le_bytes(), &[0; 4]]);
                self.results += 1;
            }
        }
    }
}
