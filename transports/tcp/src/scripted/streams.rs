//! Peers with several streams that break the protocol, or test its corners.

use super::rma::{FIRST, LONG, result};
use crate::fixture::{End, NUMBER, OPTIONS, Script, bytes_of, heap};
use crate::frame::{
    CHECKED, Fields, HAS_MESSAGE, Hello, IN_PARTS, Kind, OF_OPERATION, Target, WritePart, emit_count, emit_result,
    parse_count,
};
use cci_mem::memory::HeapBytes;
use cci_proto::wire::Crc;
use cci_proto::{Access, Attribute, EventKind, Failure, Rights, RmaHandle, Status};
use cci_transport::{Connection, Posted, Rma, Transport};
use std::sync::Arc;

/// Bytes of the memory that a peer may write and read.
const MEMORY: usize = 4096;

/// An endpoint of four streams, a client of it, and what it was offered.
struct Pair {
    end: End,
    first: Script,
    cell: &'static Connection,
    offer: [u64; 2],
    memory: Arc<HeapBytes>,
    handle: [u64; 2],
}

impl Pair {
    fn new(streams: &str, attribute: Attribute) -> Self {
        let mut end = End::with(&[("streams", streams)], OPTIONS);
        let mut first = Script::dial(&end);
        first.say_hello(&mut end, None);
        first.ask(&mut end, attribute, b"");
        let cell = end.accept();
        let offer = first.hello(&mut end).offer;
        let (header, body) = first.find(&mut end, Kind::Accept);
        assert_eq!(header.connection, NUMBER);
        first.connection = Fields(&body).u32();
        let memory = heap(1, MEMORY);
        let [index, secret, ..] = end.register(&memory, Rights::READ_WRITE).words();
        Self { end, first, cell, offer, memory, handle: [index, secret] }
    }

    /// A stream that shows this.
    fn shows(&mut self, offer: [u64; 2], stream: u64) -> Script {
        let mut script = Script::dial(&self.end);
        script.write(&mut self.end, &Hello { offer, stream, ..Script::own_hello() }.emit());
        script.connection = self.first.connection;
        script
    }

    /// A further stream of this number.
    fn joins(&mut self, stream: u64) -> Script {
        let mut script = self.shows(self.offer, stream);
        let hello = script.hello(&mut self.end);
        assert_eq!((hello.dialed, hello.stream, hello.refusal), (false, stream, None));
        script
    }

    /// The head of a part of the first write: of so many bytes in all, at this position.
    fn part(&self, total: u64, position: u64) -> [u8; 48] {
        let target = Target { operation: FIRST, handle: self.handle, offset: 100, total };
        WritePart { target, position }.emit()
    }

    /// Nothing but the first bytes of the memory, and so many behind them, may be another.
    fn is_untouched_but(&self, len: usize) {
        let bytes = bytes_of(&self.memory, MEMORY);
        let (before, rest) = bytes.split_at(100);
        assert!(before.iter().chain(&rest[len..]).all(|byte| *byte == 1), "memory outside of the write was written");
    }
}

#[test]
fn a_stream_joins_once_by_its_number_and_by_the_offer_alone() {
    let mut pair = Pair::new("4", Attribute::ReliableOrdered);
    assert_eq!(pair.offer[0] & 0xff, 4);
    let _second = pair.joins(2);
    let [low, high] = pair.offer;
    for (offer, stream) in
        [(pair.offer, 2), (pair.offer, 4), ([low, high ^ 1], 1), ([low ^ 1 << 8, high], 1), ([0; 2], 1)]
    {
        pair.shows(offer, stream).until_closed(&mut pair.end);
    }
    assert_eq!(pair.end.tcp.lanes.iter().flatten().count(), 1, "strangers are left");
    let _others = [pair.joins(1), pair.joins(3)];
    assert_eq!(pair.end.tcp.shared.malformed, 0);
    pair.end.calls(10);
}

/// Strangers are bounded by their number, each with one descriptor.
#[test]
fn a_lane_without_a_connection_is_not_joined() {
    let mut end = End::with(&[("streams", "4")], OPTIONS);
    let mut first = Script::dial(&end);
    first.say_hello(&mut end, None);
    let offer = first.hello(&mut end).offer;
    let mut further = Script::dial(&end);
    further.write(&mut end, &Hello { offer, stream: 1, ..Script::own_hello() }.emit());
    further.until_closed(&mut end);
    assert_eq!(end.tcp.lanes.iter().flatten().count(), 1);
}

#[test]
fn an_endpoint_of_one_stream_offers_nothing_and_takes_no_parts() {
    let mut pair = Pair::new("1", Attribute::ReliableOrdered);
    assert_eq!(pair.offer, [0; 2]);
    pair.shows([0; 2], 1).until_closed(&mut pair.end);
    for (kind, flags, body) in [
        (Kind::WritePart, 0, [&pair.part(1, 0)[..], b"x"].concat()),
        (Kind::AnswerPart, 0, [&emit_count(FIRST, 0)[..], b"x"].concat()),
        (Kind::Abandon, 0, emit_count(FIRST, 0).to_vec()),
        (Kind::Read, IN_PARTS, Target { operation: FIRST, handle: [1, 2], offset: 0, total: 1 }.emit().to_vec()),
    ] {
        let mut pair = Pair::new("1", Attribute::ReliableOrdered);
        pair.first.put(&mut pair.end, kind, flags, pair.first.connection, &[&body]);
        pair.end.until_violated();
        pair.is_untouched_but(0);
    }
}

/// Parts of one write come on three streams, the last one first, cut anywhere. RESULT comes when
/// all have.
#[test]
fn parts_come_in_any_order_on_any_stream() {
    for piece in [1, 7, 1000] {
        let mut pair = Pair::new("4", Attribute::ReliableOrdered);
        let mut streams = [pair.joins(1), pair.joins(3)];
        let connection = pair.first.connection;
        for (at, position) in [(1, 200_u64), (0, 100)] {
            let part = pair.part(300, position);
            let bytes = streams[at].emit(Kind::WritePart, 0, connection, &[&part, &[position as u8; 100]]);
            for bytes in bytes.chunks(piece) {
                streams[at].write(&mut pair.end, bytes);
                pair.end.calls(1);
            }
        }
        assert!(pair.first.frames(&mut pair.end, 50).iter().all(|frame| frame.0.kind != Kind::Result), "early");
        let part = pair.part(300, 0);
        pair.first.put(&mut pair.end, Kind::WritePart, 0, connection, &[&part, &[77; 100]]);
        let frame = pair.first.find(&mut pair.end, Kind::Result);
        assert_eq!(result(&frame), (FIRST, Ok(())));
        let bytes = bytes_of(&pair.memory, MEMORY);
        assert!(bytes[100..400].chunks(100).zip([77, 100, 200]).all(|(part, byte)| part.iter().all(|it| *it == byte)));
        pair.is_untouched_but(300);
    }
}

/// All parts have begun, and one has not come as a whole.
#[test]
fn a_write_does_not_end_while_bytes_of_a_part_are_missing() {
    let mut pair = Pair::new("4", Attribute::ReliableOrdered);
    let mut streams = [pair.joins(1), pair.joins(2)];
    let connection = pair.first.connection;
    let parts = [0, 100].map(|position| pair.part(200, position));
    let slow = streams[0].emit(Kind::WritePart, 0, connection, &[&parts[0], &[5; 100]]);
    let (begin, rest) = slow.split_at(slow.len() - 1);
    streams[0].write(&mut pair.end, begin);
    pair.end.calls(5);
    streams[1].put(&mut pair.end, Kind::WritePart, 0, connection, &[&parts[1], &[6; 100]]);
    assert!(pair.first.frames(&mut pair.end, 50).iter().all(|frame| frame.0.kind != Kind::Result), "early");
    streams[0].write(&mut pair.end, rest);
    assert_eq!(result(&pair.first.find(&mut pair.end, Kind::Result)), (FIRST, Ok(())));
}

#[test]
fn a_part_whose_sum_is_wrong_fails_its_write_when_all_have_come() {
    let mut pair = Pair::new("4", Attribute::ReliableOrdered);
    let mut stream = pair.joins(1);
    let (connection, bytes) = (pair.first.connection, [9; 50]);
    for (position, wrong) in [(0_u64, 1), (50, 0)] {
        let sum = Crc::new().update(&bytes).value() ^ wrong;
        let part = pair.part(100, position);
        stream.put(&mut pair.end, Kind::WritePart, CHECKED, connection, &[&part, &sum.to_le_bytes(), &bytes]);
    }
    let frame = pair.first.find(&mut pair.end, Kind::Result);
    assert_eq!(result(&frame), (FIRST, Err(Failure::Copy)));
    pair.is_untouched_but(100);
}

/// After a right part of 100 of 300 bytes, a frame that is wrong ends the lane, whether it comes on
/// the first stream or on a further one.
#[test]
fn wrong_parts_break_the_protocol_on_each_stream() {
    type Wrong = (Kind, u8, u32, fn(&Pair) -> Vec<u8>);
    let wrong: [Wrong; 9] = [
        // Beyond the end, and so far that the sum wraps.
        (Kind::WritePart, 0, 0, |pair| [&pair.part(300, 250)[..], &[2; 51]].concat()),
        (Kind::WritePart, 0, 0, |pair| [&pair.part(300, u64::MAX)[..], &[2; 2]].concat()),
        // More bytes than all, by a range twice.
        (Kind::WritePart, 0, 0, |pair| [&pair.part(300, 0)[..], &[2; 201]].concat()),
        // Not of the operation that has begun: another total, another offset, another connection.
        (Kind::WritePart, 0, 0, |pair| [&pair.part(301, 100)[..], &[2; 10]].concat()),
        (Kind::WritePart, 0, 0, |pair| {
            let target = Target { operation: FIRST, handle: pair.handle, offset: 0, total: 300 };
            [&WritePart { target, position: 100 }.emit()[..], &[2; 10]].concat()
        }),
        (Kind::WritePart, 0, 1, |pair| [&pair.part(300, 100)[..], &[2; 10]].concat()),
        (Kind::WritePart, HAS_MESSAGE, 0, |pair| [&pair.part(300, 100)[..], &[2; 10]].concat()),
        // A number that this side may not give.
        (Kind::WritePart, 0, 0, |pair| {
            let target = Target { operation: 5000, handle: pair.handle, offset: 100, total: 300 };
            [&WritePart { target, position: 0 }.emit()[..], &[2; 10]].concat()
        }),
        // Nobody reads.
        (Kind::AnswerPart, 0, 0, |_| [&emit_count(FIRST, 0)[..], &[2; 10]].concat()),
    ];
    for (kind, flags, other, body) in wrong {
        for is_further in [false, true] {
            let mut pair = Pair::new("4", Attribute::ReliableOrdered);
            let mut further = pair.joins(1);
            let (connection, right) = (pair.first.connection, pair.part(300, 0));
            further.put(&mut pair.end, Kind::WritePart, 0, connection, &[&right, &[1; 100]]);
            pair.end.calls(5);
            let body = body(&pair);
            let stream = if is_further { &mut further } else { &mut pair.first };
            stream.put(&mut pair.end, kind, flags, connection ^ other, &[&body]);
            pair.end.until("its end", |end| {
                assert!(end.tcp.shared.malformed <= 1);
                end.tcp.shared.malformed == 1
            });
            pair.is_untouched_but(0);
        }
    }
}

#[test]
fn other_frames_break_the_protocol_on_a_further_stream() {
    let long = [0; 100];
    for (kind, body) in
        [(Kind::Ping, &b""[..]), (Kind::Message, b"m"), (Kind::Write, &long), (Kind::Result, &long[..16])]
    {
        let mut pair = Pair::new("4", Attribute::ReliableOrdered);
        let mut further = pair.joins(1);
        // As many bytes as a head of a part has at least.
        let bytes = [further.emit(kind, 0, 0, &[body]), vec![0; 64]].concat();
        further.write(&mut pair.end, &bytes);
        pair.end.until_violated();
    }
}

/// What names an operation in parts must not be about one that is not.
#[test]
fn frames_of_other_writes_do_not_name_one_in_parts() {
    for (kind, flags, rest) in [
        (Kind::Data, 0, &[2; 10][..]),
        (Kind::Cancel, 0, b""),
        (Kind::Landed, 0, &[0; 4]),
        (Kind::Message, OF_OPERATION, b"m"),
    ] {
        let mut pair = Pair::new("4", Attribute::ReliableOrdered);
        let (connection, right) = (pair.first.connection, pair.part(300, 0));
        pair.first.put(&mut pair.end, Kind::WritePart, 0, connection, &[&right, &[1; 100]]);
        pair.first.put(&mut pair.end, kind, flags, connection, &[&FIRST.to_le_bytes(), rest]);
        pair.end.until_violated();
        pair.is_untouched_but(0);
    }
}

/// A write that is given up: RESULT comes when as many bytes have come as were handed to streams,
/// before and after ABANDON, and the late ones touch nothing.
#[test]
fn an_abandoned_write_ends_when_its_bytes_have_come() {
    for early in [false, true] {
        let mut pair = Pair::new("4", Attribute::ReliableOrdered);
        let mut further = pair.joins(1);
        let connection = pair.first.connection;
        if early {
            let part = pair.part(300, 0);
            further.put(&mut pair.end, Kind::WritePart, 0, connection, &[&part, &[1; 100]]);
            pair.end.calls(5);
        }
        let handed = if early { 200 } else { 100 };
        pair.first.put(&mut pair.end, Kind::Abandon, 0, 0, &[&emit_count(FIRST, handed)]);
        assert!(pair.first.frames(&mut pair.end, 50).iter().all(|frame| frame.0.kind != Kind::Result), "early");
        let part = pair.part(300, 100);
        further.put(&mut pair.end, Kind::WritePart, 0, connection, &[&part, &[2; 100]]);
        let frame = pair.first.find(&mut pair.end, Kind::Result);
        assert_eq!(result(&frame), (FIRST, Err(Failure::RemoteHandle)));
        pair.is_untouched_but(0);
        // Its number is free.
        let part = pair.part(10, 0);
        further.put(&mut pair.end, Kind::WritePart, 0, connection, &[&part, &[3; 10]]);
        assert_eq!(result(&pair.first.find(&mut pair.end, Kind::Result)), (FIRST, Ok(())));
        pair.first.put(&mut pair.end, Kind::Abandon, 0, 0, &[&emit_count(FIRST, 0)]);
        let frame = pair.first.find(&mut pair.end, Kind::Result);
        assert_eq!(result(&frame), (FIRST, Err(Failure::RemoteHandle)), "nothing of it was handed to streams");
    }
}

#[test]
fn an_abandoned_write_of_fewer_bytes_than_came_breaks_the_protocol() {
    for counts in [&[99][..], &[200, 200]] {
        let mut pair = Pair::new("4", Attribute::ReliableOrdered);
        let (connection, part) = (pair.first.connection, pair.part(300, 0));
        pair.first.put(&mut pair.end, Kind::WritePart, 0, connection, &[&part, &[1; 100]]);
        for count in counts {
            pair.first.put(&mut pair.end, Kind::Abandon, 0, 0, &[&emit_count(FIRST, *count)]);
        }
        pair.end.until_violated();
    }
}

/// A read of this endpoint whose answer comes in parts.
struct Reading {
    pair: Pair,
    further: Script,
    memory: Arc<HeapBytes>,
    number: u32,
}

const READ: usize = 1 << 20;

impl Reading {
    fn new() -> Self {
        let mut pair = Pair::new("2", Attribute::ReliableUnordered);
        let further = pair.joins(1);
        let memory = heap(1, READ);
        let local = pair.end.register(&memory, Rights::NONE);
        pair.end.rma(pair.cell, &local, READ as u64, (Access::Read, false));
        let (header, body) = pair.first.find(&mut pair.end, Kind::Read);
        assert_eq!(header.flags, IN_PARTS);
        Self { pair, further, memory, number: Fields(&body).u32() }
    }

    fn result(&mut self, outcome: Result<(), Failure>, handed: u64) {
        self.pair.first.put(&mut self.pair.end, Kind::Result, 0, 0, &[&emit_result(self.number, outcome, handed)]);
    }

    /// Half of the answer, on the first stream or the further one.
    fn half(&mut self, at: usize, byte: u8) {
        let stream = if at == 0 { &mut self.pair.first } else { &mut self.further };
        let head = emit_count(self.number, (at * READ / 2) as u64);
        stream.put(&mut self.pair.end, Kind::AnswerPart, 0, 0, &[&head, &vec![byte; READ / 2]]);
    }
}

#[test]
fn a_read_ends_when_its_result_and_all_parts_have_come() {
    for result_at in 0..3 {
        let mut reading = Reading::new();
        for step in 0..3 {
            reading.pair.end.calls(20);
            match step {
                _ if step == result_at => reading.result(Ok(()), READ as u64),
                0 => reading.half(1, 8),
                1 if result_at == 0 => reading.half(1, 8),
                _ => reading.half(0, 7),
            }
        }
        reading.pair.end.ends(EventKind::Send, Status::Success);
        let bytes = bytes_of(&reading.memory, READ);
        assert!(bytes[..READ / 2].iter().all(|byte| *byte == 7) && bytes[READ / 2..].iter().all(|byte| *byte == 8));
        assert_eq!(reading.pair.end.tcp.shared.malformed, 0);
    }
}

/// A read that has failed has ended: what comes late touches nothing, and its number is in use
/// until all has come.
#[test]
fn late_parts_of_a_read_that_has_failed_touch_nothing() {
    let mut reading = Reading::new();
    reading.result(Err(Failure::RemoteHandle), READ as u64 / 2);
    reading.pair.end.ends(EventKind::Send, Status::RmaHandle);
    reading.half(1, 8);
    reading.pair.end.calls(20);
    assert!(bytes_of(&reading.memory, READ).iter().all(|byte| *byte == 1));
    assert_eq!(reading.pair.end.tcp.shared.malformed, 0);
    // All has come: one more is one too many.
    reading.half(0, 8);
    reading.pair.end.until_violated();
}

#[test]
fn wrong_answers_in_parts_break_the_protocol() {
    let wrong: [fn(&mut Reading); 5] = [
        // Beyond the end.
        |reading| {
            let head = emit_count(reading.number, READ as u64 - 1);
            reading.further.put(&mut reading.pair.end, Kind::AnswerPart, 0, 0, &[&head, b"xy"]);
        },
        // Not all of it, and as if it were.
        |reading| reading.result(Ok(()), READ as u64 - 1),
        // Fewer than have come.
        |reading| {
            reading.half(1, 8);
            reading.pair.end.calls(20);
            reading.result(Err(Failure::RemoteHandle), 10);
        },
        // Twice.
        |reading| {
            reading.result(Ok(()), READ as u64);
            reading.result(Ok(()), READ as u64);
        },
        // As an answer that is not in parts.
        |reading| {
            let number = reading.number.to_le_bytes();
            reading.pair.first.put(&mut reading.pair.end, Kind::Answer, 0, 0, &[&number, b"bytes"]);
        },
    ];
    for act in wrong {
        let mut reading = Reading::new();
        act(&mut reading);
        reading.pair.end.until_violated();
        reading.pair.end.ends(EventKind::Send, Status::Disconnected);
    }
}

/// The bytes of a write in parts that has ended are the program's again, on each stream: zeros
/// leave in their place, as many as ABANDON says.
#[test]
fn bytes_of_a_write_in_parts_that_has_ended_do_not_leave() {
    let mut pair = Pair::new("4", Attribute::ReliableUnordered);
    let mut further = [1, 2, 3].map(|number| pair.joins(number));
    let memory = heap(1, LONG);
    let local = pair.end.register(&memory, Rights::NONE);
    pair.end.rma(pair.cell, &local, LONG as u64, (Access::Write, false));
    pair.end.calls(50);
    pair.end.tcp.disconnect(&mut pair.end.core, pair.cell);
    pair.end.ends(EventKind::Send, Status::Disconnected);
    assert!(cci_mem::memory::Memory::of_bytes(&memory).copy_in(0, &vec![0xee; LONG]));
    let (mut come, mut handed) = (0, None);
    while handed != Some(come) {
        for stream in [&mut pair.first].into_iter().chain(&mut further) {
            pair.end.calls(1);
            let Some((header, body)) = stream.poll() else { continue };
            match header.kind {
                Kind::WritePart => {
                    assert!(body[48..].iter().all(|byte| *byte != 0xee), "bytes of another time");
                    come += body.len() as u64 - 48;
                }
                Kind::Abandon => handed = Some(parse_count(&mut Fields(&body)).1),
                _ => {}
            }
        }
    }
    assert!(come > 0 && come < LONG as u64);
}

/// A further stream that ends takes the lane along, after what the peer has said on the first.
#[test]
fn the_end_of_a_further_stream_ends_the_lane_after_the_first_one_was_read() {
    let mut pair = Pair::new("4", Attribute::ReliableOrdered);
    let further = pair.joins(1);
    drop(further);
    pair.end.calls(20);
    pair.first.put(&mut pair.end, Kind::Message, 0, pair.first.connection, &[b"last words"]);
    let slot = pair.end.next(EventKind::Recv);
    assert_eq!(slot.detail(), 10);
    assert!(slot.give_back());
    pair.first.until_closed(&mut pair.end);
    assert_eq!(pair.end.tcp.lanes.iter().flatten().count(), 0);
}

/// Kinds of the frames that come on both streams while the endpoint makes calls, GRANT left out.
fn kinds(pair: &mut Pair, further: &mut Script) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for _ in 0..100 {
        pair.end.calls(5);
        for stream in [&mut pair.first, &mut *further] {
            kinds.extend(std::iter::from_fn(|| stream.poll()).map(|(header, _)| header.kind));
        }
    }
    kinds.retain(|kind| *kind != Kind::Grant);
    kinds
}

/// On RO a write in parts waits for what is before it, and all behind it waits for its RESULT.
#[test]
fn nothing_of_an_ordered_connection_is_on_the_wire_with_parts() {
    let mut pair = Pair::new("2", Attribute::ReliableOrdered);
    let mut further = pair.joins(1);
    let grant = 10_u32.to_le_bytes();
    pair.first.put(&mut pair.end, Kind::Grant, 0, 0, &[&grant]);
    let (short, long) = (heap(1, 64), heap(2, READ));
    let [short, long] = [&short, &long].map(|memory| pair.end.register(memory, Rights::NONE));
    let cell = pair.cell;
    pair.end.rma(cell, &short, 64, (Access::Write, false));
    pair.end.send(cell, b"before", 1);
    pair.end.rma(cell, &long, READ as u64, (Access::Write, false));
    pair.end.send(cell, b"behind", 2);
    pair.end.rma(cell, &short, 64, (Access::Read, false));
    assert_eq!(kinds(&mut pair, &mut further), [Kind::Write, Kind::Message]);
    let number = |uses: u32, index: u32| uses << 16 | index;
    let ok = |number| emit_result(number, Ok(()), 0);
    pair.first.put(&mut pair.end, Kind::Result, 0, 0, &[&ok(number(1, 0))]);
    pair.end.ends(EventKind::Send, Status::Success);
    assert_eq!(kinds(&mut pair, &mut further), [], "the message is not taken yet");
    pair.first.taken = 1;
    pair.first.put(&mut pair.end, Kind::Pong, 0, 0, &[]);
    pair.end.ends(EventKind::Send, Status::Success);
    assert_eq!(kinds(&mut pair, &mut further), [Kind::WritePart; 4]);
    pair.first.put(&mut pair.end, Kind::Result, 0, 0, &[&emit_result(number(2, 0), Ok(()), READ as u64)]);
    pair.end.ends(EventKind::Send, Status::Success);
    assert_eq!(kinds(&mut pair, &mut further), [Kind::Message, Kind::Read]);
}

/// Its message leaves after the RESULT, and what is behind it comes after that.
#[test]
fn the_message_of_a_write_in_parts_leaves_after_its_result() {
    for attribute in [Attribute::ReliableOrdered, Attribute::ReliableUnordered] {
        let mut pair = Pair::new("2", attribute);
        let mut further = pair.joins(1);
        let grant = 10_u32.to_le_bytes();
        pair.first.put(&mut pair.end, Kind::Grant, 0, 0, &[&grant]);
        let memory = heap(2, READ);
        let local = pair.end.register(&memory, Rights::NONE);
        let remote = RmaHandle::from_words([1, 2, 0, 0]);
        let (len, message, fence, access) = (READ as u64, Some(b"written"[..].into()), false, Access::Write);
        let rma =
            Rma { local: &local, local_offset: 0, remote: &remote, remote_offset: 0, len, access, fence, message };
        pair.end.tcp.rma(&mut pair.end.core, pair.cell, &rma, Posted::Event(1)).expect("an RMA");
        assert_eq!(kinds(&mut pair, &mut further), [Kind::WritePart; 4]);
        pair.first.put(&mut pair.end, Kind::Result, 0, 0, &[&emit_result(FIRST, Ok(()), READ as u64)]);
        assert_eq!(kinds(&mut pair, &mut further), [Kind::Message]);
        pair.first.taken = 1;
        pair.first.put(&mut pair.end, Kind::Pong, 0, 0, &[]);
        pair.end.ends(EventKind::Send, Status::Success);
    }
}

/// A fence behind operations in parts waits for their results on RU too.
#[test]
fn a_fence_waits_for_the_results_of_parts() {
    let mut pair = Pair::new("2", Attribute::ReliableUnordered);
    let mut further = pair.joins(1);
    let memory = heap(2, READ);
    let local = pair.end.register(&memory, Rights::NONE);
    pair.end.rma(pair.cell, &local, READ as u64, (Access::Write, false));
    pair.end.rma(pair.cell, &local, 64, (Access::Write, true));
    assert_eq!(kinds(&mut pair, &mut further), [Kind::WritePart; 4]);
    pair.first.put(&mut pair.end, Kind::Result, 0, 0, &[&emit_result(FIRST, Ok(()), READ as u64)]);
    pair.end.ends(EventKind::Send, Status::Success);
    assert_eq!(kinds(&mut pair, &mut further), [Kind::Write]);
}

/// Writes to disjoint ranges go together, and end in the order of their posts whichever RESULT
/// comes first. One to a range of theirs waits.
#[test]
fn writes_in_a_row_are_disjoint_and_end_in_order() {
    let mut pair = Pair::new("2", Attribute::ReliableOrdered);
    let mut further = pair.joins(1);
    let memory = heap(2, READ);
    let local = pair.end.register(&memory, Rights::NONE);
    let remote = RmaHandle::from_words([1, 2, 0, 0]);
    for (number, remote_offset) in [(0, 0), (1, READ as u64), (2, READ as u64 - 1)] {
        let (len, message, fence, access) = (READ as u64, None, false, Access::Write);
        let rma = Rma { local: &local, local_offset: 0, remote: &remote, remote_offset, len, access, fence, message };
        pair.end.tcp.rma(&mut pair.end.core, pair.cell, &rma, Posted::Event(number)).expect("an RMA");
    }
    assert_eq!(kinds(&mut pair, &mut further), [Kind::WritePart; 8]);
    let ok = |number: u32| emit_result(number, Ok(()), READ as u64);
    pair.first.put(&mut pair.end, Kind::Result, 0, 0, &[&ok(FIRST + 1)]);
    assert_eq!(kinds(&mut pair, &mut further), [], "it has ended before the one before it");
    pair.first.put(&mut pair.end, Kind::Result, 0, 0, &[&ok(FIRST)]);
    for number in 0..2 {
        let slot = pair.end.next(EventKind::Send);
        assert_eq!(slot.words()[1], number);
        assert!(slot.give_back());
    }
    assert_eq!(kinds(&mut pair, &mut further), [Kind::WritePart; 4]);
}
