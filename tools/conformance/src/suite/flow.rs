//! Buffers that run out, at either side, and timeouts.

use crate::world::{LIMIT, World, drain, most, open, open_with, pattern};
use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connection, Device, Endpoint, EventKind, Failure, Notify, PollError, SendError};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// Sends numbered messages until there is no buffer; how many were accepted.
fn fill(endpoint: &Endpoint, connection: Connection, first: u64, len: usize) -> u64 {
    for number in first..first + 1_000_000 {
        match endpoint.send(connection, &pattern(number, len), number) {
            Ok(()) => {}
            Err(SendError::NoBuffers) => return number - first,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("a million messages without a receiver: memory grows");
}

/// A sender without a receiver is told ENOBUFS, nothing is lost, and it can go on.
pub fn sender_without_buffers(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let mut first = 0;
    for len in [8, 300, most(connection)] {
        let len = len.min(most(connection));
        let accepted = fill(&a, connection, first, len);
        assert!(accepted > 0);
        for number in first..first + accepted {
            assert_eq!(world.message(1), pattern(number, len));
            assert_eq!(world.sent(0), number);
        }
        first += accepted;
    }
    assert_eq!(SendError::NoBuffers.status(), cci::Status::NoBufs);
    a.send(connection, b"on", first).expect("buffers are free again");
    assert_eq!((world.message(1).as_slice(), world.sent(0)), (&b"on"[..], first));
}

/// A receiver that holds every buffer is told ENOBUFS; each event that it returns brings one more,
/// in order.
pub fn receiver_without_buffers(device: &Device) {
    const BUFFERS: usize = 16;
    let (a, b) = (open(device), open_with(device, |options| options.recv_buffers = 16));
    let connection = World::new([&a, &b]).connect(0, 1, RO).0;
    for number in 0..200 {
        a.send(connection, &pattern(number, 80), Notify::OnFailure(number)).expect("a send");
    }
    let begun = Instant::now();
    let mut events = std::collections::VecDeque::new();
    let mut told = false;
    let mut next = 0;
    while next < 200 {
        assert!(begun.elapsed() < LIMIT, "stuck after {next} messages with {} held", events.len());
        drain(&a);
        match b.get_event() {
            Ok(Some(event)) => {
                assert_eq!(event.received().expect("a message").to_vec(), pattern(next, 80));
                next += 1;
                events.push_back(event);
                assert!(events.len() <= BUFFERS, "more events than buffers");
            }
            Ok(None) => {}
            Err(error) => {
                assert_eq!((error, events.len()), (PollError::NoBuffers, BUFFERS));
                told = true;
                let event = events.pop_front().expect("all are held");
                drop(event);
            }
        }
    }
    assert!(told, "never told that every buffer is held");
    assert_eq!(PollError::NoBuffers.status(), cci::Status::NoBufs);
}

/// Takes the completions of all sends: a run of successes, then failures, each exactly once. The
/// failures.
fn failures(world: &World<'_>, count: u64) -> Vec<Failure> {
    let mut failures = Vec::new();
    for context in 0..count {
        let event = world.next(0, EventKind::Send);
        assert_eq!(event.context(), context);
        match event.outcome() {
            Ok(()) => assert!(failures.is_empty(), "a success after a failure"),
            Err(failure) => failures.push(failure),
        }
    }
    failures
}

/// A receiver that never returns events: its sender sees RNR after the send timeout, the connection
/// is broken, and what the receiver holds is bounded.
pub fn receiver_that_never_returns(device: &Device) {
    let (a, b) = (open(device), open_with(device, |options| options.recv_buffers = 32));
    // Long enough that the receiver has said so by then, however busy the machine.
    a.set_send_timeout(Duration::from_secs(1)).expect("an option");
    let (world, connection, _) = World::joined([&a, &b], RO);
    // The world keeps what it gets: the receiver returns nothing.
    let accepted = fill(&a, connection, 0, 100);
    let failures = failures(&world, accepted);
    assert_eq!(failures.first(), Some(&Failure::NotReady));
    assert!(
        failures.iter().all(|failure| matches!(failure, Failure::NotReady | Failure::Disconnected)),
        "{failures:?}"
    );
    assert_eq!(Failure::NotReady.status(), cci::Status::Rnr);
    assert_eq!(a.send(connection, b"late", 0), Err(SendError::Disconnected));
    assert!(world.waiting(1, EventKind::Recv) <= 32);
    assert_eq!(drain(&a), 0, "more events than sends");
    a.disconnect(connection).expect("a broken connection is still to be disconnected");
}

/// A peer that does not answer at all: ETIMEDOUT after the send timeout.
pub fn peer_that_never_polls(device: &Device) {
    const TIMEOUT: Duration = Duration::from_millis(200);
    let (a, b) = (open_with(device, |options| options.send_buffers = 256), open(device));
    a.set_send_timeout(TIMEOUT).expect("an option");
    let connection = World::new([&a, &b]).connect(0, 1, RO).0;
    let begun = Instant::now();
    let mut accepted = 0;
    loop {
        match a.send(connection, &pattern(accepted, most(connection)), accepted) {
            Ok(()) => accepted += 1,
            Err(SendError::NoBuffers) => break,
            // The machine is so busy that the time of the first was over before the last.
            Err(SendError::Disconnected) if begun.elapsed() >= TIMEOUT => break,
            Err(error) => panic!("{error}"),
        }
    }
    let failures = failures(&World::new([&a]), accepted);
    assert_eq!(failures.first(), Some(&Failure::TimedOut));
    assert!(begun.elapsed() >= TIMEOUT, "early: {:?}", begun.elapsed());
    assert_eq!(a.send(connection, b"late", 0), Err(SendError::Disconnected));
    assert_eq!(a.send_flags(connection, b"late", 0, Flags::BLOCKING), Err(SendError::Disconnected.into()));
}

/// Who holds every receive buffer can still send and see it complete.
pub fn sends_while_holding_everything(device: &Device) {
    let (a, b) = (open(device), open_with(device, |options| options.recv_buffers = 8));
    let (world, to_b, to_a) = World::joined([&a, &b], RO);
    let mut context = 0;
    while a.send(to_b, &pattern(context, 60), context).is_ok() && context < 1000 {
        context += 1;
    }
    world.until("all buffers to be held", || world.waiting(1, EventKind::Recv) == 8);
    for number in 0..100u64 {
        b.send(to_a, &number.to_ne_bytes(), number).expect("a send");
        assert_eq!(world.message(0), number.to_ne_bytes());
        assert_eq!(world.sent(1), number);
    }
    for number in 0..context {
        assert_eq!(world.message(1), pattern(number, 60));
    }
}

/// A connection that breaks by its send timeout takes no other connection along.
pub fn send_timeout_spares_others(device: &Device) {
    let (a, deaf, b) = (open(device), open(device), open(device));
    let (world, good, _) = World::joined([&a, &b], RO);
    let bad = World::new([&a, &deaf]).connect(0, 1, RO).0;
    a.set_option(bad, cci::ConnectionOption::SendTimeout, Duration::from_millis(100)).expect("an option");
    let mut posted = 0;
    while posted < 1000 && a.send(bad, &[1; 100], 1).is_ok() {
        posted += 1;
    }
    let (mut ended, mut failed, mut round) = (0, 0, 0u64);
    let begun = Instant::now();
    while ended < posted || round < 1000 {
        assert!(begun.elapsed() < LIMIT, "{ended} of {posted} sends ended while the other connection was busy");
        a.send(good, &round.to_ne_bytes(), 2).expect("a send on the other connection");
        assert_eq!(world.message(1), round.to_ne_bytes());
        round += 1;
        while world.waiting(0, EventKind::Send) > 0 {
            let event = world.next(0, EventKind::Send);
            if event.context() == 1 {
                ended += 1;
                failed += u32::from(event.outcome().is_err());
            } else {
                assert_eq!(event.outcome(), Ok(()));
            }
        }
    }
    assert!(failed > 0, "{posted} sends to a peer that never polls all succeeded");
}

/// Who holds what one peer sends hears from others once it returns something: the flood does not
/// take every buffer that becomes free.
pub fn flood_leaves_room(device: &Device) {
    let (flooder, other, b) = (open(device), open(device), open_with(device, |options| options.recv_buffers = 64));
    let world = World::new([&flooder, &other, &b]);
    let (flood, _) = world.connect(0, 2, RO);
    let (quiet, _) = world.connect(1, 2, RO);
    let sent = fill(&flooder, flood, 0, 60);
    assert!(sent > 64, "only {sent} messages accepted");
    world.until("the flood to be received", || world.waiting(2, EventKind::Recv) >= 48);
    (0..1000).for_each(|_| world.step());
    other.send(quiet, b"me too", 0).expect("a send");
    (0..1000).for_each(|_| world.step());
    let mut returned = 0;
    while world.next(2, EventKind::Recv).received().expect("a message").to_vec() != b"me too" {
        returned += 1;
        assert!(returned <= 2 * 64, "the flood takes every buffer that becomes free");
        (0..20).for_each(|_| world.step());
    }
}

/// A program that holds every receive buffer, full of what one peer has sent, goes on to get
/// connection requests: newcomers connect, more of them than one.
pub fn newcomers_connect_where_all_buffers_are_held(device: &Device) {
    const BUFFERS: usize = 32;
    let (flooder, other, b) =
        (open(device), open(device), open_with(device, |options| options.recv_buffers = BUFFERS as u32));
    let world = World::new([&flooder, &other, &b]);
    let (flood, _) = world.connect(0, 2, RO);
    let sent = fill(&flooder, flood, 0, 60);
    assert!(sent > BUFFERS as u64, "only {sent} messages accepted");
    world.until("the program to hold every buffer", || world.waiting(2, EventKind::Recv) >= BUFFERS);
    let newcomers: Vec<_> = (0..4).map(|_| world.connect(1, 2, RO)).collect();
    assert_eq!(world.waiting(2, EventKind::Recv), BUFFERS, "requests have buffers beside those of messages");
    let (connection, _) = newcomers[3];
    other.send(connection, b"me too", 0).expect("a send");
    while world.next(2, EventKind::Recv).received().expect("a message").to_vec() != b"me too" {}
}
