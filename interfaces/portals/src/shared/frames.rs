//! What the lines of the rings say.

use super::rings::Frame;
use crate::handles::Handle;
use crate::initiator::Target;
use crate::objects::{Match, Position, Unlink};
use crate::packed::{halves, pack, pair, unpack};
use crate::types::{Described, Event, ProcessId};

/// What a program asks for. All but puts and gets are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Queue(u64),
    FreeQueue(Handle),
    Attach { portal: u32, wanted: Match, unlink: Unlink, at: Position },
    UnlinkEntry(Handle),
    AttachMemory { entry: Handle, described: Described, unlink: Unlink },
    Bind { described: Described, unlink: Unlink },
    UnlinkMemory(Handle),
    Status(u32),
    Put { memory: Handle, region: Option<(u64, u64)>, wants_ack: bool, to: Target },
    Get { memory: Handle, region: Option<(u64, u64)>, from: Target },
}

/// What the engine returns. An event takes two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Returned {
    /// To the command that was sent last: a code, 0 for none, and a value.
    Answer(u32, u64),
    /// A put or a get did not begin: a code.
    Refused(u32),
    /// The first half of an event.
    Event,
    /// The second one.
    Rest,
}

const QUEUE: u8 = 1;
const FREE_QUEUE: u8 = 2;
const ATTACH: u8 = 3;
const UNLINK_ENTRY: u8 = 4;
const ATTACH_MEMORY: u8 = 5;
const BIND: u8 = 6;
const UNLINK_MEMORY: u8 = 7;
const STATUS: u8 = 8;
const PUT: u8 = 9;
const GET: u8 = 10;

const ANSWER: u8 = 1;
const REFUSED: u8 = 2;
const EVENT: u8 = 3;
const REST: u8 = 4;

/// Bits of the word of a put or a get.
const ACK: u64 = 1 << 32;
const WHOLE: u64 = 1 << 33;
const IS_LOST: u64 = 1 << 40;

fn unlink(bit: u32) -> Unlink {
    if bit == 0 { Unlink::Retain } else { Unlink::Unlink }
}

fn write_described(of: &Described, unlink: Unlink) -> [u64; 7] {
    let options = pair(of.options, of.threshold.cast_unsigned());
    let queue = pair(of.queue.bits(), u32::from(unlink == Unlink::Unlink));
    [of.start, of.length, of.max_size, of.user, options, queue, 0]
}

fn read_described(body: &[u64; 7]) -> (Described, Unlink) {
    let [start, length, max_size, user, options, queue, _] = *body;
    let ((options, threshold), (queue, bit)) = (halves(options), halves(queue));
    let (threshold, queue) = (threshold.cast_signed(), Handle::from_bits(queue));
    (Described { start, length, threshold, max_size, options, user, queue }, unlink(bit))
}

fn write_request(region: Option<(u64, u64)>, bits: u64, to: &Target) -> [u64; 7] {
    let (offset, length) = region.unwrap_or_default();
    let bits = bits | if region.is_none() { WHOLE } else { 0 };
    // Both are below 2^16.
    let at = u64::from(to.portal) & 0xffff | (u64::from(to.access) & 0xffff) << 16 | bits;
    [offset, length, to.process.word(), at, to.bits, to.offset, to.header]
}

fn read_request(body: &[u64; 7]) -> (Option<(u64, u64)>, bool, Target) {
    let [offset, length, process, at, bits, remote, header] = *body;
    let (numbers, _) = halves(at);
    let to = Target {
        process: ProcessId::of_word(process),
        portal: numbers & 0xffff,
        access: numbers >> 16,
        bits,
        offset: remote,
        header,
    };
    ((at & WHOLE == 0).then_some((offset, length)), at & ACK != 0, to)
}

impl Command {
    #[inline]
    pub(crate) fn frame(&self) -> Frame {
        let (kind, word, body) = match self {
            Self::Queue(count) => (QUEUE, 0, [*count, 0, 0, 0, 0, 0, 0]),
            Self::FreeQueue(queue) => (FREE_QUEUE, queue.bits(), [0; 7]),
            Self::Attach { portal, wanted, unlink, at } => {
                let bits = u64::from(*unlink == Unlink::Unlink) | u64::from(*at == Position::After) << 1;
                (ATTACH, *portal, [wanted.source.word(), wanted.bits, wanted.ignore, bits, 0, 0, 0])
            }
            Self::UnlinkEntry(entry) => (UNLINK_ENTRY, entry.bits(), [0; 7]),
            Self::AttachMemory { entry, described, unlink } => {
                (ATTACH_MEMORY, entry.bits(), write_described(described, *unlink))
            }
            Self::Bind { described, unlink } => (BIND, 0, write_described(described, *unlink)),
            Self::UnlinkMemory(memory) => (UNLINK_MEMORY, memory.bits(), [0; 7]),
            Self::Status(register) => (STATUS, *register, [0; 7]),
            Self::Put { memory, region, wants_ack, to } => {
                (PUT, memory.bits(), write_request(*region, if *wants_ack { ACK } else { 0 }, to))
            }
            Self::Get { memory, region, from } => (GET, memory.bits(), write_request(*region, 0, from)),
        };
        Frame { kind, word, body }
    }

    /// What a line says. `None`: nothing that this library writes.
    #[inline]
    pub(crate) fn parse(frame: &Frame) -> Option<Self> {
        let Frame { kind, word, ref body } = *frame;
        let handle = Handle::from_bits(word);
        Some(match kind {
            QUEUE => Self::Queue(body[0]),
            FREE_QUEUE => Self::FreeQueue(handle),
            ATTACH => {
                let wanted = Match { source: ProcessId::of_word(body[0]), bits: body[1], ignore: body[2] };
                let at = if body[3] & 2 == 0 { Position::Before } else { Position::After };
                Self::Attach { portal: word, wanted, unlink: unlink(u32::from(body[3] & 1 != 0)), at }
            }
            UNLINK_ENTRY => Self::UnlinkEntry(handle),
            ATTACH_MEMORY => {
                let (described, unlink) = read_described(body);
                Self::AttachMemory { entry: handle, described, unlink }
            }
            BIND => {
                let (described, unlink) = read_described(body);
                Self::Bind { described, unlink }
            }
            UNLINK_MEMORY => Self::UnlinkMemory(handle),
            STATUS => Self::Status(word),
            PUT => {
                let (region, wants_ack, to) = read_request(body);
                Self::Put { memory: handle, region, wants_ack, to }
            }
            GET => {
                let (region, _, from) = read_request(body);
                Self::Get { memory: handle, region, from }
            }
            _ => return None,
        })
    }
}

impl Returned {
    pub(super) fn answer(code: u32, value: u64) -> Frame {
        Frame { kind: ANSWER, word: code, body: [value, 0, 0, 0, 0, 0, 0] }
    }

    pub(super) fn refused(code: u32) -> Frame {
        Frame { kind: REFUSED, word: code, body: [0; 7] }
    }

    /// What a line is. `None`: nothing that an engine writes.
    pub(super) fn parse(frame: &Frame) -> Option<Self> {
        Some(match frame.kind {
            ANSWER => Self::Answer(frame.word, frame.body[0]),
            REFUSED => Self::Refused(frame.word),
            EVENT => Self::Event,
            REST => Self::Rest,
            _ => return None,
        })
    }
}

/// The two lines of an event, and whether events before it were lost.
pub(super) fn write_event(event: &Event, is_lost: bool) -> [Frame; 2] {
    let [a, b, c, d, e, f, g, rest @ .., handles] = pack(event);
    let [h, i, j, k, l, m, kind] = rest;
    let (memory, queue) = halves(handles);
    [
        Frame { kind: EVENT, word: memory, body: [a, b, c, d, e, f, g] },
        Frame { kind: REST, word: queue, body: [h, i, j, k, l, m, kind | if is_lost { IS_LOST } else { 0 }] },
    ]
}

/// The event of two lines. `None`: no engine writes that.
pub(super) fn read_event(first: &Frame, rest: &Frame) -> Option<(Event, bool)> {
    let [a, b, c, d, e, f, g] = first.body;
    let [h, i, j, k, l, m, kind] = rest.body;
    let event = unpack(&[a, b, c, d, e, f, g, h, i, j, k, l, m, kind, pair(first.word, rest.word)])?;
    Some((event, kind & IS_LOST != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ANY, EventKind};

    #[test]
    fn commands_come_back_from_their_lines() {
        let queue = Handle::from_bits(0x8000_0001);
        let wanted = Match { source: ProcessId { nid: 1, pid: ANY }, bits: u64::MAX, ignore: 7 };
        let described = Described { start: 64, length: 8, threshold: -1, max_size: 3, options: 0x1ff, user: !0, queue };
        let process = ProcessId { nid: 3, pid: 9 };
        let to = Target { process, portal: 0xffff, access: 63, bits: 1, offset: 2, header: u64::MAX };
        for command in [
            Command::Queue(7),
            Command::FreeQueue(queue),
            Command::Attach { portal: 4, wanted, unlink: Unlink::Unlink, at: Position::Before },
            Command::Attach { portal: 4, wanted, unlink: Unlink::Retain, at: Position::After },
            Command::UnlinkEntry(queue),
            Command::AttachMemory { entry: queue, described, unlink: Unlink::Unlink },
            Command::Bind { described, unlink: Unlink::Retain },
            Command::UnlinkMemory(queue),
            Command::Status(3),
            Command::Put { memory: queue, region: Some((1, 2)), wants_ack: true, to },
            Command::Put { memory: queue, region: None, wants_ack: false, to },
            Command::Get { memory: queue, region: Some((0, 0)), from: to },
        ] {
            assert_eq!(Command::parse(&command.frame()), Some(command));
        }
        assert_eq!(Command::parse(&Frame { kind: 0, word: 0, body: [0; 7] }), None);
    }

    #[test]
    fn events_come_back_from_their_lines() {
        let described = Described { user: 5, threshold: 3, queue: Handle::from_bits(9), ..Described::default() };
        for is_lost in [false, true] {
            let memory = Handle::from_bits(8);
            let event = Event { kind: EventKind::Ack, memory, described, failure: 1, ..Event::default() };
            let [first, rest] = write_event(&event, is_lost);
            assert_eq!(read_event(&first, &rest), Some((event, is_lost)));
            assert_eq!(
                [first, rest].map(|frame| Returned::parse(&frame)),
                [Some(Returned::Event), Some(Returned::Rest)]
            );
        }
        let wrong = Frame { kind: REST, word: 0, body: [0, 0, 0, 0, 0, 0, 12] };
        assert_eq!(read_event(&Frame { kind: EVENT, ..wrong }, &wrong), None);
    }
}
