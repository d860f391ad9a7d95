//! Sealed streams, and peers that do not have the secret or change what is on the way.

use crate::endpoint::Tcp;
use crate::fixture::{End, Script, bytes_of, heap, port};
use crate::frame::{ConnectBody, HELLO, Hello, Kind};
use crate::seal::{OF_ONE_KEY, RECORD, SHARE};
use cci_proto::{Access, Attribute, EventKind, Rights, Status};
use cci_transport::{Connection, Posted, Rma, Transport};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of a record besides its text.
const OVERHEAD: usize = 20;

/// Two endpoints, and whoever is on the way between them.
struct Way {
    client: End,
    server: End,
    listener: TcpListener,
    uri: String,
    /// To the client, and to the server.
    streams: Option<[TcpStream; 2]>,
    /// What has come from the client, and from the server, and was not passed on.
    from: [Vec<u8>; 2],
    /// Whether what comes is passed on as it is.
    passes: bool,
}

impl Way {
    fn new(client: End, server: End) -> Self {
        let (listener, uri) = port();
        listener.set_nonblocking(true).expect("a socket");
        set_socket_recv_buffer_size(&listener, 64 << 10).expect("a smaller buffer");
        let mut way = Self { client, server, listener, uri, streams: None, from: [vec![], vec![]], passes: false };
        way.client.connect(&way.uri.clone(), TIMEOUT);
        way
    }

    /// One call of each endpoint, and what comes of it.
    fn step(&mut self) {
        self.client.tcp.progress(&mut self.client.core);
        self.server.tcp.progress(&mut self.server.core);
        if let Ok((stream, _)) = self.listener.accept() {
            let other = TcpStream::connect(self.server.address()).expect("a stream");
            for stream in [&stream, &other] {
                stream.set_nonblocking(true).expect("a stream");
                stream.set_nodelay(true).expect("a stream");
            }
            self.streams = Some([stream, other]);
        }
        let Some(streams) = &mut self.streams else { return };
        for (stream, from) in streams.iter_mut().zip(&mut self.from) {
            let mut bytes = [0; 1 << 16];
            match stream.read(&mut bytes) {
                Ok(count) => from.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
            }
        }
        if self.passes {
            self.pass();
        }
    }

    /// Passes on what has come.
    fn pass(&mut self) {
        let [from_client, from_server] = std::mem::take(&mut self.from);
        self.give(1, &from_client);
        self.give(0, &from_server);
    }

    /// Writes bytes to the client (0) or the server (1).
    fn give(&mut self, to: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let streams = self.streams.as_mut().expect("a stream");
            match streams[to].write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let end = if to == 0 { &mut self.client } else { &mut self.server };
                    end.tcp.progress(&mut end.core);
                }
                // The endpoint has closed it.
                Err(_) => return,
            }
        }
    }

    /// Steps until `done`.
    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = std::time::Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < crate::fixture::LIMIT, "waited in vain for {what}");
            self.step();
        }
    }

    /// Takes so many bytes that the client (0) or the server (1) has sent.
    fn take(&mut self, from: usize, len: usize) -> Vec<u8> {
        self.until("bytes", |way| way.from[from].len() >= len);
        self.from[from].drain(..len).collect()
    }

    /// Takes the next record that the client (0) or the server (1) has sent.
    fn take_record(&mut self, from: usize) -> Vec<u8> {
        self.until("a length", |way| way.from[from].len() >= 4);
        let len = u32::from_le_bytes(*self.from[from].first_chunk().expect("a length"));
        self.take(from, len as usize + OVERHEAD)
    }

    /// The connection of both, once the way passes everything on.
    fn open(client: End, server: End) -> (Self, [&'static Connection; 2]) {
        let mut way = Self::new(client, server);
        way.passes = true;
        let mut cells = [None; 2];
        way.until("a connection", |way| {
            if let Some(slot) = way.server.core.pop() {
                if slot.kind() == EventKind::ConnectRequest as u32 {
                    way.server.tcp.accept(&mut way.server.core, slot, 1).expect("an accept");
                } else {
                    cells[1] = slot.connection.get();
                }
                assert!(slot.give_back());
            }
            if let Some(slot) = way.client.core.pop() {
                assert_eq!((slot.kind(), slot.detail()), (EventKind::Connect as u32, Status::Success as u32));
                cells[0] = slot.connection.get();
                assert!(slot.give_back());
            }
            cells.iter().all(Option::is_some)
        });
        (way, cells.map(|cell| cell.expect("open")))
    }

    /// The next event of the client (0) or the server (1), while both make calls.
    fn event(&mut self, of: usize) -> &'static cci_transport::Slot {
        let mut found = None;
        self.until("an event", |way| {
            let end = if of == 0 { &mut way.client } else { &mut way.server };
            found = end.core.pop();
            found.is_some()
        });
        found.expect("just seen")
    }
}

fn forged(end: &End) -> u64 {
    end.tcp.shared.sealing.as_ref().map_or(0, |sealing| sealing.forged)
}

fn lanes(tcp: &Tcp) -> usize {
    tcp.lanes.iter().flatten().count()
}

/// Ends a connect by hand, and returns its sentence.
fn refusal(way: &mut Way) -> String {
    let slot = way.event(0);
    assert_eq!(slot.kind(), EventKind::Connect as u32);
    assert_ne!(slot.detail(), Status::Success as u32);
    let sentence = way.client.core.reason(slot).expect("a reason").to_owned();
    assert!(slot.give_back());
    sentence
}

#[test]
fn both_sides_with_the_secret_connect_and_nothing_is_in_clear() {
    let (mut way, [cell, _]) = Way::open(End::sealed(1), End::sealed(1));
    let secret = b"a marker that nobody on the way may read";
    way.passes = false;
    way.client.send(cell, secret, 1);
    let record = way.take_record(0);
    assert!(!record.windows(8).any(|bytes| secret.windows(8).any(|marker| marker == bytes)));
    way.give(1, &record);
    let slot = way.event(1);
    assert_eq!((slot.kind(), slot.detail() as usize), (EventKind::Recv as u32, secret.len()));
    assert!(slot.give_back());
}

/// Sends a message of the client, which leaves as one record, and takes that.
fn message_record(way: &mut Way, cell: &'static Connection, text: &[u8]) -> Vec<u8> {
    way.client.send(cell, text, 1);
    way.take_record(0)
}

/// Messages that the server's program has got.
fn received(way: &mut Way) -> usize {
    let mut count = 0;
    while let Some(slot) = way.server.core.pop() {
        count += usize::from(slot.kind() == EventKind::Recv as u32);
        assert!(slot.give_back());
    }
    count
}

/// What somebody on the way does with two records of the client, and how many of their messages the
/// server's program gets before the stream ends.
type Attack = (&'static str, usize, fn(&mut Way, [Vec<u8>; 2]));

#[test]
fn a_stream_ends_at_the_first_record_that_is_not_the_next_one() {
    let attacks: [Attack; 11] = [
        ("a changed byte of the text", 0, |way, [mut first, _]| {
            first[9] ^= 1;
            way.give(1, &first);
        }),
        ("a changed byte of the tag", 1, |way, [first, mut second]| {
            *second.last_mut().expect("a tag") ^= 0x80;
            way.give(1, &[first, second].concat());
        }),
        ("a shorter length", 0, |way, [mut first, second]| {
            first[0] -= 1;
            way.give(1, &[first, second].concat());
        }),
        ("a longer length", 0, |way, [mut first, second]| {
            first[0] += 1;
            way.give(1, &[first, second].concat());
        }),
        ("no length", 0, |way, [mut first, _]| {
            first[..4].fill(0);
            way.give(1, &first);
        }),
        ("a length beyond all", 0, |way, [mut first, _]| {
            first[..4].copy_from_slice(&(RECORD as u32 + 1).to_le_bytes());
            way.give(1, &first);
        }),
        ("a record twice", 1, |way, [first, _]| {
            way.give(1, &[&first[..], &first].concat());
        }),
        ("the second record first", 0, |way, [first, second]| {
            way.give(1, &[second, first].concat());
        }),
        ("a record left out", 0, |way, [_, second]| {
            way.give(1, &second);
        }),
        ("the beginning of one and the end of the other", 0, |way, [first, second]| {
            way.give(1, &[&first[..12], &second[12..], &second].concat());
        }),
        ("frames in clear", 1, |way, [first, _]| {
            let header = crate::frame::Header { len: 0, kind: Kind::Disconnect, flags: 0, connection: 0, taken: 0 };
            way.give(1, &[&first[..], &header.emit(), &[0; 64]].concat());
        }),
    ];
    for (name, messages, act) in attacks {
        let (mut way, cells) = Way::open(End::sealed(1), End::sealed(1));
        way.until("what was granted", |way| way.client.tcp.lane_of(cells[0]).expect("a lane").0.credit.is_left());
        way.passes = false;
        let [first, second] = [b"one", b"two"].map(|text| message_record(&mut way, cells[0], text));
        act(&mut way, [first, second]);
        way.until(name, |way| lanes(&way.server.tcp) == 0);
        assert_eq!((forged(&way.server), received(&mut way)), (1, messages), "{name}");
        let why = way.server.core.why_broken(cells[1]).expect("a reason");
        assert!(why.contains("was not sealed by a peer with the secret, or was changed on its way"), "{name}: {why}");
    }
}

/// A record that is sent back to its sender, and one of another stream.
#[test]
fn records_count_on_their_own_stream_and_direction_only() {
    let (mut way, [cell, _]) = Way::open(End::sealed(1), End::sealed(1));
    way.until("what was granted", |way| way.client.tcp.lane_of(cell).expect("a lane").0.credit.is_left());
    way.passes = false;
    let record = message_record(&mut way, cell, b"text");
    way.give(0, &record);
    way.until("its end", |way| lanes(&way.client.tcp) == 0);
    assert_eq!(forged(&way.client), 1);

    let (mut other, cells) = Way::open(End::sealed(1), End::sealed(1));
    other.passes = false;
    other.give(1, &record);
    other.until("its end", |way| lanes(&way.server.tcp) == 0);
    assert_eq!((forged(&other.server), received(&mut other)), (1, 0));
    assert!(other.server.core.why_broken(cells[1]).is_some());
}

/// How a connect of this client at this server ends: its sentence.
fn fails(client: End, server: End) -> String {
    let mut way = Way::new(client, server);
    way.passes = true;
    let sentence = refusal(&mut way);
    assert!(way.server.core.pop().is_none(), "the program sees nothing");
    sentence
}

#[test]
fn who_has_another_secret_or_none_is_refused_in_a_sentence() {
    for (client, server, expected) in [
        (End::sealed(1), End::sealed(2), "has another secret; give both sides the same one"),
        (End::prefers_sealed(1), End::sealed(2), "has another secret; give both sides the same one"),
        (End::sealed(1), End::new(), "has no secret, and this side has one"),
        (End::new(), End::sealed(1), "serves sealed streams only; give this side the secret"),
    ] {
        let sentence = fails(client, server);
        assert!(sentence.contains(expected), "{sentence}");
    }
}

#[test]
fn who_prefers_sealed_streams_takes_others() {
    for (client, server, is_sealed) in [
        (End::prefers_sealed(1), End::new(), false),
        (End::new(), End::prefers_sealed(1), false),
        (End::prefers_sealed(1), End::sealed(1), true),
        (End::sealed(1), End::prefers_sealed(1), true),
        (End::prefers_sealed(1), End::prefers_sealed(1), true),
    ] {
        let (mut way, cells) = Way::open(client, server);
        assert_eq!(way.client.tcp.lane_of(cells[0]).expect("a lane").0.is_sealed(), is_sealed);
        assert_eq!(way.server.tcp.lane_of(cells[1]).expect("a lane").0.is_sealed(), is_sealed);
    }
}

/// A version that does not know sealed streams closes one at once.
#[test]
fn a_server_of_an_older_version_gets_a_stream_in_clear_where_that_is_allowed() {
    let (listener, uri) = port();
    let mut end = End::prefers_sealed(1);
    end.connect(&uri, TIMEOUT);
    let mut first = Script::answer(&listener, &mut end);
    assert!(first.hello(&mut end).sealed);
    drop(first);
    let hello = Hello { dialed: false, ..Script::own_hello() };
    let mut second = Script::greet(&listener, &mut end, &hello);
    second.accept(&mut end);
}

/// Whatever byte of the handshake somebody changes, there is no connection, and no program sees a
/// request.
#[test]
fn a_handshake_of_which_a_byte_is_changed_connects_nothing() {
    for direction in 0..2 {
        for at in 0..HELLO + SHARE {
            let mut way = Way::new(End::sealed(1), End::sealed(1));
            let hello = way.take(0, HELLO + SHARE);
            let change = |mut bytes: Vec<u8>| {
                bytes[at] ^= 1;
                bytes
            };
            if direction == 0 {
                way.give(1, &change(hello));
            } else {
                way.give(1, &hello);
                let answer = way.take(1, HELLO + SHARE);
                way.give(0, &change(answer));
            }
            way.passes = direction == 0;
            for _ in 0..50 {
                way.step();
            }
            assert!(way.server.core.pop().is_none(), "byte {at}");
            let event = way.client.core.pop();
            assert!(event.is_none_or(|slot| slot.detail() != Status::Success as u32), "byte {at}");
        }
    }
}

/// The HELLO without its bit, and without the message behind it.
#[test]
fn a_stripped_handshake_connects_nothing() {
    let mut way = Way::new(End::sealed(1), End::sealed(1));
    let hello = way.take(0, HELLO + SHARE);
    let hello = Hello::parse(hello.first_chunk().expect("a HELLO")).expect("a HELLO");
    way.give(1, &Hello { sealed: false, ..hello }.emit());
    way.passes = true;
    let sentence = refusal(&mut way);
    assert!(sentence.contains("serves sealed streams only"), "{sentence}");
    assert!(way.server.core.pop().is_none());

    // A listener that is not there answers in clear.
    let mut way = Way::new(End::sealed(1), End::sealed(1));
    let hello = way.take(0, HELLO + SHARE);
    way.give(1, &hello);
    let answer = way.take(1, HELLO + SHARE);
    let answer = Hello::parse(answer.first_chunk().expect("a HELLO")).expect("a HELLO");
    way.give(0, &Hello { sealed: false, ..answer }.emit());
    let sentence = refusal(&mut way);
    assert!(sentence.contains("answers a sealed stream in clear"), "{sentence}");
}

/// The client's own message in place of the server's.
#[test]
fn a_reflected_handshake_is_forged() {
    let mut way = Way::new(End::sealed(1), End::sealed(1));
    let hello = way.take(0, HELLO + SHARE);
    let parsed = Hello::parse(hello.first_chunk().expect("a HELLO")).expect("a HELLO");
    way.give(0, &[&Hello { dialed: false, ..parsed }.emit()[..], &hello[HELLO..]].concat());
    let sentence = refusal(&mut way);
    assert!(sentence.contains("was not sealed by a peer with the secret"), "{sentence}");
    assert_eq!(forged(&way.client), 1);
}

/// Who has recorded a handshake has no key for what follows.
#[test]
fn a_recorded_handshake_gets_no_request_through() {
    let mut way = Way::new(End::sealed(1), End::sealed(1));
    let hello = way.take(0, HELLO + SHARE);
    let mut script = Script::dial(&way.server);
    script.write(&mut way.server, &hello);
    script.take(&mut way.server, HELLO + SHARE);
    let body = ConnectBody { attribute: Attribute::ReliableOrdered, identity: [1, 2], token: 0 };
    script.put(&mut way.server, Kind::Connect, 0, 7, &[&body.emit(), &[0; 64]]);
    // As a length, that header asks for more bytes than the frame has.
    script.write(&mut way.server, &[0; 64]);
    script.until_closed(&mut way.server);
    assert!(way.server.core.pop().is_none());
    assert_eq!(forged(&way.server), 1);
}

/// Both sides change their keys at the same record, in each direction.
#[test]
fn keys_change_and_messages_go_on() {
    let (mut way, cells) = Way::open(End::sealed(1), End::sealed(1));
    for (end, cell) in [(&mut way.client, cells[0]), (&mut way.server, cells[1])] {
        let seal = end.tcp.lane_of(cell).expect("a lane").0.seal.as_mut().expect("sealed");
        seal.skip_to(OF_ONE_KEY - 2, OF_ONE_KEY - 2);
    }
    for text in 0..8_u8 {
        way.client.send(cells[0], &[text], 1);
        let slot = way.event(1);
        assert_eq!((slot.kind(), slot.detail()), (EventKind::Recv as u32, 1));
        assert!(slot.give_back());
        let slot = way.event(0);
        assert_eq!((slot.kind(), slot.detail()), (EventKind::Send as u32, Status::Success as u32));
        assert!(slot.give_back());
    }
    let expanded = |end: &End| end.tcp.shared.sealing.as_ref().map_or(0, |sealing| sealing.expanded());
    assert!(expanded(&way.client) >= 4 && expanded(&way.server) >= 4, "two keys in each direction");
}

/// An RMA of the client to or from all of this registration of the server.
fn rma(
    way: &mut Way,
    cell: &'static Connection,
    [local, remote]: [&cci_proto::RmaHandle; 2],
    len: u64,
    access: Access,
) {
    let rma = Rma { local, local_offset: 0, remote, remote_offset: 0, len, access, fence: false, message: None };
    way.client.tcp.rma(&mut way.client.core, cell, &rma, Posted::Event(9)).expect("an RMA");
}

const LONG: usize = 300_001;
/// More than the buffers of a stream take that nobody reads.
const MANY: usize = 16 << 20;

#[test]
fn rma_goes_by_records_in_both_directions() {
    let (mut way, cells) = Way::open(End::sealed(1), End::sealed(1));
    let [source, target, back] = [3, 4, 5].map(|byte| heap(byte, LONG));
    let local = way.client.register(&source, Rights::NONE);
    let back_to = way.client.register(&back, Rights::NONE);
    let remote = way.server.register(&target, Rights::READ_WRITE);
    for (local, access) in [(&local, Access::Write), (&back_to, Access::Read)] {
        rma(&mut way, cells[0], [local, &remote], LONG as u64, access);
        let slot = way.event(0);
        assert_eq!((slot.kind(), slot.detail()), (EventKind::Send as u32, Status::Success as u32));
        assert!(slot.give_back());
    }
    assert!([&target, &back].iter().all(|bytes| bytes_of(bytes, LONG).iter().all(|byte| *byte == 3)));
}

/// Of a write whose third record was changed, the first two are written and nothing of the third.
#[test]
fn no_byte_of_a_changed_record_reaches_registered_memory() {
    let (mut way, cells) = Way::open(End::sealed(1), End::sealed(1));
    let (source, target) = (heap(3, LONG), heap(4, LONG));
    let local = way.client.register(&source, Rights::NONE);
    let remote = way.server.register(&target, Rights::WRITE);
    way.passes = false;
    rma(&mut way, cells[0], [&local, &remote], LONG as u64, Access::Write);
    let mut records: Vec<Vec<u8>> = Vec::new();
    while records.len() < 3 {
        let record = way.take_record(0);
        // GRANT and the like come before.
        if record.len() > 1000 {
            records.push(record);
        } else {
            way.give(1, &record);
        }
    }
    let at = records[2].len() / 2;
    records[2][at] ^= 4;
    let lens: usize = records[..2].iter().map(|record| record.len() - OVERHEAD).sum();
    way.give(1, &records.concat());
    way.until("its end", |way| lanes(&way.server.tcp) == 0);
    let bytes = bytes_of(&target, LONG);
    let written = bytes.iter().take_while(|byte| **byte == 3).count();
    // A header of 16 bytes and 40 bytes of the WRITE come before the first byte.
    assert_eq!((forged(&way.server), written), (1, lens - 56));
    assert!(bytes[written..].iter().all(|byte| *byte == 4));
}

/// A peer whose stream takes no more bytes in the middle of a record gets the rest later.
#[test]
fn a_record_that_leaves_in_pieces_arrives_whole() {
    let (mut way, cells) = Way::open(End::sealed(1), End::sealed(1));
    way.passes = false;
    let (source, target) = (heap(3, MANY), heap(4, MANY));
    let local = way.client.register(&source, Rights::NONE);
    let remote = way.server.register(&target, Rights::WRITE);
    rma(&mut way, cells[0], [&local, &remote], MANY as u64, Access::Write);
    // Nobody reads: the stream fills up.
    way.client.until("a full stream", |end| end.tcp.lane_of(cells[0]).is_some_and(|(lane, _)| lane.is_blocked));
    way.passes = true;
    let slot = way.event(0);
    assert_eq!((slot.kind(), slot.detail()), (EventKind::Send as u32, Status::Success as u32));
    assert!(slot.give_back());
    assert!(bytes_of(&target, MANY).iter().all(|byte| *byte == 3));
}
