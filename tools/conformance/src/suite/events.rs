//! Events: what they carry, and how long they live.

use crate::sys::RawEvent;
use crate::world::{LIMIT, World, drain, most, open, pattern};
use cci::{Attribute, Connect, Device, Event, EventKind, Failure, Notify, RequestError};

const RO: Attribute = Attribute::ReliableOrdered;

/// Receives `count` patterned messages of mixed lengths at the last endpoint of a world and keeps
/// their events.
fn held<'e>(world: &World<'e>, from: &cci::Endpoint, connection: cci::Connection, count: u64) -> Vec<Event<'e>> {
    (0..count)
        .map(|number| {
            from.send(connection, &pattern(number, length(number, most(connection))), Notify::OnFailure(number))
                .expect("a send");
            world.next(world.last(), EventKind::Recv)
        })
        .collect()
}

/// The lengths of these messages, up to the connection's largest.
fn length(number: u64, most: usize) -> usize {
    [8, 56, 57, 64, 200, most / 2, most][usize::try_from(number % 7).expect("small")].min(most)
}

fn assert_held(events: &[Event<'_>], most: usize) {
    for (number, event) in events.iter().enumerate() {
        let expected = pattern(number as u64, length(number as u64, most));
        assert_eq!(event.received().expect("a message").to_vec(), expected, "event {number}");
    }
}

/// An idle endpoint has nothing to report.
pub fn nothing_to_report(device: &Device) {
    let endpoint = open(device);
    for _ in 0..1000 {
        assert!(endpoint.get_event().expect("usable").is_none());
    }
}

/// Events are returned in any order, and the endpoint goes on.
pub fn returned_in_any_order(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..50 {
        let mut events = held(&world, &a, connection, 40);
        assert_held(&events, most(connection));
        random.shuffle(&mut events);
        for event in events {
            drop(event);
        }
    }
}

/// Events are returned by other threads than the one that got them.
pub fn returned_from_another_thread(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    std::thread::scope(|scope| {
        let (to_other, other) = std::sync::mpsc::channel::<(u64, Event<'_>)>();
        let thread = scope.spawn(move || {
            let mut count = 0u64;
            for (number, event) in other {
                assert_eq!(event.received().expect("a message").to_vec(), pattern(number, 300));
                drop(event);
                count += 1;
            }
            count
        });
        // More than there are slots, so that the endpoint depends on what the other thread returns.
        let count = u64::from(b.recv_buffers().expect("usable")) + 2000;
        for number in 0..count {
            a.send(connection, &pattern(number, 300), Notify::OnFailure(number)).expect("a send");
            to_other.send((number, world.next(1, EventKind::Recv))).expect("the thread lives");
        }
        drop(to_other);
        assert_eq!(thread.join().expect("the thread"), count);
    });
}

/// Events keep their payload while 10,000 later ones come and go.
pub fn kept_after_later_events(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let events = held(&world, &a, connection, 28);
    let most = most(connection);
    for number in 0..10_000u64 {
        let len = usize::try_from(number % 200).expect("small").min(most);
        a.send(connection, &vec![0xee; len], Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(1).len(), len);
    }
    assert_held(&events, most);
}

/// Events and their connection stay readable after the disconnect at either side, and after the
/// peer's endpoint has gone.
pub fn kept_after_disconnect(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (connection, at_b) = World::new([&a, &b]).connect(0, 1, RO);
    let most = most(connection);
    let events = held(&World::new([&b]), &a, connection, 28);
    a.disconnect(connection).expect("a disconnect");
    drain(&b);
    assert_held(&events, most);
    b.disconnect(at_b).expect("a disconnect");
    assert_held(&events, most);
    a.close().expect("a close");
    drain(&b);
    for event in &events {
        let named = event.connection().expect("named until the event is returned");
        assert_eq!(named, at_b);
        // Over a link it ends once its peer knows; until then it has its own properties, and later
        // none.
        assert!(named.context().is_none_or(|context| context == 2) && named.attribute().is_none_or(|own| own == RO));
    }
    assert_held(&events, most);
    let last = open(device);
    let (world, again, _) = World::joined([&last, &b], RO);
    last.send(again, b"others go on", Notify::OnFailure(0)).expect("a send");
    assert_eq!(world.message(1), b"others go on");
    assert_held(&events, most);
}

/// Returning an event twice is refused.
pub fn returned_twice(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    a.send(connection, b"x", 0).expect("a send");
    for event in [world.next(1, EventKind::Recv), world.next(0, EventKind::Send)] {
        let event = RawEvent::of(event);
        assert_eq!(event.give_back(), Ok(()));
        assert_eq!(event.give_back(), Err(RequestError::NotBorrowed));
    }
    a.send(connection, b"goes on", 0).expect("a send");
    assert_eq!(world.message(1), b"goes on");
}

/// A request's payload is readable until the request is returned, also after the answer.
pub fn request_payload_is_kept(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    for len in [0, 8, 56, 57, 1024] {
        client
            .connect(&Connect::to(server.uri()).payload(&pattern(1, len)).context(1).timeout(LIMIT))
            .expect("a connect");
        let event = RawEvent::of(world.next(1, EventKind::ConnectRequest));
        event.accept(1).expect("an accept");
        let connection = world.next(0, EventKind::Connect).connection().expect("one");
        for _ in 0..100 {
            client.send(connection, &[0xee; 56], Notify::OnFailure(0)).expect("a send");
            assert_eq!(world.message(1), [0xee; 56]);
        }
        client.disconnect(connection).expect("a disconnect");
        assert_eq!(event.request_payload(), pattern(1, len));
        event.give_back().expect("answered");
    }
}

/// Each kind of event has its own fields and no others.
pub fn every_field(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    a.connect(&Connect::to(b.uri()).payload(b"p").context(41).timeout(LIMIT)).expect("a connect");
    let request = world.next(1, EventKind::ConnectRequest);
    assert!(request.received().is_none() && request.connection().is_none() && request.context() == 0);
    request.into_request().expect("a request").accept(42).expect("an accept");
    let (connect, accept) = (world.next(0, EventKind::Connect), world.next(1, EventKind::Accept));
    for event in [&connect, &accept] {
        assert!(event.received().is_none() && event.request().is_none() && event.connection().is_some());
    }
    a.send(connect.connection().expect("one"), b"m", 43).expect("a send");
    let (sent, received) = (world.next(0, EventKind::Send), world.next(1, EventKind::Recv));
    assert_eq!((sent.connection(), sent.context()), (connect.connection(), 43));
    assert_eq!((received.connection(), received.outcome()), (accept.connection(), Ok::<(), Failure>(())));
    let message = received.received().expect("a message");
    let mut short = [0; 0];
    assert_eq!((message.len(), message.copy_to(&mut short)), (1, 0));
}
