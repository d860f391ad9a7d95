//! Answers to connection requests.

use crate::fixture::{End, LIMIT};
use crate::format::layout::{body, kind};
use crate::lane::Phase;
use crate::lane::table::RETRIES;
use crate::setup::handshake::Cause;
use cci_mem::ring::Header;
use cci_proto::{Attribute, EventKind, RequestError, Status};
use cci_transport::{Connect, Slot, Transport};
use std::time::Instant;

/// A client connects to this server.
fn connect(client: &mut End, server: &End) {
    let uri = server.sm.uri().to_owned();
    let attribute = Attribute::ReliableOrdered;
    let connect = Connect { uri: &uri, payload: b"", attribute, context: 7, timeout: Some(LIMIT) };
    client.sm.connect(&mut client.core, &connect).expect("a connect");
}

/// A client and a server, and the client's request at the server.
fn request() -> (End, End, &'static Slot) {
    let (mut client, mut server) = (End::new(), End::new());
    connect(&mut client, &server);
    let begun = Instant::now();
    loop {
        assert!(client.call().is_none() && begun.elapsed() < LIMIT, "no request");
        if let Some(slot) = server.call() {
            assert_eq!(slot.kind(), EventKind::ConnectRequest as u32);
            return (client, server, slot);
        }
    }
}

/// The next event of the client, while the server calls.
fn event(client: &mut End, server: &mut End) -> &'static Slot {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < LIMIT, "no event");
        server.call();
        if let Some(slot) = client.call() {
            return slot;
        }
    }
}

#[test]
fn a_request_whose_redirection_is_refused_can_still_be_accepted() {
    let (mut client, mut broker, request) = request();
    let too_long = format!("sm://{}", "1".repeat(100));
    let refused = broker.sm.redirect(&mut broker.core, request, &too_long, 1);
    assert_eq!(refused, Err(RequestError::OtherDevice));
    assert!(broker.sm.peer(request).is_some(), "the request is gone");
    broker.sm.accept(&mut broker.core, request, 0).expect("an accept");
    let connected = event(&mut client, &mut broker);
    assert_eq!((connected.kind(), connected.detail()), (EventKind::Connect as u32, 0));
    assert!(connected.connection.get().is_some());
}

/// A lying server uses a connection before it has accepted it.
#[test]
fn frames_for_a_connection_that_is_not_open_yet_are_dropped() {
    let (mut client, mut server, request) = request();
    let slow = server.sm.slow();
    let lane = slow.lanes.iter_mut().flatten().next().expect("a lane");
    let number = lane.requests.get(request).expect("the request").number;
    for (kind, len, first) in [(kind::MESSAGE, 8, 0), (kind::LARGE, 0, 100), (kind::LANDED, 0, 0)] {
        lane.post(&mut slow.state, Header { kind, len, word: number }, body([first, number.into()]), None);
    }
    let strays = client.sm.seen().state.strays;
    let begun = Instant::now();
    while client.sm.seen().state.strays == strays {
        assert!(client.call().is_none() && begun.elapsed() < LIMIT, "the program was shown a message");
        server.call();
    }
    server.sm.reject(&mut server.core, request).expect("a reject");
    let failed = event(&mut client, &mut server);
    assert_eq!((failed.kind(), failed.detail()), (EventKind::Connect as u32, Status::ConnRefused as u32));
    assert!(client.call().is_none(), "one event a connect");
}

/// A client may be sent on once; a server that hides that it did could send it on for ever.
#[test]
fn a_client_is_not_sent_on_without_a_token() {
    let (mut client, mut server, request) = request();
    let elsewhere = End::new();
    server.sm.redirect(&mut server.core, request, elsewhere.sm.uri(), 0).expect("a redirection");
    let failed = event(&mut client, &mut server);
    assert_eq!((failed.kind(), failed.detail()), (EventKind::Connect as u32, Status::ConnRefused as u32));
}

/// A connect that meets so many lanes which the server closes for lack of use: how often its
/// program was asked, and what has become of the connect.
fn connect_while_lanes_close(closes: u8) -> (u32, Status) {
    let (mut client, mut server) = (End::new(), End::new());
    let first = client.connect(&mut server);
    client.sm.disconnect(&mut client.core, first);
    let begun = Instant::now();
    while server.sm.seen().lane(0).expect("a lane").table.cells().next().is_some() {
        assert!(server.call().is_none_or(Slot::give_back) && begun.elapsed() < LIMIT);
    }
    connect(&mut client, &server);
    assert_eq!(client.sm.seen().lanes.iter().flatten().count(), 1, "it goes over the lane that there is");
    let (mut requests, mut left) = (0, closes);
    loop {
        assert!(begun.elapsed() < LIMIT, "no answer");
        // Before the client calls again: on a new lane its CONNECT has not come yet.
        let ready = server.sm.seen().lanes.iter().flatten().find(|lane| lane.phase == Phase::Ready);
        if let Some(number) = ready.map(|lane| lane.number()).filter(|_| left > 0) {
            server.sm.slow().tear_down(&mut server.core, number, Cause::Idle);
            left -= 1;
        }
        if let Some(slot) = client.call() {
            assert_eq!((slot.kind(), left), (EventKind::Connect as u32, 0));
            return (requests, Status::from_u32(slot.detail()).expect("a status"));
        }
        if let Some(slot) = server.call() {
            if slot.kind() == EventKind::ConnectRequest as u32 {
                requests += 1;
                server.sm.accept(&mut server.core, slot, 0).expect("the client of a request is there");
            }
            assert!(slot.give_back());
        }
    }
}

/// The client's CONNECT is in the ring of a lane that the server closes for lack of use, or comes
/// to one that it has closed meanwhile.
#[test]
fn a_connect_on_lanes_that_close_gives_one_request_and_succeeds_on_another() {
    for closes in [1, 2, RETRIES] {
        assert_eq!(connect_while_lanes_close(closes), (1, Status::Success), "{closes} lanes");
    }
}

/// A peer that takes every lane and closes it does not keep a client for ever.
#[test]
fn a_connect_on_lanes_that_all_close_ends() {
    assert_eq!(connect_while_lanes_close(RETRIES + 1), (0, Status::Disconnected));
}
