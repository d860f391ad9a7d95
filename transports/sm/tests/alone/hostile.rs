//! Hostile peers of `sm`: they scribble over everything they can write, and forge what they send.
//! They are dropped; nobody else suffers.

use crate::program;
use cci::{Attribute, Connect, Connection, Endpoint, EventKind, HeapBytes, Memory, Notify, Rights, Status};
use cci_conformance::process::{describe_descriptors, descriptors, segments};
use cci_conformance::sm_raw::{BACK, RawPeer, SLOTS, await_close, frame_kind, learn, words};
use cci_conformance::{LIMIT, Peer, World, alone, drain, open, open_with, pattern, sm_device};
use std::sync::Arc;
use std::time::Instant;

const RO: Attribute = Attribute::ReliableOrdered;

/// What is sent to connections that do not exist is dropped, and the report of any connection of
/// the endpoint counts it.
#[test]
fn frames_for_unknown_connections_are_counted_in_the_report() {
    let _alone = alone();
    let (endpoint, honest) = (open(&sm_device()), open(&sm_device()));
    let hello = learn(&honest, 98_700);
    let (world, connection, _) = World::joined([&endpoint, &honest], RO);
    let strays = || endpoint.report(connection).expect("open").strays;
    assert_eq!(strays(), 0);
    let mut peer = RawPeer::enter(endpoint.uri(), &hello, || world.step());
    for number in [0, 7, 1 << 20, u32::MAX] {
        peer.publish(frame_kind::MESSAGE, 5, number, b"stray");
    }
    world.until("the frames to be taken", || strays() >= 4);
    assert_eq!((strays(), world.waiting(0, EventKind::Recv)), (4, 0));
    let at_honest = honest.report(world.connect(1, 0, RO).0).expect("open");
    assert_eq!(at_honest.strays, 0, "another endpoint's");
}

/// An endpoint with an honest peer in another process, whose traffic must stay exact whatever
/// others do.
struct Victim<'e> {
    endpoint: &'e Endpoint,
    honest: Connection,
    round: std::cell::Cell<u64>,
    _peer: Peer,
}

impl<'e> Victim<'e> {
    fn new(endpoint: &'e Endpoint) -> Self {
        let mut peer = Peer::spawn(program(), "echo", &[]);
        endpoint.connect(&Connect::to(&peer.line()).context(7).timeout(LIMIT)).expect("a connect");
        let world = World::new([endpoint]);
        let honest = world.next(0, EventKind::Connect).connection().expect("one");
        Self { endpoint, honest, round: 0.into(), _peer: peer }
    }

    /// One exact exchange with the honest peer. Meanwhile hostile requests are accepted, answered
    /// with messages, and events of hostile connections are returned, whatever they say.
    fn exchange(&self) {
        let round = self.round.replace(self.round.get() + 1);
        let message = pattern(round, usize::try_from(round * 37 % 2000).expect("small"));
        self.endpoint.send(self.honest, &message, Notify::OnFailure(0)).expect("a send to the honest peer");
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < LIMIT, "the honest peer's echo does not come");
            let Some(event) = self.endpoint.get_event().expect("usable") else { continue };
            match event.kind() {
                EventKind::Recv if event.connection() == Some(self.honest) => {
                    assert_eq!(event.received().expect("a message").to_vec(), message, "round {round}");
                    return;
                }
                EventKind::ConnectRequest if round.is_multiple_of(4) => drop(event),
                EventKind::ConnectRequest => {
                    // The hostile peer may be gone by now.
                    let _ = event.into_request().expect("a request").accept(1);
                }
                EventKind::Accept | EventKind::Recv => {
                    if let Some(connection) = event.connection() {
                        for len in [8, 500] {
                            // Nothing is promised about this one.
                            let _ = self.endpoint.send(connection, &message[..message.len().min(len)], 1);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Exchanges until a count has come down, so that nothing of a hostile peer is left.
    fn settle(&self, what: &str, most: usize, count: impl Fn() -> usize) {
        let begun = Instant::now();
        while count() > most && begun.elapsed() < LIMIT {
            self.exchange();
        }
        assert!(count() <= most, "{what}: {} where {most} were; {:?}", count(), describe_descriptors());
    }
}

/// Lets peers play a hostile role, one seed after the other, against one endpoint.
fn survive(role: &str, seeds: std::ops::Range<u64>) {
    let endpoint = open(&sm_device());
    let victim = Victim::new(&endpoint);
    (0..50).for_each(|_| victim.exchange());
    let before = [descriptors(), segments()];
    for seed in seeds {
        let mut hostile = Peer::spawn(program(), role, &[endpoint.uri(), &seed.to_string()]);
        assert_eq!(hostile.line_while(|| victim.exchange()), "entered", "seed {seed}");
        assert_eq!(hostile.line_while(|| victim.exchange()), "done", "seed {seed}");
        drop(hostile);
        (0..20).for_each(|_| victim.exchange());
    }
    victim.settle("descriptors", before[0], descriptors);
    victim.settle("segments", before[1], segments);
}

#[test]
fn hostile_peer_scribbles_over_lane_and_socket() {
    let _alone = alone();
    survive("scribble", 0..80);
}

#[test]
fn hostile_peer_forges_frames() {
    let _alone = alone();
    survive("forge", 100..180);
}

/// What a lie is told about, and the lie.
type Lie = fn(&mut RawPeer, u32);

/// A peer that has been accepted tells one lie: its lane is closed, its connection ends, the honest
/// peer does not notice.
fn is_dropped(what: &str, lie: Lie) {
    is_dropped_after(what, 0, lie);
}

/// The same for a lie that comes with `honest` messages, which are shown and kept.
fn is_dropped_after(what: &str, honest: usize, lie: Lie) {
    let endpoint = open_with(&sm_device(), |options| options.disconnect_events = true);
    let victim = Victim::new(&endpoint);
    let own = open(&sm_device());
    let hello = learn(&own, 91_000);
    let before = [descriptors(), segments()];
    let (peer, accepted) = {
        let world = World::new([&endpoint]);
        let mut peer = RawPeer::enter(endpoint.uri(), &hello, || world.step());
        let mut accepted = None;
        let number = peer.open_connection(5, || {
            world.step();
            if world.waiting(0, EventKind::ConnectRequest) > 0 {
                let request = world.next(0, EventKind::ConnectRequest);
                request.into_request().expect("a request").accept(1).expect("an accept");
                accepted = world.next(0, EventKind::Accept).connection();
            }
        });
        peer.publish(frame_kind::MESSAGE, 5, number, b"hello");
        assert_eq!(world.message(0), b"hello", "{what}: an honest beginning");
        lie(&mut peer, number);
        (peer, accepted.expect("accepted"))
    };
    let (mut sent, mut shown) = (0u64, Vec::new());
    let begun = Instant::now();
    while !peer.is_closed() {
        assert!(begun.elapsed() < LIMIT, "{what}: the lane is not closed");
        // Some lies are met only by sending to the liar.
        sent += u64::from(endpoint.send(accepted, &pattern(sent, 40), Notify::OnFailure(0)).is_ok());
        peer.wake();
        let Some(event) = endpoint.get_event().expect("usable") else { continue };
        assert_ne!(event.kind(), EventKind::ConnectRequest, "{what}");
        if event.kind() == EventKind::Recv {
            shown.push(event);
        }
        assert!(shown.len() <= honest, "{what}: {shown:?}");
    }
    assert!(endpoint.send(accepted, b"late", Notify::OnFailure(0)).is_err(), "{what}: the connection lives on");
    drop((peer, shown));
    (0..20).for_each(|_| victim.exchange());
    victim.settle(what, before[0], descriptors);
    victim.settle(what, before[1], segments);
}

#[test]
fn hostile_head_beyond_tail() {
    let _alone = alone();
    is_dropped("a head beyond the tail", |peer, _| peer.write(BACK, &0x4000_0000u32.to_ne_bytes()));
}

#[test]
fn hostile_slot_that_was_not_granted() {
    let _alone = alone();
    is_dropped("a slot number beyond all slots", |peer, number| {
        peer.publish(frame_kind::MESSAGE_SLOT, 0, number, &words([70_000, 8]));
    });
    is_dropped("a slot that exists but was not granted", |peer, number| {
        let last = peer.slot_count - 1;
        peer.publish(frame_kind::MESSAGE_SLOT, 0, number, &words([last, 8]));
    });
}

#[test]
fn hostile_slot_used_twice() {
    let _alone = alone();
    is_dropped_after("a granted slot published twice", 1, |peer, number| {
        let grant = u32::from_ne_bytes(peer.read(256)) & 0xffff;
        let slot = SLOTS + u64::from(grant) * u64::from(peer.slot_stride);
        assert!(grant < peer.slot_count, "the first grant");
        peer.write(slot, b"honest");
        // The honest message is shown, and kept by the program, so that its slot is not granted
        // again.
        for _ in 0..2 {
            peer.publish(frame_kind::MESSAGE_SLOT, 0, number, &words([grant, 6]));
        }
    });
}

#[test]
fn hostile_lengths() {
    let _alone = alone();
    is_dropped("57 bytes in an entry", |peer, number| peer.publish(frame_kind::MESSAGE, 57, number, b"x"));
    is_dropped("255 bytes in an entry", |peer, number| peer.publish(frame_kind::MESSAGE, 255, number, b"x"));
    for bytes in [u32::MAX, 1 << 31] {
        let lie: Lie = match bytes {
            u32::MAX => |peer, number| {
                let grant = u32::from_ne_bytes(peer.read(256)) & 0xffff;
                peer.publish(frame_kind::MESSAGE_SLOT, 0, number, &words([grant, u32::MAX]));
            },
            _ => |peer, number| {
                let grant = u32::from_ne_bytes(peer.read(256)) & 0xffff;
                peer.publish(frame_kind::MESSAGE_SLOT, 0, number, &words([grant, peer.slot_stride + 1]));
            },
        };
        is_dropped("a message longer than its slot", lie);
    }
    is_dropped("a request longer than its slot", |peer, _| {
        let grant = u32::from_ne_bytes(peer.read(256)) & 0xffff;
        peer.publish(frame_kind::CONNECT, 0, 9, &words([0, 8192, grant, u32::MAX, 0, 0]));
    });
}

#[test]
fn hostile_kinds() {
    let _alone = alone();
    is_dropped("kind 0", |peer, number| peer.publish(0, 0, number, &[]));
    is_dropped("kind 200", |peer, number| peer.publish(200, 0, number, &[]));
    is_dropped("an attribute that does not exist", |peer, _| {
        peer.publish(frame_kind::CONNECT, 0, 9, &words([77, 8192, u32::MAX, 0, 0, 0]));
    });
}

/// A peer whose connection the first endpoint has accepted, and that endpoint's number of it.
fn accepted(world: &World<'_>, id: u32) -> (RawPeer, u32) {
    let own = open(&sm_device());
    let hello = learn(&own, id);
    let mut peer = RawPeer::enter(world.endpoint(0).uri(), &hello, || world.step());
    let mut requested = false;
    let number = peer.open_connection(5, || {
        world.step();
        if !requested && world.waiting(0, EventKind::ConnectRequest) > 0 {
            requested = true;
            world.next(0, EventKind::ConnectRequest).into_request().expect("a request").accept(1).expect("an accept");
        }
    });
    (peer, number)
}

/// The next frame to the peer: its kind, its operation and the first word of its body.
fn answer(world: &World<'_>, peer: &mut RawPeer) -> (u8, u32, u64) {
    let mut answer = None;
    world.until("the answer", || {
        answer = answer.or_else(|| peer.next_frame());
        answer.is_some()
    });
    let (kind, operation, body) = answer.expect("an answer");
    (kind, operation, u64::from_ne_bytes(*body.first_chunk().expect("a word")))
}

/// Frames for connections that do not exist are dropped without ending the lane.
#[test]
fn hostile_connection_numbers_are_ignored() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let (mut peer, number) = accepted(&world, 92_000);
    for wrong in [number ^ 1, number ^ 0x10_0000, number ^ 0x8000_0000, u32::MAX, 0xf_ffff] {
        peer.publish(frame_kind::MESSAGE, 5, wrong, b"wrong");
    }
    peer.publish(frame_kind::MESSAGE, 5, number, b"right");
    assert_eq!(world.message(0), b"right");
    assert!(!peer.is_closed());
}

/// Of words that a peer asks to be changed only those are that it may change; values that nobody
/// asked for are dropped.
#[test]
fn hostile_atomic_operations() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let (mut peer, number) = accepted(&world, 94_000);
    let memory = endpoint.register(vec![0; 64], Rights::READ_WRITE).expect("a registration");
    let [first, secret, ..] = memory.handle().words();
    let mut ask = |kind: u8, handle: [u64; 2], offset: u64, len: u64| {
        let body: Vec<u8> = [handle[0], handle[1], offset, len, 7, 0, number.into()]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        peer.publish(kind, 0, 99, &body);
        let (kind, operation, first) = answer(&world, &mut peer);
        assert_eq!(operation, 99);
        (kind, first)
    };
    let refused = (frame_kind::RESULT, Status::RmaHandle as u64);
    for kind in [frame_kind::FETCH_ADD, frame_kind::COMPARE_SWAP] {
        assert_eq!(ask(kind, [first, secret ^ 1], 0, 8), refused, "an invented secret");
        assert_eq!(ask(kind, [first ^ 1, secret], 0, 8), refused, "an invented registration");
        for (offset, len) in
            [(0, 0), (0, 1), (0, 16), (0, 64), (4, 8), (1, 4), (64, 4), (u64::MAX - 3, 8), (0, u64::MAX)]
        {
            assert_eq!(ask(kind, [first, secret], offset, len), refused, "{len} bytes at {offset}");
        }
    }
    assert_eq!(memory.to_vec(0, 64), Some(vec![0; 64]), "untouched");
    assert_eq!(ask(frame_kind::FETCH_ADD, [first, secret], 8, 8), (frame_kind::VALUE, 0), "one that it may change");
    assert_eq!(memory.to_vec(8, 8), Some(7_u64.to_ne_bytes().to_vec()));
    peer.publish(frame_kind::VALUE, 0, 99, &words([1, 2]));
    peer.publish(frame_kind::MESSAGE, 5, number, b"alive");
    assert_eq!(world.message(0), b"alive");
    assert!(!peer.is_closed());
}

/// Memory for large messages is given within the limit, and to no peer more often than one of ours
/// asks; what was not written is zero, never what an earlier message had.
#[test]
fn hostile_large_messages() {
    const LIMIT: u64 = 100_000;
    let _alone = alone();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let (mut peer, number) = accepted(&world, 95_000);
    let body = |first: u64| -> Vec<u8> { [first, number.into()].iter().flat_map(|word| word.to_ne_bytes()).collect() };
    let too_long = Status::MsgSize as u64;
    peer.publish(frame_kind::LARGE, 0, 7, &body(1000));
    assert_eq!(answer(&world, &mut peer), (frame_kind::RESULT, 7, too_long), "nothing is allowed");
    endpoint.set_large_limit(LIMIT).expect("usable");
    for len in [0, LIMIT + 1, u64::MAX] {
        peer.publish(frame_kind::LARGE, 0, 8, &body(len));
        assert_eq!(answer(&world, &mut peer), (frame_kind::RESULT, 8, too_long), "{len} bytes");
    }
    // An honest message first, so that its memory is there to be used again.
    let sender = open(&sm_device());
    {
        let (honest, connection, _) = World::joined([&sender, &endpoint], Attribute::ReliableOrdered);
        let secret = Memory::of_bytes(&Arc::new(HeapBytes::new(vec![b's'; 50_000])));
        sender.send_large(connection, &secret, 1).expect("a send");
        assert_eq!(honest.message(1), vec![b's'; 50_000]);
        assert_eq!(honest.sent(0), 1);
    }
    peer.publish(frame_kind::LARGE, 0, 9, &body(50_000));
    assert_eq!(answer(&world, &mut peer).0, frame_kind::LANDING);
    for (operation, connection) in [(10, number), (9, number ^ 1), (9, u32::MAX)] {
        let words: Vec<u8> = [0, connection.into()].iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        peer.publish(frame_kind::LANDED, 0, operation, &words);
    }
    peer.publish(frame_kind::LANDING, 0, 9, &body(7));
    peer.publish(frame_kind::RESULT, 0, 9, &body(0));
    peer.publish(frame_kind::MESSAGE, 5, number, b"alive");
    assert_eq!(world.message(0), b"alive");
    peer.publish(frame_kind::LANDED, 0, 9, &body(0));
    let never_written = world.next(0, EventKind::Recv);
    let message = never_written.received().expect("a message");
    assert_eq!(message.to_vec(), vec![0; 50_000], "never written");
    assert!(message.bytes().is_none(), "the peer has the address, and may write there now");
    drop(never_written);
    peer.publish(frame_kind::LANDED, 0, 9, &body(0));
    // More than one of ours asks for at a time.
    for operation in 100..200 {
        peer.publish(frame_kind::LARGE, 0, operation, &body(10));
    }
    let mut given = Vec::new();
    for _ in 0..100 {
        let (kind, operation, status) = answer(&world, &mut peer);
        if kind == frame_kind::LANDING {
            given.push(operation);
        } else {
            assert_eq!((kind, status), (frame_kind::RESULT, too_long));
        }
    }
    assert_eq!(given.len(), 64);
    for operation in given {
        peer.publish(frame_kind::LANDED, 0, operation, &body(Status::RmaOp as u64));
    }
    peer.publish(frame_kind::LARGE, 0, 300, &body(LIMIT));
    assert_eq!(answer(&world, &mut peer).0, frame_kind::LANDING, "all of it is there again");
    peer.publish(frame_kind::MESSAGE, 5, number, b"alive");
    assert_eq!(world.message(0), b"alive");
    assert!(!peer.is_closed());
}

/// Words as a frame's body has them.
fn body<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Memory that is given and never written takes no receive slot: others have all of them. A message
/// that is there waits for one.
#[test]
fn hostile_large_messages_that_never_come_take_no_receive_slot() {
    const SLOTS: u64 = 16;
    let _alone = alone();
    let endpoint = open_with(&sm_device(), |options| options.recv_buffers = 16);
    endpoint.set_large_limit(100_000).expect("usable");
    let honest = open(&sm_device());
    let world = World::new([&endpoint, &honest]);
    let (mut peer, number) = accepted(&world, 95_100);
    for operation in 0..20 {
        peer.publish(frame_kind::LARGE, 0, operation, &body([1000, number.into()]));
        assert_eq!(answer(&world, &mut peer).0, frame_kind::LANDING);
    }
    let (connection, _) = world.connect(1, 0, RO);
    let held: Vec<_> = (0..SLOTS)
        .map(|message| {
            honest.send(connection, &pattern(message, 20), message).expect("a send");
            let event = world.next(0, EventKind::Recv);
            assert_eq!(event.received().expect("a message").to_vec(), pattern(message, 20));
            event
        })
        .collect();
    peer.publish(frame_kind::LANDED, 0, 7, &body([0, number.into()]));
    peer.publish(frame_kind::PING, 0, number, &[]);
    (0..100).for_each(|_| world.step());
    assert_eq!((world.waiting(0, EventKind::Recv), peer.next_frame().is_none()), (0, true), "it waits in the ring");
    drop(held);
    assert_eq!(world.message(0), vec![0; 1000]);
    assert_eq!(answer(&world, &mut peer).0, frame_kind::PONG, "and what came after it");
    assert!(!peer.is_closed());
}

/// Page faults of this thread so far.
fn page_faults() -> usize {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("what the kernel counts");
    // The eighth field after the name, which ends with the last parenthesis.
    let fields = stat.rsplit_once(')').expect("a name").1;
    fields.split_whitespace().nth(7).expect("a field").parse().expect("a number")
}

/// A peer that asks for memory and writes none of it makes the receiver clear nothing.
#[test]
fn hostile_large_messages_that_never_come_cost_no_time() {
    const LEN: u64 = 64 << 20;
    let _alone = alone();
    let endpoint = open(&sm_device());
    endpoint.set_large_limit(2 * LEN).expect("usable");
    let world = World::new([&endpoint]);
    let (mut peer, number) = accepted(&world, 95_200);
    let before = page_faults();
    for operation in 0..50 {
        peer.publish(frame_kind::LARGE, 0, operation, &body([LEN, number.into()]));
        assert_eq!(answer(&world, &mut peer).0, frame_kind::LANDING);
        peer.publish(frame_kind::LANDED, 0, operation, &body([Status::RmaOp as u64, number.into()]));
    }
    let faults = page_faults() - before;
    assert!(faults < usize::try_from(LEN / 4096).expect("a number") / 4, "{faults} page faults");
}

/// An endpoint gives memory for 1,024 messages at a time, whoever asks; the others wait until one
/// of them ends.
#[test]
fn hostile_large_messages_are_written_a_thousand_at_a_time() {
    const MOST: usize = 1024;
    let _alone = alone();
    let endpoint = open(&sm_device());
    endpoint.set_large_limit(1 << 20).expect("usable");
    let world = World::new([&endpoint]);
    let (mut peer, first) = accepted(&world, 95_300);
    let mut numbers = vec![first];
    while numbers.len() < MOST + 76 {
        let number = 10 + u32::try_from(numbers.len()).expect("few");
        let mut requested = false;
        numbers.push(peer.open_connection(number, || {
            world.step();
            if !requested && world.waiting(0, EventKind::ConnectRequest) > 0 {
                requested = true;
                world
                    .next(0, EventKind::ConnectRequest)
                    .into_request()
                    .expect("a request")
                    .accept(1)
                    .expect("an accept");
            }
        }));
    }
    let mut given = Vec::new();
    let take = |peer: &mut RawPeer, given: &mut Vec<u32>| {
        while let Some((kind, operation, _)) = peer.next_frame() {
            assert_eq!(kind, frame_kind::LANDING);
            given.push(operation);
        }
    };
    // The operation says which connection.
    for (at, number) in numbers.iter().enumerate() {
        peer.publish(frame_kind::LARGE, 0, u32::try_from(at).expect("few"), &body([10, (*number).into()]));
        world.step();
        take(&mut peer, &mut given);
    }
    world.until("the answers", || {
        take(&mut peer, &mut given);
        given.len() >= MOST
    });
    (0..100).for_each(|_| world.step());
    take(&mut peer, &mut given);
    assert_eq!(given.len(), MOST);
    let ended = given[5];
    let number = numbers[ended as usize];
    peer.publish(frame_kind::LANDED, 0, ended, &body([Status::RmaOp as u64, number.into()]));
    assert_eq!(answer(&world, &mut peer).0, frame_kind::LANDING, "the next one has its turn");
}

/// Packets out of place end the lane.
#[test]
fn hostile_packets_after_the_handshake() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let own = open(&sm_device());
    let hello = learn(&own, 93_000);
    let victim = Victim::new(&endpoint);
    let before = descriptors();
    let poll = || {
        drain(&endpoint);
    };
    for len in [0usize, 2, 3, 159, 160, 161, 5000] {
        for descriptors in [0, 1, 3] {
            let peer = RawPeer::enter(endpoint.uri(), &hello, poll);
            use std::os::fd::AsFd;
            let attached = vec![peer.lane.as_fd(); descriptors];
            cci_conformance::sm_raw::send_packet(peer.socket.as_fd(), &vec![0x5a; len], &attached)
                .expect("the lane is open");
            await_close(peer.socket.as_fd(), poll);
        }
    }
    (0..20).for_each(|_| victim.exchange());
    victim.settle("descriptors", before, descriptors);
}
