//! Handshakes of `sm` that go wrong, at either side: refused with a sentence, closed, or waited
//! for; never anyone else's harm.

use cci::{Attribute, Connect, Endpoint, EventKind, Failure, Notify};
use cci_conformance::process::{describe_descriptors, descriptors, segments};
use cci_conformance::sm_raw::{
    Arrived, LANE_SEALS, PACKET, Packet, READY_LEN, REGISTRY_SEALS, RawListener, await_close, await_packet, field,
    learn, memfd, packet_kind, raw_connect, receive_packet, send_packet,
};
use cci_conformance::{LIMIT, World, alone, drain, open, open_with, sm_device};
use rustix::fs::SealFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// An endpoint that is attacked, another one that talks to it honestly, and a HELLO of the library.
struct Site {
    server: Endpoint,
    honest: Endpoint,
    hello: Packet,
}

impl Site {
    fn new() -> Self {
        let (server, honest) = (open(&sm_device()), open(&sm_device()));
        let hello = learn(&honest, 95_000);
        Self { server, honest, hello }
    }

    fn poll(&self) {
        drain(&self.server);
    }

    /// Both honest ends still find each other; nothing of an attack is left.
    fn assert_unharmed(&self, what: &str, before: [usize; 2]) {
        let world = World::new([&self.honest, &self.server]);
        let (connection, accepted) = world.connect(0, 1, RO);
        self.honest.send(connection, b"still", Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(1), b"still", "{what}");
        self.honest.disconnect(connection).expect("a disconnect");
        self.server.disconnect(accepted).expect("a disconnect");
        let left = || [descriptors(), segments()];
        let begun = Instant::now();
        while left().iter().zip(before).any(|(now, before)| *now > before) && begun.elapsed() < LIMIT {
            world.step();
        }
        assert!(
            left().iter().zip(before).all(|(now, before)| *now <= before),
            "{what} leaks: {:?}",
            describe_descriptors()
        );
    }

    /// The state to come back to: with a lane between the honest ends.
    fn baseline(&self) -> [usize; 2] {
        let world = World::new([&self.honest, &self.server]);
        let (connection, accepted) = world.connect(0, 1, RO);
        self.honest.disconnect(connection).expect("a disconnect");
        self.server.disconnect(accepted).expect("a disconnect");
        (0..100).for_each(|_| world.step());
        [descriptors(), segments()]
    }

    /// The right segments for a HELLO.
    fn segments(&self) -> [OwnedFd; 3] {
        let lane = memfd(self.hello.word64(field::LANE_LEN), LANE_SEALS);
        [lane, memfd(self.hello.word64(field::REGISTRY_LEN), REGISTRY_SEALS), memfd(READY_LEN, LANE_SEALS)]
    }

    /// Sends a HELLO with descriptors: `Some(sentence)` when it is refused, `None` when the lane is
    /// closed without one. It must not be welcomed.
    fn offer(&self, what: &str, hello: &[u8], descriptors: &[BorrowedFd<'_>]) -> Option<String> {
        let socket = raw_connect(self.server.uri()).expect("it listens");
        send_packet(socket.as_fd(), hello, descriptors).expect("a fresh socket");
        let answer = await_packet(socket.as_fd(), || self.poll());
        let sentence = answer.map(|(packet, _)| {
            assert_eq!(packet.word32(field::KIND), packet_kind::REFUSE, "{what} was welcomed");
            packet.text()
        });
        if sentence.is_some() {
            await_close(socket.as_fd(), || self.poll());
        }
        sentence
    }
}

#[test]
fn hostile_hello_of_another_version_is_refused_with_a_sentence() {
    let _alone = alone();
    let site = Site::new();
    let before = site.baseline();
    for version in [0, 1, 77, u32::MAX] {
        let [lane, registry, ready] = site.segments();
        let hello = site.hello.clone().with32(field::VERSION, version);
        let sentence = site
            .offer("another version", &hello.0, &[lane.as_fd(), registry.as_fd(), ready.as_fd()])
            .expect("a REFUSE");
        assert!(sentence.contains(&version.to_string()) && sentence.contains(' '), "{sentence:?}");
    }
    site.assert_unharmed("another version", before);
}

#[test]
fn hostile_hello_with_wrong_magic_length_or_kind_is_closed() {
    let _alone = alone();
    let site = Site::new();
    let before = site.baseline();
    for (what, packet) in [
        ("no magic", site.hello.clone().with64(field::MAGIC, 0).0.to_vec()),
        ("other magic", site.hello.clone().with64(field::MAGIC, u64::MAX).0.to_vec()),
        ("WELCOME first", site.hello.clone().with32(field::KIND, packet_kind::WELCOME).0.to_vec()),
        ("REFUSE first", site.hello.clone().with32(field::KIND, packet_kind::REFUSE).0.to_vec()),
        ("SEGMENT first", site.hello.clone().with32(field::KIND, 4).0.to_vec()),
        ("kind 0", site.hello.clone().with32(field::KIND, 0).0.to_vec()),
        ("kind 99", site.hello.clone().with32(field::KIND, 99).0.to_vec()),
        ("a short packet", site.hello.0[..PACKET - 1].to_vec()),
        ("two bytes", vec![0; 2]),
        ("a long packet", [&site.hello.0[..], &[0; 40]].concat()),
        ("a very long packet", vec![0x41; 60_000]),
    ] {
        let [lane, registry, ready] = site.segments();
        let _ = site.offer(what, &packet, &[lane.as_fd(), registry.as_fd(), ready.as_fd()]);
        site.assert_unharmed(what, before);
    }
}

#[test]
fn hostile_hello_with_impossible_sizes_is_refused() {
    let _alone = alone();
    let site = Site::new();
    let before = site.baseline();
    let words = [field::MAX_SEND_SIZE, field::RING_SHIFT, field::SLOT_COUNT, field::SLOT_STRIDE];
    for at in words {
        for value in [0, 1, 31, 32, 63, 0x7fff_ffff, u32::MAX] {
            if value == site.hello.word32(at) || (at == field::MAX_SEND_SIZE && value > 0) {
                continue;
            }
            let [lane, registry, ready] = site.segments();
            let hello = site.hello.clone().with32(at, value);
            let what = format!("{value} at offset {at}");
            let _ = site.offer(&what, &hello.0, &[lane.as_fd(), registry.as_fd(), ready.as_fd()]);
        }
    }
    let len = site.hello.word64(field::LANE_LEN);
    for value in [0, 1, 4096, len - 64, len + 4096, 1 << 47, u64::MAX] {
        let [lane, registry, ready] = site.segments();
        let hello = site.hello.clone().with64(field::LANE_LEN, value);
        let _ =
            site.offer(&format!("a lane of {value} bytes"), &hello.0, &[lane.as_fd(), registry.as_fd(), ready.as_fd()]);
        // A segment that is as long as it says is not enough.
        if value < 1 << 46 {
            let other = memfd(value, LANE_SEALS);
            let _ = site.offer(
                &format!("{value} bytes indeed"),
                &hello.0,
                &[other.as_fd(), registry.as_fd(), ready.as_fd()],
            );
        }
    }
    site.assert_unharmed("impossible sizes", before);
}

#[test]
fn hostile_hello_with_unsealed_or_wrong_segments_is_refused() {
    let _alone = alone();
    let site = Site::new();
    let before = site.baseline();
    let len = site.hello.word64(field::LANE_LEN);
    let [lane, registry, ready] = site.segments();
    for seals in [SealFlags::empty(), SealFlags::SHRINK, SealFlags::GROW] {
        let unsealed = memfd(len, seals);
        let sentence =
            site.offer("an unsealed lane", &site.hello.0, &[unsealed.as_fd(), registry.as_fd(), ready.as_fd()]);
        assert!(sentence.expect("a REFUSE").contains(' '));
        let unsealed = memfd(site.hello.word64(field::REGISTRY_LEN), seals);
        let unready = memfd(READY_LEN, seals);
        let fds = [lane.as_fd(), registry.as_fd(), unready.as_fd()];
        let sentence = site.offer("an unsealed ready bitmap", &site.hello.0, &fds);
        assert!(sentence.is_some_and(|sentence| sentence.contains("mapped")), "an unsealed ready bitmap");
        let sentence =
            site.offer("an unsealed registry", &site.hello.0, &[lane.as_fd(), unsealed.as_fd(), ready.as_fd()]);
        assert!(sentence.expect("a REFUSE").contains(' '));
    }
    let short = memfd(len - 4096, LANE_SEALS);
    for other in [0, 64, 4096, site.hello.word64(field::REGISTRY_LEN) + 4096] {
        let other = memfd(other, REGISTRY_SEALS);
        let _ = site.offer("a registry of another size", &site.hello.0, &[lane.as_fd(), other.as_fd(), ready.as_fd()]);
    }
    let null = std::fs::File::open("/dev/null").expect("a device");
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    let others = [short.as_fd(), null.as_fd(), reader.as_fd(), writer.as_fd()];
    for other in others {
        let _ = site.offer("another file as lane", &site.hello.0, &[other, registry.as_fd(), ready.as_fd()]);
        let _ = site.offer("another file as registry", &site.hello.0, &[lane.as_fd(), other, ready.as_fd()]);
    }
    drop((short, null, reader, writer, lane, registry, ready));
    site.assert_unharmed("wrong segments", before);
}

#[test]
fn hostile_hello_with_too_few_or_too_many_descriptors_is_refused() {
    let _alone = alone();
    let site = Site::new();
    let before = site.baseline();
    let [lane, registry, ready] = site.segments();
    for count in [0, 1, 2, 4, 16, 100, 253] {
        let all: Vec<_> = [lane.as_fd(), registry.as_fd(), ready.as_fd()].into_iter().cycle().take(count).collect();
        let _ = site.offer(&format!("{count} descriptors"), &site.hello.0, &all);
    }
    drop((lane, registry, ready));
    site.assert_unharmed("another number of descriptors", before);
}

#[test]
fn hostile_peers_that_never_finish_the_handshake_hold_nobody_up() {
    let _alone = alone();
    let site = Site::new();
    let before = site.baseline();
    let silent: Vec<_> = (0..20).map(|_| raw_connect(site.server.uri()).expect("it listens")).collect();
    (0..100).for_each(|_| site.poll());
    let world = World::new([&site.honest, &site.server]);
    for _ in 0..5 {
        let (connection, accepted) = world.connect(0, 1, RO);
        site.honest.disconnect(connection).expect("a disconnect");
        site.server.disconnect(accepted).expect("a disconnect");
    }
    drop(world);
    // Some were served a HELLO's half: nothing but a wake-up.
    for socket in &silent[..10] {
        let _ = send_packet(socket.as_fd(), &[1], &[]);
    }
    (0..100).for_each(|_| site.poll());
    // One that waits on is not waited for.
    let mut silent = silent;
    let patient = silent.pop().expect("twenty");
    await_close(patient.as_fd(), || site.poll());
    drop((silent, patient));
    site.assert_unharmed("silent peers", before);
}

/// What a false server does with the HELLO of the library.
type Answer = fn(&OwnedFd, Packet, Vec<OwnedFd>);

/// The library connects to a false server: one failed CONNECT event, nothing left.
fn false_server(what: &str, id: u32, answer: Answer) -> Failure {
    let endpoint = open(&sm_device());
    let listener = RawListener::bind(id, 4);
    let before = [descriptors(), segments()];
    let world = World::new([&endpoint]);
    endpoint.connect(&Connect::to(listener.uri()).context(6).timeout(Duration::from_millis(700))).expect("a connect");
    let socket = listener.accept_while(|| world.step());
    let (hello, theirs) = await_packet(socket.as_fd(), || world.step()).expect("a HELLO");
    assert_eq!(theirs.len(), 3, "{what}");
    answer(&socket, hello, theirs);
    let event = world.next(0, EventKind::Connect);
    assert_eq!((event.context(), event.connection()), (6, None), "{what}");
    let failure = event.outcome().expect_err(what);
    drop((event, socket));
    world.until(what, || [descriptors(), segments()].iter().zip(before).all(|(now, before)| *now <= before));
    drop(world);
    assert_eq!(drain(&endpoint), 0, "{what}: one event");
    failure
}

#[test]
fn hostile_servers_end_a_connect_with_one_failure() {
    let _alone = alone();
    let refused = [Failure::Refused, Failure::Protocol, Failure::Disconnected];
    let answers: [(&str, Answer); 8] = [
        ("closes at once", |_, _, _| ()),
        ("refuses", |socket, hello, _| {
            let refuse = hello.with32(field::KIND, packet_kind::REFUSE).with_text("not today");
            send_packet(socket.as_fd(), &refuse.0, &[]).expect("open");
        }),
        ("welcomes without a descriptor", |socket, hello, _| {
            let welcome = hello.with32(field::KIND, packet_kind::WELCOME);
            send_packet(socket.as_fd(), &welcome.0, &[]).expect("open");
        }),
        ("welcomes with too many", |socket, hello, theirs| {
            let welcome = hello.with32(field::KIND, packet_kind::WELCOME);
            let all: Vec<_> = theirs.iter().map(AsFd::as_fd).cycle().take(40).collect();
            send_packet(socket.as_fd(), &welcome.0, &all).expect("open");
        }),
        ("welcomes with an unsealed registry", |socket, hello, _| {
            let registry = memfd(hello.word64(field::REGISTRY_LEN), SealFlags::empty());
            let welcome = hello.with32(field::KIND, packet_kind::WELCOME);
            send_packet(socket.as_fd(), &welcome.0, &[registry.as_fd(), memfd(READY_LEN, LANE_SEALS).as_fd()])
                .expect("open");
        }),
        ("welcomes in another version", |socket, hello, _| {
            let registry = memfd(hello.word64(field::REGISTRY_LEN), REGISTRY_SEALS);
            let welcome = hello.with32(field::KIND, packet_kind::WELCOME).with32(field::VERSION, 9);
            send_packet(socket.as_fd(), &welcome.0, &[registry.as_fd(), memfd(READY_LEN, LANE_SEALS).as_fd()])
                .expect("open");
        }),
        ("says HELLO itself", |socket, hello, _| send_packet(socket.as_fd(), &hello.0, &[]).expect("open")),
        ("talks nonsense", |socket, _, _| send_packet(socket.as_fd(), &[0x5a; PACKET], &[]).expect("open")),
    ];
    for (number, (what, answer)) in (0u32..).zip(answers) {
        let what = format!("a server that {what}");
        // One that closes at once does so by dropping its socket in `false_server`; until then it
        // is silent.
        let failure = false_server(&what, 96_000 + number, answer);
        let silent = number == 0;
        assert!(refused.contains(&failure) || (silent && failure == Failure::TimedOut), "{what}: {failure:?}");
    }
}

#[test]
fn hostile_server_that_hangs_up_is_refused() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let listener = RawListener::bind(97_000, 4);
    endpoint.connect(&Connect::to(listener.uri()).context(6).timeout(LIMIT)).expect("a connect");
    // It may try once more.
    world.until("the end of the connect", || {
        drop(listener.accept());
        world.waiting(0, EventKind::Connect) > 0
    });
    let failure = world.next(0, EventKind::Connect).outcome().expect_err("nobody there");
    assert!(matches!(failure, Failure::Refused | Failure::Disconnected), "{failure:?}");
}

/// A connect that is given up says so: the socket closes, and nothing comes of it later.
#[test]
fn connect_that_timed_out_is_withdrawn() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let listener = RawListener::bind(97_500, 4);
    endpoint.connect(&Connect::to(listener.uri()).context(6).timeout(Duration::from_millis(50))).expect("a connect");
    let socket = listener.accept_while(|| world.step());
    assert_eq!(world.next(0, EventKind::Connect).outcome(), Err(Failure::TimedOut));
    world.until("the socket to close", || matches!(receive_packet(socket.as_fd()), Arrived::Closed));
    assert_eq!(drain(&endpoint), 0);
}

/// The library connects to a false server that gives this answer: why the connect failed, as the
/// event says.
fn reason_after(id: u32, answer: impl FnOnce(&OwnedFd, Packet)) -> String {
    let endpoint = open(&sm_device());
    let listener = RawListener::bind(id, 4);
    let world = World::new([&endpoint]);
    endpoint.connect(&Connect::to(listener.uri()).context(6).timeout(LIMIT)).expect("a connect");
    let socket = listener.accept_while(|| world.step());
    let (hello, _theirs) = await_packet(socket.as_fd(), || world.step()).expect("a HELLO");
    answer(&socket, hello);
    let event = world.next(0, EventKind::Connect);
    assert_eq!(event.outcome(), Err(Failure::Refused));
    let reason = event.reason().expect("a sentence");
    assert!(reason.contains(listener.uri()), "{reason}");
    reason
}

/// Who connects to an endpoint that speaks another version reads in its CONNECT event what that one
/// says. The sentence is the library's own: a library refuses the HELLO of another version, and its
/// REFUSE goes to the client of this one.
#[test]
fn connect_to_another_version_says_why() {
    let _alone = alone();
    let site = Site::new();
    let reason = reason_after(97_600, |socket, hello| {
        let [lane, registry, ready] = site.segments();
        let other = raw_connect(site.server.uri()).expect("it listens");
        let hello = hello.with32(field::VERSION, 77);
        send_packet(other.as_fd(), &hello.0, &[lane.as_fd(), registry.as_fd(), ready.as_fd()]).expect("a fresh socket");
        let (refuse, _) = await_packet(other.as_fd(), || site.poll()).expect("a REFUSE");
        send_packet(socket.as_fd(), &refuse.0, &[]).expect("open");
    });
    assert!(reason.contains("this side speaks lane layout 7, not 77"), "{reason}");
    let reason = reason_after(97_601, |socket, hello| {
        let registry = memfd(hello.word64(field::REGISTRY_LEN), REGISTRY_SEALS);
        let welcome = hello.with32(field::KIND, packet_kind::WELCOME).with32(field::VERSION, 9);
        send_packet(socket.as_fd(), &welcome.0, &[registry.as_fd(), memfd(READY_LEN, LANE_SEALS).as_fd()])
            .expect("open");
    });
    assert!(reason.contains("lane layout 9"), "{reason}");
}

#[test]
fn hostile_sentence_of_a_refusal_controls_no_terminal() {
    let _alone = alone();
    let reason = reason_after(97_602, |socket, hello| {
        let refuse = hello.with32(field::KIND, packet_kind::REFUSE).with_text("not\x1b[2J\ntoday");
        send_packet(socket.as_fd(), &refuse.0, &[]).expect("open");
    });
    assert!(reason.ends_with("it says: not[2Jtoday"), "{reason}");
}

/// Every other end of a connect has its reason too, and an event that tells of something else has
/// none, though its slot told of a failed connect before.
#[test]
fn reasons_belong_to_their_events() {
    let _alone = alone();
    let client = open_with(&sm_device(), |options| options.send_buffers = 1);
    let server = open(&sm_device());
    let world = World::new([&client, &server]);
    let failed = |uri: &str, timeout: Duration| {
        client.connect(&Connect::to(uri).context(1).timeout(timeout)).expect("the buffer is free");
        let event = world.next(0, EventKind::Connect);
        (event.outcome().expect_err("it fails"), event.reason().expect("a sentence"))
    };
    let (failure, reason) = failed("sm://999999999/1", LIMIT);
    assert!(failure == Failure::Refused && reason == "nobody listens at sm://999999999/1", "{reason}");
    let (failure, reason) = failed(server.uri(), Duration::from_millis(30));
    assert!(failure == Failure::TimedOut && reason.contains("not answered"), "{reason}");
    drop(world.next(1, EventKind::ConnectRequest));
    let (connection, _) = world.connect(0, 1, RO);
    client.send(connection, b"x", 5).expect("a send");
    let sent = world.next(0, EventKind::Send);
    assert_eq!((sent.outcome(), sent.reason()), (Ok(()), None));
    drop(sent);
    client.connect(&Connect::to(server.uri()).context(1).timeout(LIMIT)).expect("the buffer is free");
    let request = world.next(1, EventKind::ConnectRequest);
    assert_eq!(request.reason(), None);
    request.into_request().expect("a request").reject().expect("a rejection");
    let event = world.next(0, EventKind::Connect);
    assert!(event.reason().expect("a sentence").contains("rejected"), "{:?}", event.reason());
}
