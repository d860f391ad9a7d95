//! What a local process without a connection may take of a `sock` endpoint, by raw frames over the
//! loop-back interface; and how many of one that connects.

use cci::{Attribute, EventKind};
use cci_conformance::{LIMIT, Peer, World, alone, device_of, open, open_with};
use std::time::Instant;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

#[test]
fn requests_of_two_hundred_local_ports_leave_peers_their_slots() {
    let _alone = alone();
    let device = device_of("sock", &[("ip", "127.0.0.1")]);
    let server = open_with(&device, |options| options.recv_buffers = 256);
    let friend = open(&device);
    let (world, to_server, _) = World::joined([&friend, &server], Attribute::ReliableOrdered);
    let mut attacker = Peer::spawn(PROGRAM, "strangers", &[server.uri()]);
    assert_eq!(attacker.line_while(|| world.step()), "asked");
    world.until("a request", || world.waiting(1, EventKind::ConnectRequest) > 0);
    let asked = world.waiting(1, EventKind::ConnectRequest);
    assert!((1..=64).contains(&asked), "{asked} requests have slots, a quarter of 256 at most");
    // All of them unanswered, and every message held.
    for number in 0..150 {
        friend.send(to_server, b"through", number).expect("a send");
        world.until("a message", || world.waiting(1, EventKind::Recv) as u64 > number);
    }
}

/// 250 endpoints of another process with four connects each, all at once.
#[test]
fn a_thousand_connects_of_one_process_at_once_succeed() {
    let _alone = alone();
    let server = open(&device_of("sock", &[("ip", "127.0.0.1")]));
    let mut many_peers = Peer::spawn(PROGRAM, "connect-many", &["sock", server.uri(), "250", "4"]);
    let (mut accepted, begun) = ([0; 250], Instant::now());
    let serve = |accepted: &mut [u32; 250]| {
        while let Some(event) = server.get_event().expect("open") {
            match event.kind() {
                EventKind::ConnectRequest => {
                    let request = event.into_request().expect("a request");
                    let from: [u8; 8] = request.payload().try_into().expect("a number");
                    request.accept(u64::from_ne_bytes(from)).expect("an accept");
                }
                EventKind::Accept => {
                    assert_eq!(event.outcome(), Ok(()));
                    accepted[usize::try_from(event.context()).expect("a number")] += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(many_peers.line_while(|| serve(&mut accepted)), "connected");
    // The last clients know of their connections before the server does.
    while accepted != [4; 250] {
        assert!(begun.elapsed() < 2 * LIMIT, "{accepted:?}");
        serve(&mut accepted);
    }
}
