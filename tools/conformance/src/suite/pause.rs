//! Connections whose messages the program does not want now: their peers wait, and nobody else.

use super::rma::Ranges;
use crate::memory::Origin;
use crate::world::{LIMIT, World, drain, most, open, open_with, pattern, readable};
use cci::{
    Attribute, Connection, Device, Endpoint, EventKind, HeapBytes, Memory, Notify, PauseError, Rights, SendError,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;
const RU: Attribute = Attribute::ReliableUnordered;
/// Messages that may arrive behind a pause: what was granted, or under way.
const UNDER_WAY: usize = 512;

/// Sends numbered messages until there is no buffer, and steps in between; how many were accepted.
fn flood(world: &World<'_>, at: usize, connection: Connection, len: usize) -> u64 {
    let mut number = 0;
    let mut refused = 0;
    while refused < 2000 {
        match world.endpoint(at).send(connection, &pattern(number, len), Notify::OnFailure(number)) {
            Ok(()) => (number, refused) = (number + 1, 0),
            Err(SendError::NoBuffers) => {
                refused += 1;
                world.step();
            }
            Err(error) => panic!("{error}"),
        }
        assert!(number < 1_000_000, "a paused receiver takes what it is sent");
    }
    number
}

/// A paused connection delivers nothing but what was under way. After the resume everything comes,
/// in order on an ordered connection, and exactly once.
pub fn nothing_is_lost(device: &Device) {
    for (attribute, len) in [(RO, 8), (RU, 40), (RO, 4000)] {
        let (a, b) = (open(device), open(device));
        let (world, connection, at_b) = World::joined([&a, &b], attribute);
        let len = len.min(most(connection));
        b.pause(at_b).expect("a pause");
        let sent = flood(&world, 0, connection, len);
        let early = world.waiting(1, EventKind::Recv);
        assert!(early <= UNDER_WAY, "{early} of {sent} messages in spite of the pause");
        assert!(sent > early as u64, "nothing waits: {sent} messages");
        b.resume(at_b).expect("a resume");
        let mut messages: Vec<_> = (0..sent).map(|_| world.message(1)).collect();
        let mut expected: Vec<_> = (0..sent).map(|number| pattern(number, len)).collect();
        if attribute == RU {
            messages.sort_unstable();
            expected.sort_unstable();
        }
        assert!(messages == expected, "{attribute:?}, {len} bytes");
        // Both directions go on.
        a.send(connection, b"on", Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(1), b"on");
        b.send(at_b, b"back", Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(0), b"back");
    }
}

/// A flood that nobody reads takes no receive buffer from other peers: they go on for as long as
/// they like.
pub fn others_go_on(device: &Device) {
    let (flooder, other, b) = (open(device), open(device), open_with(device, |options| options.recv_buffers = 64));
    let world = World::new([&flooder, &other, &b]);
    let (flood_of, at_b) = world.connect(0, 2, RO);
    let (quiet, quiet_at_b) = world.connect(1, 2, RO);
    b.pause(at_b).expect("a pause");
    let sent = flood(&world, 0, flood_of, 60);
    let early = world.waiting(2, EventKind::Recv);
    assert!(early < 64, "a paused peer has all {early} buffers");
    for _ in 0..early {
        drop(world.message(2));
    }
    for number in 0..2000 {
        other.send(quiet, &pattern(number, 60), Notify::OnFailure(0)).expect("a send");
        let event = world.next(2, EventKind::Recv);
        let message = event.received().expect("a message");
        assert_eq!((message.connection(), message.to_vec()), (Some(quiet_at_b), pattern(number, 60)));
    }
    b.resume(at_b).expect("a resume");
    for number in early as u64..sent {
        assert_eq!(world.message(2), pattern(number, 60));
    }
}

/// Pausing and resuming at any moment of a stream changes nothing of it.
pub fn at_any_moment(device: &Device) {
    const COUNT: u64 = 3000;
    let (a, b) = (open(device), open_with(device, |options| options.recv_buffers = 32));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    let mut random = fastrand::Rng::with_seed(7);
    let (mut sent, mut received) = (0, 0);
    let mut is_paused = false;
    let begun = Instant::now();
    while received < COUNT {
        assert!(begun.elapsed() < LIMIT, "stuck after {received} of {sent} messages, paused: {is_paused}");
        let len = |number: u64| if number.is_multiple_of(3) { 700 } else { number as usize % 50 };
        if sent < COUNT && a.send(connection, &pattern(sent, len(sent)), Notify::OnFailure(0)).is_ok() {
            sent += 1;
        }
        if random.u32(0..20) == 0 {
            is_paused = random.bool();
            let changed = if is_paused { b.pause(at_b) } else { b.resume(at_b) };
            changed.expect("a pause or a resume");
        }
        world.step();
        while world.waiting(1, EventKind::Recv) > 0 {
            assert_eq!(world.message(1), pattern(received, len(received)));
            received += 1;
        }
    }
}

/// While a peer's messages wait, this side sends to it, and both reach the other's memory.
pub fn this_side_goes_on(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    let of_b = Ranges::new(&b, &a, [Origin::Library; 2], 4096, Rights::READ_WRITE);
    b.pause(at_b).expect("a pause");
    flood(&world, 0, connection, 100);
    for number in 0..100 {
        b.send(at_b, &pattern(number, 100), number).expect("a send");
        assert_eq!(world.message(0), pattern(number, 100));
        assert_eq!(world.sent(1), number);
    }
    b.write(at_b, &of_b.rma(0, 0, 4096), 1).expect("a write");
    assert_eq!(world.sent(1), 1);
    b.read(at_b, &of_b.rma(0, 0, 4096), 2).expect("a read");
    assert_eq!(world.sent(1), 2);
}

/// The end of a peer's endpoint is told while its messages wait.
pub fn death_is_told(device: &Device) {
    let (a, b) = (open(device), open_with(device, |options| options.disconnect_events = true));
    let at_b = {
        let (world, connection, at_b) = World::joined([&a, &b], RO);
        b.pause(at_b).expect("a pause");
        flood(&world, 0, connection, 100);
        at_b
    };
    a.close().expect("a close");
    let world = World::new([&b]);
    let event = loop {
        let event = world.first(0);
        if event.kind() != EventKind::Recv {
            break event;
        }
    };
    assert_eq!((event.kind(), event.connection()), (EventKind::Disconnect, Some(at_b)));
    assert_eq!(b.resume(at_b), Err(PauseError::Disconnected));
    b.disconnect(at_b).expect("it is still to be disconnected here");
}

/// A paused connection is disconnected as any other, and its successor is not paused.
pub fn ends_with_the_connection(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    for number in 0..20 {
        let (connection, at_b) = world.connect(0, 1, RO);
        a.send(connection, &pattern(number, 30), Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(1), pattern(number, 30));
        b.pause(at_b).expect("a pause");
        if number % 2 == 0 {
            a.send(connection, &pattern(number, 30), Notify::OnFailure(0)).expect("a send");
            (0..50).for_each(|_| world.step());
        }
        b.disconnect(at_b).expect("a disconnect");
        assert_eq!(b.resume(at_b), Err(PauseError::Disconnected));
        // The peer may be told late; it need not be told at all.
        let _ = a.disconnect(connection);
        while world.waiting(1, EventKind::Recv) > 0 {
            drop(world.message(1));
        }
    }
}

/// What cannot be paused is refused, and a second call changes nothing.
pub fn refused(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    assert_eq!(a.pause(at_b), Err(PauseError::Disconnected), "a connection of another endpoint");
    b.resume(at_b).expect("it was not paused");
    b.pause(at_b).expect("a pause");
    b.pause(at_b).expect("a second one");
    b.resume(at_b).expect("one resume for both");
    a.send(connection, b"on", Notify::OnFailure(0)).expect("a send");
    assert_eq!(world.message(1), b"on");
    let (_, unreliable) = world.connect(0, 1, Attribute::Unreliable);
    assert_eq!((b.pause(unreliable), b.resume(unreliable)), (Err(PauseError::Unreliable), Err(PauseError::Unreliable)));
    b.disconnect(at_b).expect("a disconnect");
    assert_eq!((b.pause(at_b), b.resume(at_b)), (Err(PauseError::Disconnected), Err(PauseError::Disconnected)));
}

/// A program that sleeps is left asleep by a peer that waits, and woken by others and by a resume.
pub fn sleepers(device: &Device) {
    let (a, c, b) = (open(device), open(device), open(device));
    let handle = b.handle().expect("a handle");
    let ((flood_of, at_b), (quiet, _)) = {
        let world = World::new([&a, &c, &b]);
        let connections = (world.connect(0, 2, RO), world.connect(1, 2, RO));
        b.pause(connections.0.1).expect("a pause");
        flood(&world, 0, connections.0.0, 60);
        connections
    };
    let settle = || {
        let begun = Instant::now();
        // What comes again is acknowledged again, so that it becomes quiet now and then only.
        while readable(&handle, Duration::ZERO) {
            assert!(begun.elapsed() < LIMIT, "a peer that waits keeps the handle readable");
            drain(&b);
            drain(&a);
            drain(&c);
        }
    };
    settle();
    c.send(quiet, b"others", Notify::OnFailure(0)).expect("a send");
    let deadline = Instant::now() + LIMIT;
    while !take(&b, b"others") {
        assert!(Instant::now() < deadline && readable(&handle, LIMIT), "others are not heard");
        drain(&c);
    }
    settle();
    b.resume(at_b).expect("a resume");
    let mut got = 0;
    while got < 100 {
        assert!(Instant::now() < deadline, "asleep after {got} messages");
        // The peer may need calls to go on.
        drain(&a);
        if readable(&handle, Duration::from_millis(10)) {
            got += drain(&b);
        }
    }
    let _ = flood_of;
}

/// Whether the next event is this message.
fn take(endpoint: &Endpoint, bytes: &[u8]) -> bool {
    let event = endpoint.get_event().expect("usable");
    event.and_then(|event| Some(event.received()?.to_vec())).is_some_and(|message| message == bytes)
}

/// A large message waits as the others do.
pub fn large_messages_wait(device: &Device) {
    let (a, b) = (open(device), open(device));
    b.set_large_limit(16 << 20).expect("usable");
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    let memory = |number: u64| Memory::of_bytes(&Arc::new(HeapBytes::new(pattern(number, 300_000))));
    b.pause(at_b).expect("a pause");
    for number in 0..4 {
        a.send_large(connection, &memory(number), number).expect("a send");
    }
    (0..5000).for_each(|_| world.step());
    assert_eq!(world.waiting(1, EventKind::Recv), 0, "large messages in spite of the pause");
    b.resume(at_b).expect("a resume");
    for number in 0..4 {
        assert!(world.message(1) == pattern(number, 300_000), "message {number}");
        assert_eq!(world.sent(0), number);
    }
}
