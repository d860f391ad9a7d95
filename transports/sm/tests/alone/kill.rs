//! Peers of `sm` that die: killed at any moment, replaced by another program, survived by a child.

use crate::program;
use cci::__binding::{Contract, Flags};
use cci::{
    Attribute, Connection, Endpoint, Event, EventKind, Failure, HeapBytes, Memory, Notify, Rights, Rma, RmaHandle,
    SendError, Status,
};
use cci_conformance::memory::Origin;
use cci_conformance::process::{describe_descriptors, descriptors, mappings, segments};
use cci_conformance::{LIMIT, Peer, World, alone, drain, open, open_with, pattern, readable, sm_device};
use rustix::process::{Pid, Signal, kill_process};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Open operations end within 10 ms of the death; a loaded machine gets twenty times that.
const NOTICED: Duration = Duration::from_millis(200);

/// A peer in this role, once it has connected and said so.
fn connected(world: &World<'_>, role: &str, arguments: &[&str]) -> (Peer, Connection) {
    let mut peer = Peer::spawn(program(), role, arguments);
    let connection = world.accept(0);
    assert_eq!(peer.line_while(|| world.step()), "connected");
    (peer, connection)
}

/// Sends until nothing more is accepted or `most` are: how many.
fn post(endpoint: &Endpoint, connection: Connection, most: u64) -> u64 {
    for context in 0..most {
        match endpoint.send(connection, &pattern(context, 100), context) {
            Ok(()) => {}
            Err(SendError::NoBuffers | SendError::Disconnected) => return context,
            Err(error) => panic!("{error}"),
        }
    }
    most
}

/// Waits for the kernel to say that the process is dead; when it did.
fn dead(pidfd: &OwnedFd) -> Instant {
    assert!(readable(pidfd, LIMIT), "SIGKILL does not kill");
    Instant::now()
}

/// Counts the ends of sends 0 to `count`: each once, successes first. When the last came.
fn ends<'e>(count: u64, mut next: impl FnMut() -> Event<'e>) -> (u64, Instant) {
    let mut succeeded = 0;
    for context in 0..count {
        let event = next();
        assert_eq!((event.kind(), event.context()), (EventKind::Send, context));
        match event.outcome() {
            Ok(()) => {
                assert_eq!(succeeded, context, "a success after a failure");
                succeeded += 1;
            }
            Err(failure) => assert_eq!(failure, Failure::Disconnected),
        }
    }
    (succeeded, Instant::now())
}

fn assert_noticed(killed: Instant, ended: Instant, how: &str) {
    let took = ended.saturating_duration_since(killed);
    assert!(took < NOTICED, "{how}: open operations ended {took:?} after the death");
}

#[test]
fn kill_ends_open_operations_while_polling() {
    let _alone = alone();
    for _ in 0..10 {
        let endpoint = open(&sm_device());
        let world = World::new([&endpoint]);
        let (peer, connection) = connected(&world, "stall", &[endpoint.uri()]);
        let posted = post(&endpoint, connection, 2000);
        let killed = dead(&peer.kill());
        let (succeeded, ended) = ends(posted, || world.next(0, EventKind::Send));
        assert!(succeeded < posted, "nothing was open");
        assert_noticed(killed, ended, "polling");
        assert_eq!(drain(&endpoint), 0, "more events than operations");
        assert_eq!(endpoint.send(connection, b"late", 0), Err(SendError::Disconnected));
        endpoint.disconnect(connection).expect("it is still to be disconnected");
    }
}

/// Killed or stopped in the midst of large messages: those that came are whole, and what the peer
/// had is there for others.
#[test]
fn killed_and_stopped_senders_of_large_messages_leave_room() {
    const LEN: usize = 1 << 20;
    let _alone = alone();
    for round in 0..20 {
        let endpoint = open_with(&sm_device(), |options| options.disconnect_events = true);
        endpoint.set_large_limit(4 * LEN as u64).expect("usable");
        let other = open(&sm_device());
        let world = World::new([&endpoint, &other]);
        let (peer, _) = connected(&world, "flood-large", &[endpoint.uri(), &LEN.to_string()]);
        let mut number = 0;
        let mut take = |message: &[u8]| {
            let mut expected = pattern(number, LEN);
            expected[..8].copy_from_slice(&u64::to_ne_bytes(number));
            assert!(message == expected, "message {number}");
            number += 1;
        };
        (0..3).for_each(|_| take(&world.message(0)));
        let moment = Instant::now() + Duration::from_micros(fastrand::u64(0..2000));
        while Instant::now() < moment {
            world.step();
        }
        let is_stopped = round % 2 == 1;
        if is_stopped {
            peer.signal(Signal::STOP);
        } else {
            assert!(readable(peer.kill(), LIMIT), "SIGKILL does not kill");
            world.next(0, EventKind::Disconnect);
        }
        while world.waiting(0, EventKind::Recv) > 0 {
            take(&world.message(0));
        }
        // Half of it where a peer has some and is stopped, otherwise all.
        let len = if is_stopped { 2 * LEN } else { 4 * LEN };
        let (connection, _) = world.connect(1, 0, Attribute::ReliableOrdered);
        let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(pattern(77, len))));
        other.send_large(connection, &memory, 5).expect("a send");
        let mut message = world.message(0);
        while message.len() != len {
            take(&message);
            message = world.message(0);
        }
        assert!(message == pattern(77, len), "round {round}");
        assert_eq!(world.sent(1), 5);
    }
}

#[test]
fn kill_ends_open_operations_while_blocking_on_the_handle() {
    let _alone = alone();
    for _ in 0..10 {
        let endpoint = open(&sm_device());
        let handle = endpoint.handle().expect("a handle");
        let world = World::new([&endpoint]);
        let (peer, connection) = connected(&world, "stall", &[endpoint.uri()]);
        let posted = post(&endpoint, connection, 2000);
        while readable(&handle, Duration::ZERO) {
            world.step();
        }
        let completed = world.waiting(0, EventKind::Send) as u64;
        assert!(completed < posted, "nothing was open");
        std::thread::scope(|scope| {
            // The death comes while this thread sleeps in poll, or a little before.
            let killer = scope.spawn(|| dead(&peer.kill()));
            let (_, ended) = ends(posted, || {
                while world.waiting(0, EventKind::Send) == 0 {
                    assert!(readable(&handle, LIMIT), "the handle does not tell of the death");
                    world.poll(0);
                }
                world.next(0, EventKind::Send)
            });
            assert_noticed(killer.join().expect("the killer"), ended, "blocking in poll");
        });
        assert_eq!(drain(&endpoint), 0, "more events than operations");
    }
}

#[test]
fn kill_ends_a_blocking_send() {
    let _alone = alone();
    for _ in 0..10 {
        let endpoint = open(&sm_device());
        let world = World::new([&endpoint]);
        let (peer, connection) = connected(&world, "stall", &[endpoint.uri()]);
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                // The first ones are published at once, then one has to wait.
                let outcome =
                    (0..5000).try_for_each(|_| endpoint.send_flags(connection, &[1; 100], 0, Flags::BLOCKING));
                (outcome, Instant::now())
            });
            std::thread::sleep(Duration::from_millis(fastrand::u64(0..20)));
            let killed = dead(&peer.kill());
            let (outcome, ended) = sender.join().expect("the sender");
            // Noticed by the send that waited, or by the next one.
            assert_eq!(outcome.map_err(|error| error.status()), Err(Status::Disconnected));
            assert_noticed(killed, ended, "BLOCKING");
        });
    }
}

#[test]
fn kill_tells_who_asked_for_it() {
    let _alone = alone();
    let endpoint = open_with(&sm_device(), |options| options.disconnect_events = true);
    let world = World::new([&endpoint]);
    let (peer, connection) = connected(&world, "stall", &[endpoint.uri()]);
    let killed = dead(&peer.kill());
    let event = world.next(0, EventKind::Disconnect);
    assert_eq!(event.connection(), Some(connection));
    assert_noticed(killed, Instant::now(), "the disconnect event");
}

#[test]
fn kill_while_it_sends() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    for round in 0..40 {
        let world = World::new([&endpoint]);
        let len = ["8", "300", "4000"][round % 3];
        let mut peer = Peer::spawn(program(), "flood", &[endpoint.uri(), len]);
        let connection = world.accept(0);
        assert_eq!(peer.line_while(|| ()), "connected");
        let until = Instant::now() + Duration::from_micros(fastrand::u64(0..3000));
        let mut next = 0u64;
        let mut check = |event: Event<'_>| {
            let message = event.received().expect("a message").to_vec();
            let mut expected = pattern(next, message.len());
            expected[..8].copy_from_slice(&next.to_ne_bytes());
            assert_eq!(message, expected, "message {next}");
            next += 1;
        };
        while Instant::now() < until {
            world.step();
            while world.waiting(0, EventKind::Recv) > 0 {
                check(world.next(0, EventKind::Recv));
            }
        }
        let killed = dead(&peer.kill());
        // What it had published comes first, then sends are refused.
        world.until("the death to be noticed", || {
            while world.waiting(0, EventKind::Recv) > 0 {
                check(world.next(0, EventKind::Recv));
            }
            endpoint.send(connection, b"?", Notify::OnFailure(0)) == Err(SendError::Disconnected)
        });
        assert_noticed(killed, Instant::now(), "a receiver");
        endpoint.disconnect(connection).expect("still to be disconnected");
        drop(world);
        drain(&endpoint);
    }
}

#[test]
fn kill_while_we_write_to_it() {
    let _alone = alone();
    const LEN: u64 = 64 << 20;
    let endpoint = open(&sm_device());
    for round in 0..16 {
        let world = World::new([&endpoint]);
        let origin = ["library", "program"][round % 2];
        let mut peer = Peer::spawn(program(), "target", &[endpoint.uri(), origin]);
        let connection = world.accept(0);
        let remote = RmaHandle::from_bytes(&world.message(0)).expect("a handle");
        assert_eq!(peer.line_while(|| world.step()), "connected");
        let memory = Origin::ALL[round / 2 % 2].allocate(usize::try_from(LEN).expect("64 bits"));
        let local = endpoint.register_memory(memory.memory(), Rights::NONE).expect("a registration");
        let rma = Rma::new(&local, &remote, LEN).message(&b"m"[..]);
        let flags = if round / 4 % 2 == 0 { Flags::WRITE } else { Flags::READ };
        for context in 0..20 {
            endpoint.rma(connection, &rma, context, flags).expect("an RMA");
        }
        let steps = fastrand::usize(0..60);
        (0..steps).for_each(|_| world.step());
        let killed = dead(&peer.kill());
        let mut failed = false;
        for context in 0..20 {
            let event = world.next(0, EventKind::Send);
            assert_eq!(event.context(), context);
            assert!(event.outcome().is_err() || !failed, "a success after a failure");
            failed |= event.outcome().is_err();
            // The copy may be what met the death first.
            assert!(matches!(event.outcome(), Ok(()) | Err(Failure::Disconnected | Failure::Copy)), "{event:?}");
        }
        let ended = Instant::now();
        assert!(failed, "20 transfers of 64 MiB were over before the kill");
        assert_noticed(killed, ended, "RMA");
        endpoint.disconnect(connection).expect("still to be disconnected");
        endpoint.deregister(&local).expect("nobody uses it");
    }
}

#[test]
fn kill_while_it_writes_to_us() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    for round in 0..30 {
        let world = World::new([&endpoint]);
        let memory = Origin::ALL[round % 2].allocate(1 << 20);
        let handle = endpoint.register_memory(memory.memory(), Rights::WRITE).expect("a registration");
        let (peer, connection) = connected(&world, "writer", &[endpoint.uri()]);
        let message = [&handle.to_bytes()[..], &(1u64 << 20).to_ne_bytes()].concat();
        endpoint.send(connection, &message, Notify::OnFailure(0)).expect("a send");
        world.until("the first write", || memory.to_vec(0, 1) == [0xff]);
        let until = Instant::now() + Duration::from_micros(fastrand::u64(0..2000));
        while Instant::now() < until {
            world.step();
        }
        dead(&peer.kill());
        // A writer that dies in the midst of a piece must not keep its registration.
        let begun = Instant::now();
        endpoint.deregister(&handle).expect("its only user is dead");
        assert!(begun.elapsed() < LIMIT);
        memory.write(0, &[0x11; 1 << 20]);
        world.until("the death to be noticed", || {
            endpoint.send(connection, b"?", Notify::OnFailure(0)) == Err(SendError::Disconnected)
        });
        assert!(memory.to_vec(0, 1 << 20) == [0x11; 1 << 20], "written after deregister");
        endpoint.disconnect(connection).expect("still to be disconnected");
    }
}

#[test]
fn kill_of_one_leaves_the_others_alone() {
    let _alone = alone();
    let mut echo = Peer::spawn(program(), "echo", &[]);
    let uri = echo.line();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let honest = world.connect_to(0, &uri, Attribute::ReliableOrdered);
    let mut round = 0u64;
    let mut exchange = |limit: Duration| {
        let message = pattern(round, usize::try_from(8 + round % 900).expect("small"));
        let begun = Instant::now();
        endpoint.send(honest, &message, Notify::OnFailure(round)).expect("a send to the honest peer");
        world.until("the echo", || world.waiting(0, EventKind::Recv) > 0);
        let event = world.next(0, EventKind::Recv);
        assert_eq!((event.connection(), event.received().expect("one").to_vec()), (Some(honest), message));
        assert!(begun.elapsed() < limit, "round trip {round} took {:?}", begun.elapsed());
        round += 1;
    };
    for _ in 0..20 {
        let (victim, connection) = connected(&world, "stall", &[endpoint.uri()]);
        let posted = post(&endpoint, connection, 400);
        for _ in 0..20 {
            exchange(LIMIT);
        }
        let _pidfd = victim.kill();
        // Neither the death nor the cleaning up after it holds the honest peer up.
        for _ in 0..200 {
            exchange(NOTICED);
        }
        ends(posted, || world.next(0, EventKind::Send));
        endpoint.disconnect(connection).expect("still to be disconnected");
    }
}

#[test]
fn kill_cycles_leave_no_descriptor_and_no_mapping() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let cycle = |number: u64| {
        let world = World::new([&endpoint]);
        let role = [["stall", ""], ["flood", "3000"], ["writer", ""]][usize::try_from(number % 3).expect("small")];
        let uri = endpoint.uri();
        let arguments = if role[1].is_empty() { vec![uri] } else { vec![uri, role[1]] };
        let peer = Peer::spawn(program(), role[0], &arguments);
        // At any moment: sometimes before it is accepted, or even before it connects.
        if number.is_multiple_of(5) {
            let until = Instant::now() + Duration::from_micros(fastrand::u64(0..4000));
            while Instant::now() < until {
                world.step();
            }
            dead(&peer.kill());
            drop(peer);
            drop(world);
            drain(&endpoint);
            return;
        }
        let connection = world.accept(0);
        let posted = post(&endpoint, connection, 100);
        (0..fastrand::u32(0..50)).for_each(|_| world.step());
        dead(&peer.kill());
        ends(posted, || world.next(0, EventKind::Send));
        endpoint.disconnect(connection).expect("still to be disconnected");
    };
    let settle = |what: &str, most: usize, count: &dyn Fn() -> usize| {
        let begun = Instant::now();
        while count() > most && begun.elapsed() < LIMIT {
            drain(&endpoint);
            std::thread::yield_now();
        }
        assert!(count() <= most, "{what}: {} where {most} were; {:?}", count(), describe_descriptors());
    };
    // After the first few cycles everything that is kept for ever is there.
    (0..10).for_each(cycle);
    let fresh = open(&sm_device());
    let needed = [descriptors(), segments()];
    drop(fresh);
    let own = [descriptors(), segments()];
    assert!(own[0] < needed[0], "an endpoint needs descriptors");
    settle("descriptors", own[0], &descriptors);
    let (base, lines) = ([descriptors(), segments()], mappings().lines().count());
    (0..1000).for_each(cycle);
    settle("descriptors", base[0], &descriptors);
    settle("segments", base[1], &segments);
    // The heap may have grown here and there; what a cycle leaves behind would be hundreds.
    settle("mappings", lines + 20, &|| mappings().lines().count());
}

#[test]
fn kill_by_executing_another_program() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let handle = endpoint.handle().expect("a handle");
    for blocking in [false, true] {
        let world = World::new([&endpoint]);
        let (mut peer, connection) = connected(&world, "execute", &[endpoint.uri()]);
        let posted = post(&endpoint, connection, 1000);
        peer.tell("go");
        let (succeeded, _) = ends(posted, || {
            while blocking && world.waiting(0, EventKind::Send) == 0 {
                assert!(readable(&handle, LIMIT), "the handle does not tell");
                world.poll(0);
            }
            world.next(0, EventKind::Send)
        });
        assert!(succeeded < posted, "nothing was open");
        assert_eq!(peer.line(), "another program", "the process lives, but is no peer any more");
        endpoint.disconnect(connection).expect("still to be disconnected");
    }
}

#[test]
fn kill_is_noticed_though_a_forked_child_holds_the_descriptors() {
    let _alone = alone();
    for _ in 0..5 {
        let endpoint = open(&sm_device());
        let world = World::new([&endpoint]);
        let mut peer = Peer::spawn(program(), "leave-child", &["sm", endpoint.uri()]);
        let connection = world.accept(0);
        let line = peer.line_while(|| world.step());
        let child =
            line.strip_prefix("child ").and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw).expect("its number");
        let posted = post(&endpoint, connection, 2000);
        let killed = dead(&peer.kill());
        let (succeeded, ended) = ends(posted, || world.next(0, EventKind::Send));
        assert!(succeeded < posted, "nothing was open");
        assert_noticed(killed, ended, "with a child that holds the socket");
        kill_process(child, Signal::KILL).expect("the child has lived on, as it should for this test");
    }
}
