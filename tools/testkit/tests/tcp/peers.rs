//! Peers of `tcp` on this host that are killed, stopped, or connect from both sides.

use cci::{Attribute, Connect, Connection, ConnectionOption, Device, Endpoint, EventKind, Failure, Notify};
use cci_conformance::{LIMIT, Peer, World, device_of, open, open_with, pattern, readable};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

/// It is told within 10 ms; a loaded machine gets twenty times that.
const TOLD: Duration = Duration::from_millis(200);

fn device() -> Device {
    device_of("tcp", &[("ip", "127.0.0.1")])
}

fn endpoint() -> Endpoint {
    open_with(&device(), |options| options.disconnect_events = true)
}

/// A peer that has sent a message back, and the connection to it.
fn connected(world: &World<'_>, endpoint: &Endpoint) -> (Peer, Connection) {
    let mut peer = Peer::spawn(PROGRAM, "echo-over", &["tcp"]);
    let uri = peer.line_while(|| world.step());
    let connection = world.connect_to(0, &uri, Attribute::ReliableOrdered);
    endpoint.send(connection, b"hello", Notify::OnFailure(0)).expect("a send");
    assert_eq!(world.message(0), b"hello");
    (peer, connection)
}

fn stop(peer: &Peer) {
    peer.signal(Signal::STOP);
    // A process is stopped some time after the signal was sent.
    let stat = format!("/proc/{}/stat", peer.pid().as_raw_pid());
    let is_stopped = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "));
    let begun = Instant::now();
    while !is_stopped() {
        assert!(begun.elapsed() < LIMIT);
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_peer_is_told_while_polling() {
    for _ in 0..5 {
        let endpoint = endpoint();
        let world = World::new([&endpoint]);
        let (mut peer, connection) = connected(&world, &endpoint);
        // Sends that it cannot answer.
        stop(&peer);
        (0..3).for_each(|context| endpoint.send(connection, b"late", context).expect("a send"));
        peer.kill();
        assert!(peer.wait().code().is_none(), "it was killed");
        let begun = Instant::now();
        for context in 0..3 {
            let event = world.first(0);
            let expected = (EventKind::Send, context, Err(Failure::Disconnected));
            assert_eq!((event.kind(), event.context(), event.outcome()), expected);
        }
        let event = world.first(0);
        assert_eq!((event.kind(), event.connection()), (EventKind::Disconnect, Some(connection)));
        let took = begun.elapsed();
        assert!(took < TOLD, "told after {took:?}");
    }
}

#[test]
fn a_killed_peer_wakes_who_sleeps() {
    for _ in 0..5 {
        let endpoint = endpoint();
        let handle = endpoint.handle().expect("a handle");
        let world = World::new([&endpoint]);
        let (mut peer, connection) = connected(&world, &endpoint);
        while readable(&handle, Duration::from_millis(50)) {
            world.poll(0);
        }
        peer.kill();
        assert!(peer.wait().code().is_none(), "it was killed");
        let begun = Instant::now();
        while world.waiting(0, EventKind::Disconnect) == 0 {
            assert!(readable(&handle, LIMIT), "the handle does not tell");
            world.poll(0);
        }
        let took = begun.elapsed();
        assert!(took < TOLD, "told after {took:?}");
        assert_eq!(world.next(0, EventKind::Disconnect).connection(), Some(connection));
    }
}

/// A stopped peer of which full streams and open operations wait goes on as if nothing had been. By
/// default not as long as in the promise, which is 30 s.
#[test]
fn a_stopped_peer_survives() {
    const COUNT: u64 = 2000;
    let seconds = if std::env::var_os("CCI_TEST_LONG").is_some() { 35 } else { 3 };
    let endpoint = endpoint();
    let world = World::new([&endpoint]);
    let (peer, connection) = connected(&world, &endpoint);
    let long = Duration::from_secs(300);
    endpoint.set_option(connection, ConnectionOption::SendTimeout, long).expect("an option");
    stop(&peer);
    let begun = Instant::now();
    for context in 0..COUNT {
        endpoint.send(connection, &pattern(context, 8000), context).expect("a send");
    }
    while begun.elapsed() < Duration::from_secs(seconds) {
        assert!(!world.poll(0), "an event of a stopped peer");
        std::thread::sleep(Duration::from_millis(1));
    }
    peer.signal(Signal::CONT);
    for context in 0..COUNT {
        assert_eq!(world.message(0), pattern(context, 8000));
    }
    (0..COUNT).for_each(|context| assert_eq!(world.sent(0), context));
}

/// A stopped peer is noticed by who asks for that: a keepalive, or a send timeout.
#[test]
fn a_stopped_peer_is_noticed_by_keepalive_and_send_timeout() {
    let endpoint = endpoint();
    let world = World::new([&endpoint]);
    let (peer, connection) = connected(&world, &endpoint);
    let limit = Duration::from_millis(300);
    endpoint.set_option(connection, ConnectionOption::KeepaliveTimeout, limit).expect("an option");
    stop(&peer);
    let event = world.first(0);
    assert_eq!((event.kind(), event.connection()), (EventKind::KeepaliveTimedOut, Some(connection)));
    endpoint.set_option(connection, ConnectionOption::SendTimeout, limit).expect("an option");
    let begun = Instant::now();
    endpoint.send(connection, b"late", 7).expect("a send");
    let event = world.next(0, EventKind::Send);
    assert_eq!((event.context(), event.outcome()), (7, Err(Failure::TimedOut)));
    let took = begun.elapsed();
    assert!(took >= limit && took < limit + Duration::from_secs(1), "{took:?}");
}

/// The child has closed its copies of the sockets.
#[test]
fn a_killed_peer_is_told_though_a_forked_child_lives_on() {
    let endpoint = endpoint();
    let world = World::new([&endpoint]);
    let mut peer = Peer::spawn(PROGRAM, "leave-child", &["tcp", endpoint.uri()]);
    let connection = world.accept(0);
    let line = peer.line_while(|| world.step());
    let child = line.strip_prefix("child ").and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
    peer.kill();
    assert!(peer.wait().code().is_none(), "it was killed");
    let begun = Instant::now();
    assert_eq!(world.next(0, EventKind::Disconnect).connection(), Some(connection));
    let took = begun.elapsed();
    assert!(took < TOLD, "told after {took:?}");
    kill_process(child.expect("its number"), Signal::KILL).expect("the child has lived on");
}

/// Two programs connect to each other at once, many times, from two threads.
#[test]
fn both_sides_connect_at_once() {
    const ROUNDS: u64 = 200;
    let (a, b) = (open(&device()), open(&device()));
    let run = |own: &Endpoint, other: &str| {
        let (mut asked, mut connected, mut accepted) = (0, 0, 0);
        let begun = Instant::now();
        while connected < ROUNDS || accepted < ROUNDS {
            assert!(begun.elapsed() < LIMIT, "{connected} connected, {accepted} accepted");
            if asked < ROUNDS {
                own.connect(&Connect::to(other).attribute(Attribute::ReliableUnordered)).expect("a connect");
                asked += 1;
            }
            let Some(event) = own.get_event().expect("usable") else { continue };
            match event.kind() {
                EventKind::ConnectRequest => event.into_request().expect("a request").accept(0).expect("an accept"),
                EventKind::Connect => {
                    assert_eq!(event.outcome(), Ok(()));
                    connected += 1;
                }
                EventKind::Accept => accepted += 1,
                other => panic!("{other:?}"),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(&a, b.uri()));
        run(&b, a.uri());
    });
}
