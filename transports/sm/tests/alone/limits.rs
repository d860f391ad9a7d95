//! Not enough of something: descriptors, memory, room in a backlog. And peers of another user.

use crate::program;
use cci::{Attribute, Connect, EventKind, Failure};
use cci_conformance::process::{descriptors, thread_time};
use cci_conformance::{LIMIT, Peer, World, alone, open, readable, sm_device};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

#[test]
fn limits_no_descriptors_for_an_endpoint() {
    let _alone = alone();
    assert_eq!(Peer::spawn(program(), "few-descriptors", &["sm"]).line(), "refused well");
}

#[test]
fn limits_no_descriptors_for_peers() {
    let _alone = alone();
    assert_eq!(Peer::spawn(program(), "no-descriptors-later", &["sm"]).line(), "served on");
}

#[test]
fn limits_no_memory_for_an_endpoint() {
    let _alone = alone();
    assert_eq!(Peer::spawn(program(), "little-memory", &["sm"]).line(), "refused well");
}

/// A listener whose backlog is full for ever: the connect is retried by timer and ends by its
/// timeout.
#[test]
fn limits_full_backlog_is_retried_without_spinning() {
    let _alone = alone();
    let mut peer = Peer::spawn(program(), "backlog", &["70001"]);
    let uri = peer.line();
    let endpoint = open(&sm_device());
    let handle = endpoint.handle().expect("a handle");
    let before = descriptors();
    let world = World::new([&endpoint]);
    let timeout = Duration::from_millis(1500);
    let (begun, used) = (Instant::now(), thread_time());
    endpoint.connect(&Connect::to(&uri).context(4).timeout(timeout)).expect("a connect");
    let mut wakes = 0;
    while world.waiting(0, EventKind::Connect) == 0 {
        assert!(readable(&handle, LIMIT), "the timeout does not make the handle readable");
        world.poll(0);
        wakes += 1;
    }
    let event = world.next(0, EventKind::Connect);
    assert_eq!((event.outcome(), event.context()), (Err(Failure::TimedOut), 4));
    let (elapsed, used) = (begun.elapsed(), thread_time() - used);
    assert!(elapsed >= timeout, "early: {elapsed:?}");
    assert!(used < elapsed / 5, "{used:?} of processor time in {elapsed:?}, {wakes} wakes");
    assert_eq!(descriptors(), before, "descriptors left");
}

/// A backlog that is full for a while only delays.
#[test]
fn limits_full_backlog_that_empties_is_entered() {
    let _alone = alone();
    let server = open(&sm_device());
    let mut clients = Vec::new();
    let mut waiting = Vec::new();
    while waiting.len() < 10_000
        && let Ok(socket) = cci_conformance::sm_raw::raw_connect(server.uri())
    {
        waiting.push(socket);
    }
    clients.push(open(&sm_device()));
    let client = &clients[0];
    client.connect(&Connect::to(server.uri()).context(1)).expect("a connect");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(50) {
        assert!(client.get_event().expect("usable").is_none(), "nobody has accepted");
    }
    drop(waiting);
    let world = World::new([client, &server]);
    let request = world.next(1, EventKind::ConnectRequest);
    request.into_request().expect("a request").accept(1).expect("an accept");
    assert_eq!(world.next(0, EventKind::Connect).outcome(), Ok(()));
}

/// Anyone may take an abstract name and connect to one: both sides look at the other's user. Needs
/// root, to become another user.
#[test]
fn limits_other_users_are_refused_both_ways() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let before = descriptors();
    if !rustix::process::geteuid().is_root() {
        // Nobody else can be played; all there is to see is that the own user is let in.
        let own = open(&sm_device());
        World::new([&own, &endpoint]).connect(0, 1, RO);
        return;
    }
    let mut peer = Peer::spawn(program(), "nobody", &[endpoint.uri()]);
    let uri = peer.line_while(|| world.step());
    endpoint.connect(&Connect::to(&uri).context(8).timeout(LIMIT)).expect("a connect");
    assert_eq!(world.next(0, EventKind::Connect).outcome(), Err(Failure::Refused));
    assert_eq!(peer.line_while(|| world.step()), "requests 0");
    assert_eq!(world.waiting(0, EventKind::ConnectRequest), 0, "another user's request was shown");
    drop(peer);
    world.until("its descriptors to be closed", || descriptors() <= before);
}

/// A server that was opened by root and goes on as another user is nobody's peer: the reasons say
/// of which users the two sides are, and nothing of a death.
#[test]
fn limits_a_server_that_has_dropped_its_privileges_says_so() {
    let _alone = alone();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut server = Peer::spawn(program(), "serve-as-nobody", &[]);
    let uri = server.line();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    for _ in 0..20 {
        endpoint.connect(&Connect::to(&uri).context(1).timeout(LIMIT)).expect("a connect");
        let ended = world.next(0, EventKind::Connect);
        let reason = ended.reason().expect("a reason");
        assert_eq!(ended.outcome(), Err(Failure::Refused), "{reason}");
        assert!(reason.contains("it says: this process is of user 65534, yours of user 0"), "{reason}");
    }
    let told = Peer::spawn(program(), "connect-as-nobody", &[&uri]).line();
    let wanted = "its endpoint was opened by user 0, and this process is of user 65534";
    assert!(told.starts_with("Err(Refused)") && told.contains(wanted), "{told}");
}
