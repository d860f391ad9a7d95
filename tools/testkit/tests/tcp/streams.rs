//! Several streams of a lane of `tcp`: they join, and no order is lost although bytes of one
//! operation travel on all of them.

use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connection, Endpoint, Event, EventKind, Failure, Rights, Rma, RmaHandle};
use cci_conformance::idle::Idle;
use cci_conformance::memory::{Bytes, Origin};
use cci_conformance::{LIMIT, Peer, World, device_of, open, open_with, pattern};
use rustix::process::Signal;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

const RO: Attribute = Attribute::ReliableOrdered;
const RU: Attribute = Attribute::ReliableUnordered;
/// Bytes of an operation that goes in parts, the last of them a short one.
const LONG: u64 = (1 << 20) + 77;

fn endpoint(streams: &str) -> Endpoint {
    open(&device_of("tcp", &[("streams", streams)]))
}

/// Waits until the lane of a connection has so many streams, as its report says.
fn until_streams(world: &World<'_>, at: usize, connection: Connection, words: &str) {
    let path = || world.endpoint(at).report(connection).expect("a report").path;
    world.until(words, || path().ends_with(words));
}

/// A connection whose lane has four streams at both ends.
fn connected(world: &World<'_>, attribute: Attribute) -> (Connection, Connection) {
    let (there, back) = world.connect(0, 1, attribute);
    until_streams(world, 0, there, ", 4 streams");
    until_streams(world, 1, back, ", 4 streams");
    (there, back)
}

/// Memory of an endpoint, registered for peers.
fn memory(endpoint: &Endpoint, len: u64) -> (Bytes, RmaHandle) {
    let bytes = Origin::Program.allocate(usize::try_from(len).expect("a length"));
    let handle = endpoint.register_memory(bytes.memory(), Rights::READ_WRITE).expect("a registration");
    (bytes, handle)
}

#[test]
fn the_smaller_number_of_both_sides_counts() {
    for (client, server, there, back) in [
        ("4", "4", ", 4 streams", ", 4 streams"),
        ("8", "2", ", 2 streams", ", 2 streams"),
        ("4", "1", ", 1 of 4 streams: the peer takes one", "cubic"),
        ("1", "4", "cubic", ", 1 of 4 streams"),
    ] {
        let (a, b) = (endpoint(client), endpoint(server));
        let (world, connection, accepted) = World::joined([&a, &b], RO);
        until_streams(&world, 0, connection, there);
        until_streams(&world, 1, accepted, back);
        let ([source, target], len) = ([memory(&a, LONG), memory(&b, LONG)], LONG);
        let expected = pattern(7, usize::try_from(len).expect("a length"));
        source.0.write(0, &expected);
        a.rma(connection, &Rma::new(&source.1, &target.1, len), 1, Flags::WRITE).expect("a write");
        assert_eq!(world.sent(0), 1);
        assert!(target.0.to_vec(0, expected.len()) == expected, "{client} and {server} streams");
    }
}

/// What is posted in a round: kinds of operations in any order.
#[derive(Clone, Copy, Debug)]
enum Step {
    Message,
    /// In parts, without and with a message.
    Write,
    WriteAndMessage,
    Read,
    /// Short ones on the first stream.
    Short,
    ShortAndMessage,
    Fence,
}

const STEPS: [Step; 7] =
    [Step::Message, Step::Write, Step::WriteAndMessage, Step::Read, Step::Short, Step::ShortAndMessage, Step::Fence];

/// On RO, whatever is posted: an operation in parts ends after all before it, and before all after
/// it; and when a message has arrived, so have all bytes of operations in parts before it.
#[test]
fn nothing_overtakes_parts_on_an_ordered_connection() {
    const ROUNDS: u64 = 60;
    const IN_ROUND: u64 = 12;
    let (a, b) = (endpoint("4"), endpoint("4"));
    let world = World::new([&a, &b]);
    let (connection, _) = connected(&world, RO);
    let (source, local) = memory(&a, IN_ROUND * LONG);
    let (target, remote) = memory(&b, IN_ROUND * LONG);
    let len = usize::try_from(LONG).expect("a length");
    let mut random = fastrand::Rng::with_seed(18);
    for round in 0..ROUNDS {
        let steps: Vec<Step> = (0..IN_ROUND).map(|_| STEPS[random.usize(..STEPS.len())]).collect();
        for (number, step) in (0..).zip(&steps) {
            let (at, message) = (number * LONG, [round as u8, number as u8]);
            source.write(usize::try_from(at).expect("an offset"), &pattern(round * IN_ROUND + number, len));
            let rma = |len| Rma::new(&local, &remote, len).local_offset(at).remote_offset(at);
            let begun = match step {
                Step::Message => {
                    a.send(connection, &message, number).expect("a send");
                    continue;
                }
                Step::Write => a.rma(connection, &rma(LONG), number, Flags::WRITE),
                Step::WriteAndMessage => a.rma(connection, &rma(LONG).message(&message[..]), number, Flags::WRITE),
                Step::Read => a.rma(connection, &rma(LONG), number, Flags::READ),
                Step::Short => a.rma(connection, &rma(100), number, Flags::WRITE),
                Step::ShortAndMessage => a.rma(connection, &rma(100).message(&message[..]), number, Flags::WRITE),
                Step::Fence => a.rma(connection, &rma(100), number, Flags::WRITE | Flags::FENCE),
            };
            begun.expect("an operation");
        }
        let is_long = |step: &Step| matches!(step, Step::Write | Step::WriteAndMessage);
        let in_parts = |number: u64| is_long(&steps[number as usize]) || matches!(steps[number as usize], Step::Read);
        let has_message = |step: &Step| matches!(step, Step::Message | Step::WriteAndMessage | Step::ShortAndMessage);
        let is_there = |number: u64| {
            let (seed, at) = (round * IN_ROUND + number, number * LONG);
            target.to_vec(usize::try_from(at).expect("an offset"), len) == pattern(seed, len)
        };
        let (mut ended, mut messages) =
            (Vec::new(), (0..).zip(&steps).filter(|(_, step)| has_message(step)).map(|(at, _)| at));
        let mut next = messages.next();
        world.until("all ends and messages", || {
            while world.waiting(1, EventKind::Recv) > 0 {
                let number = next.expect("a message that was sent");
                assert_eq!(world.message(1), [round as u8, number as u8], "round {round}: {steps:?}");
                for before in (0..number + 1).filter(|at| is_long(&steps[*at as usize])) {
                    assert!(is_there(before), "message {number} has overtaken {before} of {steps:?}");
                }
                next = messages.next();
            }
            while world.waiting(0, EventKind::Send) > 0 {
                let number = world.sent(0);
                let is_early = |other: &u64| *other > number && (in_parts(*other) || in_parts(number));
                assert!(!ended.iter().any(is_early), "{number} behind {ended:?} of {steps:?}, round {round}");
                assert!(!is_long(&steps[number as usize]) || is_there(number), "{number} of {steps:?} has ended early");
                ended.push(number);
            }
            ended.len() as u64 == IN_ROUND && next.is_none()
        });
    }
}

/// Writes to disjoint ranges go together and end in order; of those to the same range the last
/// wins.
#[test]
fn writes_in_a_row_end_in_order_and_the_last_wins() {
    const COUNT: u64 = 24;
    let (a, b) = (endpoint("4"), endpoint("4"));
    let world = World::new([&a, &b]);
    let (connection, _) = connected(&world, RO);
    let (source, local) = memory(&a, COUNT * LONG);
    let (target, remote) = memory(&b, COUNT * LONG);
    let (len, all) = (usize::try_from(LONG).expect("a length"), usize::try_from(COUNT * LONG).expect("a length"));
    for round in 0..3 {
        let expected = pattern(round, all);
        source.write(0, &expected);
        for number in 0..COUNT {
            let rma = Rma::new(&local, &remote, LONG).local_offset(number * LONG).remote_offset(number * LONG);
            a.rma(connection, &rma, number, Flags::WRITE).expect("a write");
        }
        for number in 0..COUNT {
            assert_eq!(world.sent(0), number);
        }
        assert!(target.to_vec(0, all) == expected);
        for number in 0..COUNT {
            let rma = Rma::new(&local, &remote, LONG).local_offset(number * LONG);
            a.rma(connection, &rma, number, Flags::WRITE).expect("a write");
        }
        for number in 0..COUNT {
            assert_eq!(world.sent(0), number);
        }
        assert!(
            target.to_vec(0, len) == expected[all - len..],
            "the last write to a range is not the one that is there"
        );
    }
}

/// On RU reads and writes go both ways at once, with messages of theirs; each ends once, and its
/// bytes are right. With sums, too.
#[test]
fn both_ways_at_once_on_an_unordered_connection() {
    const COUNT: u64 = 40;
    for keys in [&[("streams", "4")][..], &[("streams", "4"), ("check", "always")]] {
        let device = device_of("tcp", keys);
        let (a, b) = (open(&device), open(&device));
        let world = World::new([&a, &b]);
        let (there, back) = connected(&world, RU);
        let sides = [(&a, there), (&b, back)];
        // Of each side: what it writes and what it reads, and where.
        let areas = sides.map(|(end, _)| [(); 4].map(|()| memory(end, COUNT * LONG)));
        let len = usize::try_from(COUNT * LONG).expect("a length");
        for side in 0..2 {
            areas[side][0].0.write(0, &pattern(side as u64, len));
            areas[1 - side][2].0.write(0, &pattern(10 + side as u64, len));
        }
        for number in 0..COUNT {
            for (side, (end, connection)) in sides.iter().enumerate() {
                let (own, other) = (&areas[side], &areas[1 - side]);
                let at = number * LONG;
                let write = Rma::new(&own[0].1, &other[1].1, LONG).local_offset(at).remote_offset(at);
                let read = Rma::new(&own[3].1, &other[2].1, LONG).local_offset(at).remote_offset(at);
                end.rma(*connection, &write.message(&b"written"[..]), number, Flags::WRITE).expect("a write");
                end.rma(*connection, &read, COUNT + number, Flags::READ).expect("a read");
            }
        }
        for side in 0..2 {
            let mut ended: Vec<u64> = (0..2 * COUNT).map(|_| world.sent(side)).collect();
            ended.sort_unstable();
            assert!(ended.iter().copied().eq(0..2 * COUNT), "each ends once");
            (0..COUNT).for_each(|_| assert_eq!(world.message(side), b"written"));
            assert!(areas[1 - side][1].0.to_vec(0, len) == pattern(side as u64, len), "what was written");
            assert!(areas[side][3].0.to_vec(0, len) == pattern(10 + side as u64, len), "what was read");
        }
    }
}

#[test]
fn few_descriptors_are_few_streams() {
    assert_eq!(Peer::spawn(PROGRAM, "few-streams", &[]).line(), "served on");
}

/// A process that waits on the handle of an endpoint of four streams uses no processor time.
#[test]
fn idle_streams_cost_nothing() {
    let endpoint = endpoint("4");
    let Idle { micros, switches, wakes, .. } =
        Idle::of(&endpoint, (PROGRAM, "tcp-streams", endpoint.uri()), "2", |_| ());
    assert!(micros < 10_000, "{micros} us of processor time");
    assert!(switches <= 7, "{switches} context switches");
    assert!(wakes <= 2, "woken {wakes} times without reason");
}

/// Bytes that a [`Peer`] has registered.
const TARGET: u64 = 64 << 20;

/// A peer that has dialed four streams and polls, the connection to it, and its memory.
fn target(world: &World<'_>) -> (Peer, Connection, RmaHandle) {
    let uri = world.endpoint(0).uri().to_owned();
    let mut peer = Peer::spawn(PROGRAM, "target-of-streams", &[&uri]);
    let Event::Request(request) = world.next(0, EventKind::ConnectRequest) else { panic!("not a request") };
    request.accept(3).expect("a request");
    let connection = world.next(0, EventKind::Accept).connection().expect("one");
    let handle = RmaHandle::from_bytes(&world.message(0)).expect("a handle");
    assert_eq!(peer.line_while(|| world.step()), "connected");
    until_streams(world, 0, connection, ", 4 streams");
    (peer, connection, handle)
}

/// A peer is killed while parts go both ways on all streams: each operation ends once, at once.
#[test]
fn a_killed_peer_ends_operations_in_parts_once() {
    for attempt in 0..8 {
        let endpoint = open_with(&device_of("tcp", &[("streams", "4")]), |options| options.disconnect_events = true);
        let world = World::new([&endpoint]);
        let (mut peer, connection, remote) = target(&world);
        let (_bytes, local) = memory(&endpoint, TARGET);
        let rma = Rma::new(&local, &remote, TARGET);
        endpoint.rma(connection, &rma, 0, Flags::WRITE).expect("a write");
        endpoint.rma(connection, &rma, 1, Flags::READ).expect("a read");
        endpoint.rma(connection, &rma, 2, Flags::WRITE).expect("a write");
        (0..attempt * 3).for_each(|_| world.step());
        peer.kill();
        assert!(peer.wait().code().is_none(), "it was killed");
        let begun = Instant::now();
        let mut ended: Vec<u64> = (0..3)
            .map(|_| {
                let event = world.next(0, EventKind::Send);
                assert!(matches!(event.outcome(), Ok(()) | Err(Failure::Disconnected)), "{:?}", event.outcome());
                event.context()
            })
            .collect();
        ended.sort_unstable();
        assert_eq!(ended, [0, 1, 2]);
        assert_eq!(world.next(0, EventKind::Disconnect).connection(), Some(connection));
        assert!(begun.elapsed() < LIMIT / 10, "{:?}", begun.elapsed());
    }
}

/// A peer that is stopped for a while in the middle goes on as if nothing had been.
#[test]
fn a_stopped_peer_survives_operations_in_parts() {
    const STOPPED: Duration = Duration::from_secs(2);
    let endpoint = endpoint("4");
    let world = World::new([&endpoint]);
    let (peer, connection, remote) = target(&world);
    let (bytes, local) = memory(&endpoint, TARGET);
    let len = usize::try_from(TARGET).expect("a length");
    let expected = pattern(5, len);
    bytes.write(0, &expected);
    let rma = Rma::new(&local, &remote, TARGET);
    endpoint.rma(connection, &rma, 0, Flags::WRITE).expect("a write");
    peer.signal(Signal::STOP);
    let begun = Instant::now();
    while begun.elapsed() < STOPPED {
        world.step();
    }
    peer.signal(Signal::CONT);
    assert_eq!(world.sent(0), 0);
    bytes.write(0, &vec![0; len]);
    endpoint.rma(connection, &rma, 1, Flags::READ).expect("a read");
    assert_eq!(world.sent(0), 1);
    assert!(bytes.to_vec(0, len) == expected, "what was written and read back");
}

/// Memory that is deregistered while parts of it are on all streams: each operation ends once, and
/// the lane serves on.
#[test]
fn memory_that_is_deregistered_ends_its_operations_once() {
    let (a, b) = (endpoint("4"), endpoint("4"));
    let world = World::new([&a, &b]);
    const LEN: u64 = 32 << 20;
    for attribute in [RO, RU] {
        let (connection, _) = connected(&world, attribute);
        for (flags, is_local) in
            [(Flags::WRITE, true), (Flags::WRITE, false), (Flags::READ, true), (Flags::READ, false)]
        {
            for steps in [0, 1, 3, 10] {
                let (source, target) = (memory(&a, LEN), memory(&b, LEN));
                a.rma(connection, &Rma::new(&source.1, &target.1, LEN), 5, flags).expect("an operation");
                (0..steps).for_each(|_| world.step());
                let gone = if is_local { a.deregister(&source.1) } else { b.deregister(&target.1) };
                gone.expect("a registration");
                let event: Event<'_> = world.next(0, EventKind::Send);
                let outcome = event.outcome();
                assert!(
                    event.context() == 5 && matches!(outcome, Ok(()) | Err(Failure::RemoteHandle)),
                    "{flags:?}, {steps} steps: {outcome:?}"
                );
                drop(event);
                a.send(connection, b"alive", 6).expect("a send");
                assert_eq!((world.message(1), world.sent(0)), (b"alive".to_vec(), 6));
            }
        }
    }
}

/// A connection that ends in the middle: its operations end once, others of the lane go on, and
/// numbers do not run out.
#[test]
fn a_disconnect_in_the_middle_leaves_the_lane_to_others() {
    const LEN: u64 = 16 << 20;
    let (a, b) = (endpoint("4"), endpoint("4"));
    let world = World::new([&a, &b]);
    let (other, _) = connected(&world, RU);
    let (source, target) = (memory(&a, LEN), memory(&b, LEN));
    let whole = usize::try_from(LEN).expect("a length");
    for round in 0..40_u64 {
        let (connection, _) = world.connect(0, 1, if round.is_multiple_of(2) { RO } else { RU });
        let rma = Rma::new(&source.1, &target.1, LEN);
        let mut open: VecDeque<u64> = (0..3).collect();
        a.rma(connection, &rma, 0, Flags::WRITE).expect("a write");
        a.rma(connection, &rma, 1, Flags::READ).expect("a read");
        a.rma(connection, &rma, 2, Flags::WRITE).expect("a write");
        (0..round % 12).for_each(|_| world.step());
        a.disconnect(connection).expect("a connection");
        while !open.is_empty() {
            let event = world.next(0, EventKind::Send);
            assert!(matches!(event.outcome(), Ok(()) | Err(Failure::Disconnected)), "{:?}", event.outcome());
            let ended = open.iter().position(|context| *context == event.context()).expect("an end that comes once");
            open.remove(ended);
        }
        let expected = pattern(round, whole);
        source.0.write(0, &expected);
        a.rma(other, &rma, 9, Flags::WRITE).expect("a write");
        assert_eq!(world.sent(0), 9);
        assert!(target.0.to_vec(0, whole) == expected, "a late part has touched memory in round {round}");
    }
}
