//! Disconnect: what is delivered, and how open operations end.

use crate::world::{LIMIT, World, drain, most, open, open_with, pattern};
use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connection, Device, Endpoint, EventKind, Failure, Notify, OptionError, SendError};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// Sends numbered messages until there is no buffer or `most` are accepted; how many were.
fn send_many(endpoint: &Endpoint, connection: Connection, most: u64, len: usize) -> u64 {
    for number in 0..most {
        match endpoint.send(connection, &pattern(number, len), number) {
            Ok(()) => {}
            Err(SendError::NoBuffers) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    most
}

/// Takes the completions of `count` sends, in order, each exactly once; how many succeeded before
/// the first failure.
fn completions(world: &World<'_>, at: usize, count: u64) -> u64 {
    let mut succeeded = 0;
    for context in 0..count {
        let event = world.next(at, EventKind::Send);
        assert_eq!(event.context(), context, "RO completes in order");
        match event.outcome() {
            Ok(()) => {
                assert_eq!(succeeded, context, "a success after a failure");
                succeeded += 1;
            }
            Err(failure) => assert_eq!(failure, Failure::Disconnected),
        }
    }
    succeeded
}

/// Waits for the success of `count` sends at the first endpoint: at first with it alone, so that
/// where sends complete without their receiver's help nothing has been received yet.
fn published(world: &World<'_>, count: u64) {
    (0..2 * count).for_each(|_| {
        world.poll(0);
    });
    for _ in 0..count {
        world.sent(0);
    }
}

/// Messages whose SEND event succeeded arrive, though their sender disconnects at once.
pub fn published_is_delivered(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    for attribute in [RO, Attribute::ReliableUnordered] {
        let (connection, at_b) = world.connect(0, 1, attribute);
        let accepted = send_many(&a, connection, 40, 40);
        published(&world, accepted);
        a.disconnect(connection).expect("a disconnect");
        for number in 0..accepted {
            assert_eq!(world.message(1), pattern(number, 40));
        }
        b.disconnect(at_b).expect("a disconnect");
    }
}

/// The same when the sender closes its endpoint.
pub fn published_is_delivered_after_close(device: &Device) {
    let b = open(device);
    for len in [8, 1000] {
        let a = open(device);
        let mut messages: Vec<_>;
        let (accepted, at_b) = {
            let (world, connection, at_b) = World::joined([&a, &b], RO);
            let len = len.min(most(connection));
            let accepted = send_many(&a, connection, 4, len);
            published(&world, accepted);
            messages = (0..world.waiting(1, EventKind::Recv)).map(|_| world.message(1)).collect();
            (accepted, at_b)
        };
        a.close().expect("a close");
        let world = World::new([&b]);
        while messages.len() < usize::try_from(accepted).expect("small") {
            messages.push(world.message(0));
        }
        for (number, message) in (0..).zip(messages) {
            assert_eq!(message, pattern(number, len));
        }
        b.disconnect(at_b).expect("a disconnect");
    }
}

/// Sends that are open at the disconnect end with one event each; what was reported as delivered
/// arrives.
pub fn open_operations_end_once(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let len = most(connection);
    // Nobody receives meanwhile, so most of these stay open.
    let accepted = send_many(&a, connection, 2000, len);
    assert!(accepted > 0);
    a.disconnect(connection).expect("a disconnect");
    let only_a = World::new([&a]);
    let succeeded = completions(&only_a, 0, accepted);
    assert!(succeeded < accepted, "nothing was open: {accepted} sends without a receiver");
    assert_eq!(drain(&a), 0, "more events than sends");
    for number in 0..succeeded {
        assert_eq!(world.message(1), pattern(number, len));
    }
}

/// Sends that are open when the peer's endpoint is closed end with one event each.
pub fn open_operations_end_when_peer_closes(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (connection, accepted) = {
        let (_world, connection, _) = World::joined([&a, &b], RO);
        (connection, send_many(&a, connection, 2000, most(connection)))
    };
    b.close().expect("a close");
    let world = World::new([&a]);
    assert!(completions(&world, 0, accepted) < accepted);
    assert_eq!(drain(&a), 0, "more events than sends");
    assert_eq!(a.send(connection, b"late", 1), Err(SendError::Disconnected));
}

/// After a disconnect at either side sends are refused, or fail with Disconnected.
pub fn later_sends_are_refused(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    a.disconnect(connection).expect("a disconnect");
    for flags in [Flags::NONE, Flags::SILENT, Flags::BLOCKING] {
        assert_eq!(a.send_flags(connection, b"late", 1, flags), Err(SendError::Disconnected.into()));
    }
    let mut posted = 0;
    world.until("the peer to learn of it", || match b.send(at_b, b"late", 9) {
        Ok(()) => {
            posted += 1;
            false
        }
        Err(SendError::NoBuffers) => false,
        Err(error) => {
            assert_eq!(error, SendError::Disconnected);
            true
        }
    });
    for _ in 0..posted {
        assert_eq!(world.next(1, EventKind::Send).context(), 9);
    }
    assert_eq!(drain(&a), 0, "a closed connection receives nothing");
}

/// A second disconnect is refused.
pub fn twice(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    a.disconnect(connection).expect("a disconnect");
    assert_eq!(a.disconnect(connection), Err(OptionError::Disconnected));
    b.disconnect(at_b).expect("the other side is its own");
    assert_eq!(b.disconnect(at_b), Err(OptionError::Disconnected));
    world.connect(0, 1, RO);
    assert_eq!(a.disconnect(connection), Err(OptionError::Disconnected), "a later connection is another one");
}

/// Who asked for it gets one event when a peer disconnects, after everything that the peer had
/// published.
pub fn disconnect_event(device: &Device) {
    let (a, b) = (open(device), open_with(device, |options| options.disconnect_events = true));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    for number in 0..20 {
        a.send(connection, &pattern(number, 100), number).expect("a send");
        assert_eq!(world.sent(0), number);
    }
    a.disconnect(connection).expect("a disconnect");
    for number in 0..20 {
        let event = world.first(1);
        assert_eq!(event.kind(), EventKind::Recv, "message {number} comes before the disconnect");
        assert_eq!(event.received().expect("a message").to_vec(), pattern(number, 100));
    }
    let event = world.first(1);
    assert_eq!((event.kind(), event.connection()), (EventKind::Disconnect, Some(at_b)));
    drop(event);
    b.disconnect(at_b).expect("it is still to be disconnected here");
    world.connect(0, 1, RO);
    assert_eq!(drain(&b), 0, "one event");
    drop(world);
    a.close().expect("a close");
    let world = World::new([&b]);
    assert_eq!(world.first(0).kind(), EventKind::Disconnect, "closing the endpoint ends its connections");
}

/// Who did not ask gets none.
pub fn no_disconnect_event(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, first, _) = World::joined([&a, &b], RO);
    let (second, _) = world.connect(0, 1, RO);
    a.disconnect(first).expect("a disconnect");
    a.send(second, b"after it", Notify::OnFailure(0)).expect("a send");
    assert_eq!(world.first(1).kind(), EventKind::Recv);
    for _ in 0..1000 {
        world.step();
    }
    assert_eq!(world.waiting(1, EventKind::Disconnect), 0);
}

/// A disconnect leaves the other connections of the same two endpoints alone.
pub fn other_connections_live(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    let pairs: Vec<_> = (0..10).map(|_| world.connect(0, 1, RO)).collect();
    for (gone, (connection, _)) in pairs.iter().enumerate() {
        a.disconnect(*connection).expect("a disconnect");
        for (to_b, to_a) in &pairs[gone + 1..] {
            a.send(*to_b, b"there", Notify::OnFailure(0)).expect("a send");
            assert_eq!(world.message(1), b"there");
            b.send(*to_a, b"back", Notify::OnFailure(0)).expect("a send");
            assert_eq!(world.message(0), b"back");
        }
    }
}

/// With a keepalive set its event comes at once when the peer disconnects, long before its time.
pub fn keepalive_comes_at_once(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    let hour = Duration::from_secs(3600);
    b.set_option(at_b, cci::ConnectionOption::KeepaliveTimeout, hour).expect("an option");
    let begun = Instant::now();
    a.disconnect(connection).expect("a disconnect");
    let event = world.next(1, EventKind::KeepaliveTimedOut);
    assert_eq!(event.connection(), Some(at_b));
    assert!(begun.elapsed() < LIMIT);
}

/// A client that has its answer and disconnects, or closes its endpoint, leaves a server whose SEND
/// event says so.
pub fn answered_client_leaves(device: &Device) {
    let server = open(device);
    for round in 0..20 {
        let client = open(device);
        let context = {
            let world = World::new([&server, &client]);
            let (at_client, at_server) = world.connect(1, 0, RO);
            client.send(at_client, b"request", Notify::OnFailure(0)).expect("a send");
            assert_eq!(world.message(0), b"request");
            server.send(at_server, b"answer", round).expect("a send");
            assert_eq!(world.message(1), b"answer");
            if round % 2 == 0 {
                client.disconnect(at_client).expect("a disconnect");
            }
            // Where a SEND event needs no acknowledgement it is here already.
            let has_come = round % 2 == 0 || world.waiting(0, EventKind::Send) > 0;
            has_come.then(|| world.sent(0))
        };
        client.close().expect("a close");
        assert_eq!(context.unwrap_or_else(|| World::new([&server]).sent(0)), round);
    }
}
