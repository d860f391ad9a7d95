//! Several events by one call, and waits for several endpoints.

use crate::world::{LIMIT, World, drain, most, open, open_with, pattern, readable};
use cci::{
    Attribute, Connection, Device, Endpoint, EndpointOptions, Event, EventKind, LocalEndpoint, Notify, wait_any,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;
const MESSAGES: u64 = 500;

/// The lengths of these messages, up to the connection's largest.
fn length(number: u64, most: usize) -> usize {
    [0, 8, 56, 57, 64, 200, most / 2, most][usize::try_from(number % 8).expect("small")].min(most)
}

/// Sends the next patterned messages, as many as there is room for.
fn send_some(endpoint: &Endpoint, connection: Connection, sent: &mut u64) {
    let most = most(connection);
    while *sent < MESSAGES
        && endpoint.send(connection, &pattern(*sent, length(*sent, most)), Notify::OnFailure(*sent)).is_ok()
    {
        *sent += 1;
    }
    drain(endpoint);
}

fn assert_next(event: &Event<'_>, received: &mut u64, most: usize) {
    let message = event.received().expect("a message");
    assert_eq!(message.to_vec(), pattern(*received, length(*received, most)), "message {received}");
    *received += 1;
}

/// Batches have every event once and in order, whatever their size, and no more events than asked
/// for.
pub fn in_order(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let (mut sent, mut received, begun) = (0, 0, Instant::now());
    let mut events = Vec::new();
    for size in [1, 3, 31, 32, 33, 100].into_iter().cycle() {
        send_some(&a, connection, &mut sent);
        let found = b.get_events(&mut events, size).expect("usable");
        assert!(found == events.len() && found <= size);
        for event in events.drain(..) {
            assert_next(&event, &mut received, most(connection));
        }
        if received == MESSAGES {
            break;
        }
        assert!(begun.elapsed() < LIMIT, "{received} of {sent} messages");
    }
    assert_eq!(b.get_events(&mut events, 100).expect("usable"), 0);
    assert_eq!(b.get_events(&mut events, 0).expect("usable"), 0);
}

/// A handler sees each message in place, and answers from within.
pub fn handler_answers(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (connection, back) = World::new([&a, &b]).connect(0, 1, RO);
    let (mut sent, mut received, mut answers, begun) = (0, 0, 0, Instant::now());
    while answers < MESSAGES {
        assert!(begun.elapsed() < LIMIT, "{received} messages and {answers} answers of {sent}");
        let most = most(connection);
        while sent < MESSAGES && a.send(connection, &pattern(sent, length(sent, most)), Notify::OnFailure(sent)).is_ok()
        {
            sent += 1;
        }
        b.poll(7, |event| {
            assert_next(&event, &mut received, most);
            b.send(back, &event.received().expect("a message").view().to_vec(), Notify::OnFailure(1)).expect("room");
        })
        .expect("usable");
        a.poll(100, |event| assert_next(&event, &mut answers, most)).expect("usable");
    }
}

/// Answers find the room that is set aside, short and of a whole frame, when nothing else is left;
/// and no more than that.
pub fn answers_find_room(device: &Device) {
    const ANSWERS: u32 = 5;
    let (server, client) = (open_with(device, |options| options.send_buffers = 8 + ANSWERS), open(device));
    assert_eq!(server.set_answer_buffers(8 + ANSWERS), Err(cci::OptionError::Range));
    server.set_answer_buffers(ANSWERS).expect("fewer than there are");
    let (_world, _, back) = World::joined([&client, &server], RO);
    let frame = (server.report(back).expect("open").mtu as usize / 2).min(most(back));
    for (round, len) in [0, 64, 65, frame].into_iter().enumerate() {
        // Their events are not taken, so that no buffer comes back.
        let fill = (0..100).map_while(|number| server.send(back, &pattern(number, len), number).ok()).count();
        assert_eq!(fill, 8, "round {round}");
        for number in 0..u64::from(ANSWERS) {
            server.answer(back, &pattern(number, len), number).unwrap_or_else(|why| panic!("{len} bytes: {why}"));
        }
        assert_eq!(server.answer(back, b"too many", 0), Err(cci::SendError::NoBuffers));
        assert_eq!(server.send(back, b"too many", 0), Err(cci::SendError::NoBuffers));
        let (mut sent, mut received, begun) = (0, 0, Instant::now());
        while sent < 8 + ANSWERS || received < 8 + ANSWERS {
            assert!(begun.elapsed() < LIMIT, "{sent} sent, {received} received");
            server.poll(100, |event| sent += u32::from(event.kind() == EventKind::Send)).expect("usable");
            client.poll(100, |event| received += u32::from(event.received().is_some())).expect("usable");
        }
    }
    assert_eq!(server.set_send_buffers(ANSWERS), Err(cci::OptionError::Range), "answers keep theirs");
    server.set_answer_buffers(0).expect("none");
    assert_eq!((0..100).map_while(|number| server.send(back, b"all", number).ok()).count(), 8 + ANSWERS as usize);
}

/// What a handler that panics has not seen goes back: the endpoint can receive as much as before.
pub fn panic_loses_nothing(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let begun = Instant::now();
    let (mut round, mut panics) = (0, 0);
    while panics < 20 {
        assert!(begun.elapsed() < LIMIT, "{panics} panics");
        for _ in 0..10 {
            let _ = a.send(connection, &pattern(round, 100), Notify::OnFailure(0));
        }
        round += 1;
        drain(&a);
        let polled = catch_unwind(AssertUnwindSafe(|| b.poll(100, |_| std::panic::panic_any("on purpose"))));
        panics += u32::from(polled.is_err());
    }
    drain(&b);
    let mut events = Vec::new();
    while events.len() < 50 {
        assert!(begun.elapsed() < LIMIT, "{} messages", events.len());
        let _ = a.send(connection, b"more", Notify::OnFailure(0));
        drain(&a);
        b.get_events(&mut events, 50).expect("usable");
    }
}

/// A wait for several endpoints finds the events of each, though the first always has some.
pub fn wait_for_each(device: &Device) {
    let [busy, quiet, client] = [open(device), open(device), open(device)];
    let world = World::new([&busy, &quiet, &client]);
    let ((to_busy, _), (to_quiet, _)) = (world.connect(2, 0, RO), world.connect(2, 1, RO));
    let mut quiet_ones = 0;
    for round in 0..100 {
        for _ in 0..20 {
            let _ = client.send(to_busy, b"busy", Notify::OnFailure(0));
        }
        client.send(to_quiet, b"quiet", Notify::OnFailure(0)).expect("room");
        let before = quiet_ones;
        let begun = Instant::now();
        while quiet_ones == before {
            assert!(begun.elapsed() < LIMIT, "round {round}");
            drain(&client);
            let found = wait_any(&[&busy, &quiet], Some(Duration::from_millis(1))).expect("usable");
            quiet_ones += u32::from(found.is_some_and(|(at, _)| at == 1));
        }
        drain(&busy);
    }
    assert!(wait_any::<cci::ManyThreads>(&[], None).expect("nothing to use").is_none());
}

/// A wake-up ends one wait, also one that begins later, and makes the handle readable for once.
pub fn wake_ends_a_wait(device: &Device) {
    let [endpoint, other] = [open(device), open(device)];
    let waker = endpoint.waker().expect("a descriptor");
    for _ in 0..200 {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| waker.wake());
            assert!(endpoint.wait(None).expect("usable").is_none());
            assert_eq!(thread.join().expect("no panic"), Ok(()));
        });
        waker.wake().expect("open");
        waker.wake().expect("open");
        assert!(wait_any(&[&other, &endpoint], None).expect("usable").is_none());
    }
    let handle = endpoint.handle().expect("a handle");
    let begun = Instant::now();
    // Both calls above had the handle readable as well.
    while readable(&handle, Duration::ZERO) {
        assert!(endpoint.get_event().expect("usable").is_none());
        assert!(begun.elapsed() < LIMIT, "the handle stays readable");
    }
    waker.wake().expect("open");
    assert!(readable(&handle, LIMIT));
    while readable(&handle, Duration::ZERO) {
        assert!(endpoint.get_event().expect("usable").is_none());
        assert!(begun.elapsed() < LIMIT, "the handle stays readable");
    }
    endpoint.close().expect("a close");
    assert_eq!(waker.wake(), Err(cci::Unusable::Closed));
}

/// Also a wait of an endpoint that belongs to one thread is ended by another thread.
pub fn wake_of_one_thread(device: &Device) {
    let endpoint = LocalEndpoint::open(device, &EndpointOptions::new()).expect("an endpoint");
    let waker = endpoint.waker().expect("a descriptor");
    for _ in 0..200 {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| waker.wake());
            assert!(endpoint.wait(None).expect("usable").is_none());
            assert_eq!(thread.join().expect("no panic"), Ok(()));
        });
    }
}

/// A request tells who sent it, by the word of the system.
pub fn request_tells_its_peer(device: &Device) {
    let (server, client) = (open(device), open(device));
    client.connect(&cci::Connect::to(server.uri())).expect("a request");
    let world = World::new([&client, &server]);
    let event = world.next(1, EventKind::ConnectRequest);
    let peer = event.request().expect("a request").peer().expect("the client is there");
    let carrier = super::carrier(device);
    if carrier == "sm" {
        assert_eq!(peer.user, Some(rustix::process::geteuid().as_raw()));
        assert_eq!((peer.process, peer.address.as_str()), (Some(std::process::id()), ""));
    } else {
        assert_eq!((peer.user, peer.process), (None, None));
        let of_way = peer.address.replace(&format!("{carrier}://"), &format!("{carrier}="));
        let is_of_client = |part: &str| part == peer.address || part == of_way;
        assert!(client.uri().split(',').any(is_of_client), "{} of {}", peer.address, client.uri());
    }
    assert_eq!(peer.key, None);
    event.into_request().expect("a request").reject().expect("a refusal");
}
