//! Keepalive.

use crate::world::{World, open};
use cci::{Attribute, ConnectionOption, Device, EventKind};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;
const KEEPALIVE: ConnectionOption = ConnectionOption::KeepaliveTimeout;

/// A peer that never polls: one event after the time, which is then 0, and the connection goes on.
pub fn silent_peer(device: &Device) {
    let (a, b) = (open(device), open(device));
    a.set_keepalive(Duration::from_millis(100)).expect("an option");
    let (both, connection, _) = World::joined([&a, &b], RO);
    assert_eq!(a.option(connection, KEEPALIVE), Ok(Some(Duration::from_millis(100))));
    let only_a = World::new([&a]);
    let event = only_a.next(0, EventKind::KeepaliveTimedOut);
    assert_eq!(event.connection(), Some(connection));
    assert_eq!(a.option(connection, KEEPALIVE), Ok(None));
    a.send(connection, b"still there", 1).expect("a keepalive does not disconnect");
    assert_eq!((both.message(1).as_slice(), both.sent(0)), (&b"still there"[..], 1));
    let quiet = Instant::now();
    while quiet.elapsed() < Duration::from_millis(300) {
        only_a.poll(0);
    }
    assert_eq!(only_a.waiting(0, EventKind::KeepaliveTimedOut), 0, "the event comes once");
}

/// The event of a silent peer does not come long before its time.
pub fn silent_for_its_time(device: &Device) {
    let (a, b) = (open(device), open(device));
    a.set_keepalive(Duration::from_millis(100)).expect("an option");
    World::new([&a, &b]).connect(0, 1, RO);
    let begun = Instant::now();
    World::new([&a]).next(0, EventKind::KeepaliveTimedOut);
    assert!(begun.elapsed() >= Duration::from_millis(50), "after {:?}", begun.elapsed());
}

/// A peer that polls but sends nothing is alive: no event.
pub fn polling_peer(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    a.set_option(connection, KEEPALIVE, Duration::from_millis(200)).expect("an option");
    b.set_option(at_b, KEEPALIVE, Duration::from_millis(200)).expect("an option");
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    while begun.elapsed() < Duration::from_millis(800) {
        let step = Instant::now();
        world.step();
        longest = longest.max(step.elapsed());
    }
    let events = world.waiting(0, EventKind::KeepaliveTimedOut) + world.waiting(1, EventKind::KeepaliveTimedOut);
    // A machine that holds this thread up for the keepalive time makes the peer silent indeed.
    assert!(events == 0 || longest > Duration::from_millis(80), "{events} events, longest step {longest:?}");
    let unchanged = Ok(Some(Duration::from_millis(200)));
    assert_eq!(events == 0, a.option(connection, KEEPALIVE) == unchanged && b.option(at_b, KEEPALIVE) == unchanged);
}

/// A keepalive that is set again after its event raises another one.
pub fn set_later(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let world = World::new([&a]);
    for _ in 0..3 {
        a.set_option(connection, KEEPALIVE, Duration::from_millis(50)).expect("an option");
        assert_eq!(world.next(0, EventKind::KeepaliveTimedOut).connection(), Some(connection));
        assert_eq!(a.option(connection, KEEPALIVE), Ok(None));
    }
}
