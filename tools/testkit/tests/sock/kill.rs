//! Peers of `sock` on this host that are killed: nobody listens at their port any more, and the
//! first frame to it says so.

use cci::{Attribute, Connection, ConnectionOption, Endpoint, EventKind, Failure, Notify};
use cci_conformance::{LIMIT, Peer, World, device_of, open_with, readable};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

/// It is told within 10 ms of the first frame; a loaded machine gets twenty times that.
const TOLD: Duration = Duration::from_millis(200);

fn endpoint() -> Endpoint {
    open_with(&device_of("sock", &[("interface", "lo")]), |options| options.disconnect_events = true)
}

/// A peer that has sent a message back, and the connection to it.
fn connected(world: &World<'_>, endpoint: &Endpoint) -> (Peer, Connection) {
    let mut peer = Peer::spawn(PROGRAM, "echo-over-sock", &["lo"]);
    let uri = peer.line_while(|| world.step());
    let connection = world.connect_to(0, &uri, Attribute::ReliableOrdered);
    endpoint.send(connection, b"hello", Notify::OnFailure(0)).expect("a send");
    assert_eq!(world.message(0), b"hello");
    (peer, connection)
}

fn kill(peer: &mut Peer) {
    peer.kill();
    assert!(peer.wait().code().is_none(), "it was killed");
}

/// The sends that are open fail in order, and then the disconnect is told.
fn assert_told(world: &World<'_>, connection: Connection, sends: u64, begun: Instant, mut wait: impl FnMut()) {
    for context in 0..sends {
        wait();
        let event = world.first(0);
        let expected = (EventKind::Send, context, Err(Failure::Disconnected));
        assert_eq!((event.kind(), event.context(), event.outcome()), expected);
    }
    wait();
    let event = world.first(0);
    assert_eq!((event.kind(), event.connection()), (EventKind::Disconnect, Some(connection)));
    let took = begun.elapsed();
    assert!(took < TOLD, "told after {took:?}");
}

#[test]
fn a_killed_peer_ends_what_is_sent_to_it_while_polling() {
    for _ in 0..5 {
        let endpoint = endpoint();
        let world = World::new([&endpoint]);
        let (mut peer, connection) = connected(&world, &endpoint);
        kill(&mut peer);
        let begun = Instant::now();
        (0..3).for_each(|context| endpoint.send(connection, b"late", context).expect("not told yet"));
        assert_told(&world, connection, 3, begun, || ());
    }
}

#[test]
fn a_killed_peer_wakes_who_has_sent_to_it_and_sleeps() {
    for _ in 0..5 {
        let endpoint = endpoint();
        let handle = endpoint.handle().expect("a handle");
        let world = World::new([&endpoint]);
        let (mut peer, connection) = connected(&world, &endpoint);
        kill(&mut peer);
        let begun = Instant::now();
        endpoint.send(connection, b"late", 0).expect("not told yet");
        let waiting = || [EventKind::Send, EventKind::Disconnect].map(|kind| world.waiting(0, kind)) != [0; 2];
        assert_told(&world, connection, 1, begun, || {
            while !waiting() {
                assert!(readable(&handle, LIMIT), "the handle does not tell");
                world.poll(0);
            }
        });
    }
}

/// An endpoint that sends nothing is told by the keepalive's first ping, long before the
/// keepalive's time is over.
#[test]
fn a_killed_peer_of_an_idle_endpoint_is_told_by_the_keepalive() {
    let endpoint = endpoint();
    let world = World::new([&endpoint]);
    let (mut peer, connection) = connected(&world, &endpoint);
    endpoint.set_option(connection, ConnectionOption::KeepaliveTimeout, Duration::from_secs(3)).expect("an option");
    kill(&mut peer);
    let event = world.first(0);
    assert_eq!((event.kind(), event.connection()), (EventKind::Disconnect, Some(connection)));
}

/// A name that an endpoint had is there for the next one at once, also while a child of `fork` that
/// has not run yet holds it. A child that takes longer is named.
#[test]
fn a_name_can_be_opened_again_right_after_a_fork() {
    for transport in ["sock", "tcp", "sm"] {
        let line = Peer::spawn(PROGRAM, "fork-and-open-again", &[transport]).line();
        let (well, badly) = line.split_once(" of 50").expect("a count");
        let well: u32 = well.parse().expect("a number");
        assert!(well == 50 || badly.contains("child"), "{transport}: {line}");
        // A loaded machine may let a child run late now and then.
        assert!(well >= 40, "{transport}: {line}");
    }
}
