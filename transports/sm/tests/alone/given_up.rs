//! Connects of `sm` that were given up, and answers that nobody takes, pile up nowhere and end no
//! connection of a healthy peer.

use cci::{Attribute, Connect, EventKind, Failure, Notify};
use cci_conformance::process::resident_bytes;
use cci_conformance::sm_raw::{RawPeer, frame_kind, learn, words};
use cci_conformance::{LIMIT, World, alone, drain, open, sm_device};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// A peer makes no calls while connects to it are given up by the thousand. Each CONNECT frame
/// stayed in the queue; when the peer went on, its first answers met the limit of what may wait,
/// and it was dropped with its established connection.
#[test]
fn connects_that_were_given_up_take_no_memory_and_end_no_connection() {
    const BATCH: u64 = 4_000;
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let give_up = || {
        for context in 0..BATCH {
            a.connect(&Connect::to(b.uri()).payload(&[7; 700]).context(context).timeout(Duration::from_millis(1)))
                .expect("a send buffer");
        }
        let world = World::new([&a]);
        for _ in 0..BATCH {
            assert_eq!(world.next(0, EventKind::Connect).outcome(), Err(Failure::TimedOut));
        }
    };
    // The first makes what is used again.
    give_up();
    let before = resident_bytes(None);
    (0..5).for_each(|_| give_up());
    let more = resident_bytes(None).saturating_sub(before);
    assert!(more < 5 << 20, "{more} bytes for 20,000 connects that were given up");
    // The peer goes on: it answers what has left, and is not dropped for it.
    let world = World::new([&a, &b]);
    a.send(connection, b"alive", Notify::OnFailure(0)).expect("the connection lives");
    let begun = Instant::now();
    while world.waiting(1, EventKind::Recv) == 0 {
        assert!(begun.elapsed() < LIMIT, "the message does not come");
        world.step();
        if world.waiting(1, EventKind::ConnectRequest) > 0 {
            world.next(1, EventKind::ConnectRequest).into_request().expect("a request").accept(0).expect("an accept");
        }
    }
    assert_eq!(world.message(1), b"alive");
}

/// A peer asks and asks and takes no answer, while the program rejects whatever comes: the endpoint
/// stops to take requests. All go on once the peer takes answers.
#[test]
fn requests_wait_for_a_peer_that_takes_no_answers() {
    const COUNT: u32 = 20_000;
    let _alone = alone();
    let (endpoint, honest) = (open(&sm_device()), open(&sm_device()));
    let hello = learn(&honest, 98_401);
    let mut peer = RawPeer::enter(endpoint.uri(), &hello, || {
        drain(&endpoint);
    });
    let mut rejected = 0;
    let mut serve = || {
        let before = rejected;
        while let Some(event) = endpoint.get_event().expect("usable") {
            event.into_request().expect("a request").reject().expect("a request");
            rejected += 1;
        }
        rejected - before
    };
    let (mut asked, mut idle) = (0, 0);
    while asked < COUNT && idle < 100 {
        while asked < COUNT && peer.has_room() {
            peer.publish_quietly(frame_kind::CONNECT, 0, asked, &words([0, 8192, u32::MAX, 0, 0, 0]));
            asked += 1;
        }
        idle = if serve() == 0 { idle + 1 } else { 0 };
    }
    assert!((1_000..10_000).contains(&asked), "{asked} requests were taken whose answers nobody takes");
    let (mut answered, begun) = (0, Instant::now());
    while answered < COUNT {
        assert!(begun.elapsed() < LIMIT, "{answered} answers of {asked} requests");
        while asked < COUNT && peer.has_room() {
            peer.publish_quietly(frame_kind::CONNECT, 0, asked, &words([0, 8192, u32::MAX, 0, 0, 0]));
            asked += 1;
        }
        serve();
        while let Some((kind, number, _)) = peer.next_frame() {
            assert_eq!((u32::from(kind), number), (5, answered), "a REJECT, in the order of the requests");
            answered += 1;
        }
    }
}
