//! Connect, accept, reject.

use super::lengths;
use crate::sys::RawEvent;
use crate::world::{LIMIT, World, drain, most, open, open_with, pattern, readable};
use cci::{Attribute, Connect, ConnectError, Device, Endpoint, EventKind, Failure, Notify, RequestError};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// Either side sees its context, the other's payload, the attribute, and the same maximum.
pub fn connect_and_accept(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    for attribute in [RO, Attribute::ReliableUnordered, Attribute::Unreliable] {
        client
            .connect(
                &Connect::to(server.uri()).payload(b"hello").attribute(attribute).context(u64::MAX - 1).timeout(LIMIT),
            )
            .expect("a connect");
        let event = world.next(1, EventKind::ConnectRequest);
        let request = event.request().expect("a request");
        assert_eq!((request.payload().as_slice(), request.attribute()), (&b"hello"[..], attribute));
        event.into_request().expect("a request").accept(77).expect("an accept");
        let (accepted, connected) = (world.next(1, EventKind::Accept), world.next(0, EventKind::Connect));
        assert_eq!((accepted.outcome(), accepted.context()), (Ok(()), 77));
        assert_eq!((connected.outcome(), connected.context()), (Ok(()), u64::MAX - 1));
        let (a, b) = (connected.connection().expect("one"), accepted.connection().expect("one"));
        assert_eq!((a.context(), b.context()), (Some(u64::MAX - 1), Some(77)));
        assert_eq!((a.attribute(), b.attribute()), (Some(attribute), Some(attribute)));
        assert!(most(a) > 0 && most(b) > 0);
    }
}

/// 0 to 1,024 bytes of payload (`lengths`) arrive intact.
pub fn payload_of_every_length(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    for len in lengths(device, cci::CONN_REQ_LEN, cci::CONN_REQ_LEN) {
        let payload = pattern(len as u64, len);
        client
            .connect(&Connect::to(server.uri()).payload(&payload).context(len as u64).timeout(LIMIT))
            .expect("a connect");
        let event = world.next(1, EventKind::ConnectRequest);
        assert_eq!(event.request().expect("a request").payload(), payload);
        event.into_request().expect("a request").reject().expect("a reject");
        let ended = world.next(0, EventKind::Connect);
        assert_eq!((ended.outcome(), ended.context()), (Err(Failure::Refused), len as u64));
    }
}

/// 1,025 bytes are refused at once.
pub fn payload_too_long(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    let refused = client.connect(&Connect::to(server.uri()).payload(&[0; 1025]).context(1).timeout(LIMIT));
    assert_eq!(refused, Err(ConnectError::PayloadTooLong));
    assert_eq!(ConnectError::PayloadTooLong.status(), cci::Status::Inval);
    // The next thing that either side hears is about the next connect.
    world.connect(0, 1, RO);
    assert_eq!((drain(&client), drain(&server)), (0, 0));
}

/// What names no endpoint of this transport is refused at once.
pub fn bad_uri(device: &Device) {
    let client = open(device);
    let scheme = client.uri().split("://").next().expect("a scheme").to_owned();
    let wrong = ["", "nonsense", "://", "no-such-transport://1/2", "\0", "sm:/1/2"].map(str::to_owned);
    let no_address = [scheme.clone(), format!("{scheme}:"), format!("{scheme}://"), format!("{scheme}://\0")];
    for uri in wrong.iter().chain(&no_address) {
        assert_eq!(client.connect(&Connect::to(uri).context(1).timeout(LIMIT)), Err(ConnectError::BadUri), "{uri:?}");
    }
    assert_eq!(drain(&client), 0);
}

/// A transport without multicast says so.
pub fn multicast_without_multicast(device: &Device) {
    let (client, server) = (open(device), open(device));
    for attribute in [Attribute::MulticastSend, Attribute::MulticastReceive] {
        let refused = client.connect(&Connect::to(server.uri()).attribute(attribute).context(1).timeout(LIMIT));
        assert_eq!(refused, Err(ConnectError::NotImplemented));
    }
    assert_eq!(drain(&client), 0);
}

/// A rejected client sees Refused and gets no connection.
pub fn reject(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    client.connect(&Connect::to(server.uri()).payload(b"please").context(5)).expect("a connect");
    let event = world.next(1, EventKind::ConnectRequest);
    event.into_request().expect("a request").reject().expect("a reject");
    let ended = world.next(0, EventKind::Connect);
    assert_eq!((ended.outcome(), ended.context()), (Err(Failure::Refused), 5));
    assert_eq!(ended.connection(), None);
    world.connect(0, 1, RO);
}

/// A request that a Rust program drops is rejected, so that its client does not wait for ever.
pub fn dropped_request_is_rejected(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    client.connect(&Connect::to(server.uri()).context(6)).expect("a connect");
    drop(world.next(1, EventKind::ConnectRequest));
    assert_eq!(world.next(0, EventKind::Connect).outcome(), Err(Failure::Refused));
}

/// Where nobody listens (any more) a connect is refused.
pub fn nobody_listens(device: &Device) {
    let (client, server) = (open(device), open(device));
    let uri = server.uri().to_owned();
    server.close().expect("a close");
    let world = World::new([&client]);
    client.connect(&Connect::to(&uri).context(9).timeout(LIMIT)).expect("a connect");
    let ended = world.next(0, EventKind::Connect);
    assert_eq!((ended.outcome(), ended.context()), (Err(Failure::Refused), 9));
}

/// However often connects have failed, the reason of each is short, the same as the first time, and
/// names no other endpoint. Some events are taken by a wait, and some are kept while others come.
pub fn failed_many_times(device: &Device) {
    let (client, server, closed) = (open(device), open(device), open(device));
    let uris = [server.uri().to_owned(), closed.uri().to_owned()];
    closed.close().expect("a close");
    let world = World::new([&client, &server]);
    let handle = client.handle().expect("a handle");
    let addresses = uris.each_ref().map(|uri| uri.split("://").nth(1).expect("an address").to_owned());
    let (mut first, mut kept, begun) = ([None, None], None, Instant::now());
    for round in 0..2000u64 {
        // Where an absent peer is waited for, fewer have to do.
        if round >= 8 && begun.elapsed() > LIMIT / 6 {
            break;
        }
        let at = usize::from(!round.is_multiple_of(2));
        client.connect(&Connect::to(&uris[at]).context(round).timeout(LIMIT)).expect("a connect");
        if at == 0 {
            world.next(1, EventKind::ConnectRequest).into_request().expect("a request").reject().expect("a reject");
        } else if round % 20 == 1 && world.waiting(0, EventKind::Connect) == 0 {
            readable(&handle, Duration::from_millis(1));
        }
        let ended = world.next(0, EventKind::Connect);
        assert_eq!((ended.outcome(), ended.context()), (Err(Failure::Refused), round));
        let reason = ended.reason().unwrap_or_default();
        assert!(reason.len() < 1000, "round {round}: {} bytes: {reason}", reason.len());
        assert!(!reason.contains(&addresses[1 - at]), "round {round}: {reason}");
        // Of two ways the later one may have failed first.
        let mut parts: Vec<_> = reason.split("; ").map(str::to_owned).collect();
        parts.sort_unstable();
        assert_eq!(*first[at].get_or_insert_with(|| parts.clone()), parts, "round {round}");
        kept = (round % 3 == 0).then_some(ended).or(kept.filter(|_| round % 3 != 2));
    }
}

/// A peer that answers nothing: ETIMEDOUT, not before the time.
pub fn connect_times_out(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client]);
    let timeout = Duration::from_millis(100);
    let begun = Instant::now();
    client.connect(&Connect::to(server.uri()).context(3).timeout(timeout)).expect("a connect");
    let ended = world.next(0, EventKind::Connect);
    assert_eq!((ended.outcome(), ended.context()), (Err(Failure::TimedOut), 3));
    // A coarse clock may be a tick ahead.
    assert!(begun.elapsed() >= timeout - Duration::from_millis(20), "after {:?}", begun.elapsed());
    assert_eq!(drain(&client), 0, "one event ends a connect");
}

/// How long a connect waits for a server that lives and has no room: longer than an unused lane or
/// stream is kept.
const NO_ROOM: Duration = Duration::from_millis(2500);

/// A connect that nobody answers waits for its whole time. Returns its reason.
fn time_out(client: &Endpoint, uri: &str, mut meanwhile: impl FnMut()) -> String {
    let begun = Instant::now();
    client.connect(&Connect::to(uri).context(8).timeout(NO_ROOM)).expect("a connect");
    let ended = loop {
        if let Some(event) = client.get_event().expect("an endpoint") {
            break event;
        }
        assert!(begun.elapsed() < NO_ROOM + LIMIT, "the connect does not end");
        meanwhile();
    };
    let reason = ended.reason().unwrap_or_default().to_owned();
    assert_eq!((ended.outcome(), ended.context()), (Err(Failure::TimedOut), 8), "{reason}");
    assert!(begun.elapsed() >= NO_ROOM - Duration::from_millis(20), "after {:?}: {reason}", begun.elapsed());
    reason
}

/// A live server whose program holds every receive buffer, those for requests too, and polls or
/// sleeps: a connect waits for its whole time. Once a buffer is back the next one is accepted.
pub fn server_without_buffers(device: &Device) {
    const BUFFERS: usize = 16;
    let (client, other, crowd) = (open(device), open(device), open(device));
    let server = open_with(device, |options| options.recv_buffers = 16);
    let mut held = Vec::new();
    let connection = World::new([&other, &server]).connect(0, 1, RO).0;
    for number in 0..BUFFERS as u64 {
        other.send(connection, b"held", Notify::OnFailure(number)).expect("a send");
    }
    let begun = Instant::now();
    while held.len() < BUFFERS {
        assert!(begun.elapsed() < LIMIT, "only {} messages have come", held.len());
        drain(&other);
        held.extend(server.get_event().expect("buffers are left"));
    }
    // More than there are buffers for requests: at least as many wait as are let in.
    for number in 0..3 * BUFFERS as u64 {
        crowd.connect(&Connect::to(server.uri()).context(number).timeout(2 * LIMIT)).expect("a connect");
    }
    let (mut quiet, asked) = (Instant::now(), Instant::now());
    // The first one may take long on a loaded machine.
    let is_due = |held: usize| held <= BUFFERS && asked.elapsed() < LIMIT;
    while quiet.elapsed() < Duration::from_millis(300) || is_due(held.len()) {
        drain(&crowd);
        if let Ok(Some(request)) = server.get_event() {
            held.push(request);
            quiet = Instant::now();
        }
    }
    // The first requests of this client may find buffers still.
    let mut reasons = Vec::new();
    while !reasons.last().is_some_and(|reason: &String| reason.contains("no room for another request")) {
        assert!(reasons.len() < 4, "{reasons:?}");
        reasons.push(time_out(&client, server.uri(), || {
            drain(&other);
            drain(&crowd);
            held.extend(server.get_event().ok().flatten());
        }));
    }
    assert!(held.len() > BUFFERS, "requests have buffers of their own");
    // While the program sleeps nothing is told apart.
    time_out(&client, server.uri(), || ());
    held.clear();
    let world = World::new([&client, &server, &other]);
    client.connect(&Connect::to(server.uri()).payload(b"now").context(9).timeout(LIMIT)).expect("a connect");
    loop {
        let request = world.next(1, EventKind::ConnectRequest).into_request().expect("a request");
        if request.payload() == b"now" {
            request.accept(10).expect("an accept");
            break;
        }
        request.reject().expect("a reject");
    }
    assert_eq!(world.next(0, EventKind::Connect).outcome(), Ok(()));
}

/// A server that comes after the client has given up: it sees no request, or one that it accepts in
/// vain; later connects work.
pub fn late_accept(device: &Device) {
    let (client, server) = (open(device), open_with(device, |options| options.disconnect_events = true));
    let both = World::new([&client, &server]);
    for round in 0..5 {
        client
            .connect(&Connect::to(server.uri()).payload(b"late").context(round).timeout(Duration::from_millis(30)))
            .expect("a connect");
        let ended = World::new([&client]).next(0, EventKind::Connect);
        assert_eq!((ended.outcome(), ended.context()), (Err(Failure::TimedOut), round));
        client.connect(&Connect::to(server.uri()).payload(b"in time").context(99).timeout(LIMIT)).expect("a connect");
        let mut in_time = false;
        while !in_time {
            let event = both.next(1, EventKind::ConnectRequest);
            in_time = event.request().expect("a request").payload() == b"in time";
            event.into_request().expect("a request").accept(u64::from(in_time)).expect("an accept");
        }
        let connected = both.next(0, EventKind::Connect);
        assert_eq!((connected.outcome(), connected.context()), (Ok(()), 99));
        loop {
            let accepted = both.next(1, EventKind::Accept);
            if accepted.context() == 1 {
                assert_eq!(accepted.outcome(), Ok(()));
                break;
            }
            if let Some(connection) = accepted.connection() {
                let told = both.next(1, EventKind::Disconnect);
                assert_eq!(told.connection(), Some(connection), "nobody holds the other end");
            }
        }
        client.send(connected.connection().expect("one"), b"there", Notify::OnFailure(0)).expect("a send");
        assert_eq!(both.message(1), b"there");
    }
}

/// A timeout of zero ends the connect, with one event.
pub fn timeout_of_zero(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client]);
    client.connect(&Connect::to(server.uri()).context(3).timeout(Duration::ZERO)).expect("a connect");
    assert_eq!(world.next(0, EventKind::Connect).outcome(), Err(Failure::TimedOut));
    assert_eq!(drain(&client), 0);
}

/// Without a timeout, a connect waits for a server that comes late.
pub fn patient_connect(device: &Device) {
    let (client, server) = (open(device), open(device));
    client.connect(&Connect::to(server.uri()).context(3)).expect("a connect");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(150) {
        assert_eq!(drain(&client), 0, "nobody has answered");
    }
    let world = World::new([&client, &server]);
    let request = world.next(1, EventKind::ConnectRequest);
    request.into_request().expect("a request").accept(4).expect("an accept");
    assert_eq!(world.next(0, EventKind::Connect).outcome(), Ok(()));
}

/// Two connects in flight to one server are told apart by context and payload.
pub fn two_connects_in_flight(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    for name in [1u8, 2] {
        client
            .connect(&Connect::to(server.uri()).payload(&[name]).context(u64::from(name)).timeout(LIMIT))
            .expect("a connect");
    }
    let requests = [world.next(1, EventKind::ConnectRequest), world.next(1, EventKind::ConnectRequest)];
    for event in requests {
        let request = event.into_request().expect("a request");
        match request.payload()[..] {
            [1] => request.accept(11).expect("an accept"),
            [2] => request.reject().expect("a reject"),
            ref other => panic!("payload {other:?}"),
        }
    }
    let ends = [world.next(0, EventKind::Connect), world.next(0, EventKind::Connect)];
    for end in &ends {
        let expected = if end.context() == 1 { Ok(()) } else { Err(Failure::Refused) };
        assert_eq!(end.outcome(), expected, "context {}", end.context());
    }
    let connection = ends.iter().find_map(cci::Event::connection).expect("the accepted one");
    client.send(connection, b"one", 0).expect("a send");
    assert_eq!(world.next(1, EventKind::Recv).connection().and_then(|c| c.context()), Some(11));
}

/// Many connects in flight at once, each answered as its payload says.
pub fn many_connects_in_flight(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    for number in 0..200u64 {
        client
            .connect(&Connect::to(server.uri()).payload(&number.to_ne_bytes()).context(number).timeout(LIMIT))
            .expect("a connect");
    }
    for _ in 0..200 {
        let event = world.next(1, EventKind::ConnectRequest);
        let request = event.into_request().expect("a request");
        let number = u64::from_ne_bytes(request.payload().try_into().expect("8 bytes"));
        if number.is_multiple_of(3) { request.reject() } else { request.accept(number) }.expect("an answer");
    }
    let mut seen = [false; 200];
    for _ in 0..200 {
        let event = world.next(0, EventKind::Connect);
        let number = event.context();
        assert_eq!(event.outcome().is_ok(), !number.is_multiple_of(3), "connect {number}");
        let place = &mut seen[usize::try_from(number).expect("small")];
        assert!(!std::mem::replace(place, true), "connect {number} ended twice");
    }
}

/// An endpoint connects to itself, and messages go both ways.
pub fn connect_to_itself(device: &Device) {
    let endpoint = open(device);
    let world = World::new([&endpoint]);
    let (client, server) = world.connect(0, 0, RO);
    assert_ne!(client, server);
    for number in 0..1000u64 {
        let from = if number.is_multiple_of(2) { client } else { server };
        endpoint.send(from, &number.to_ne_bytes(), number).expect("a send");
        assert_eq!(world.message(0), number.to_ne_bytes());
        assert_eq!(world.sent(0), number);
    }
}

/// A request may stay open while others are served.
pub fn request_kept_open(device: &Device) {
    let (first, second, server) = (open(device), open(device), open(device));
    let world = World::new([&first, &second, &server]);
    first.connect(&Connect::to(server.uri()).payload(b"keep me").context(1)).expect("a connect");
    let kept = world.next(2, EventKind::ConnectRequest);
    for from in [1, 0] {
        for round in 0..20u64 {
            let (connection, accepted) = world.connect(from, 2, RO);
            let client = if from == 1 { &second } else { &first };
            client.send(connection, &round.to_ne_bytes(), Notify::OnFailure(0)).expect("a send");
            assert_eq!(world.message(2), round.to_ne_bytes());
            client.disconnect(connection).expect("a disconnect");
            server.disconnect(accepted).expect("a disconnect");
        }
    }
    assert_eq!(kept.request().expect("a request").payload(), b"keep me");
    kept.into_request().expect("a request").accept(8).expect("an accept");
    let connection = world.next(0, EventKind::Connect).connection().expect("one");
    first.send(connection, b"at last", Notify::OnFailure(0)).expect("a send");
    assert_eq!(world.message(2), b"at last");
}

/// A second answer to a request is refused, whatever the first was.
pub fn double_answer(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    for accept in [true, false] {
        client.connect(&Connect::to(server.uri()).context(1).timeout(LIMIT)).expect("a connect");
        let event = RawEvent::of(world.next(1, EventKind::ConnectRequest));
        if accept { event.accept(1) } else { event.reject() }.expect("an answer");
        assert_eq!(event.accept(2), Err(RequestError::AlreadyAnswered));
        assert_eq!(event.reject(), Err(RequestError::AlreadyAnswered));
        event.give_back().expect("answered");
        assert_eq!(world.next(0, EventKind::Connect).outcome().is_ok(), accept);
    }
    assert_eq!(world.next(1, EventKind::Accept).context(), 1);
    assert_eq!(drain(&server), 0, "one accept, one event");
}

/// Only a request can be accepted or rejected.
pub fn accept_of_another_event(device: &Device) {
    let (client, server) = (open(device), open(device));
    let (world, connection, _) = World::joined([&client, &server], RO);
    client.send(connection, b"no request", 0).expect("a send");
    for event in [world.next(1, EventKind::Recv), world.next(0, EventKind::Send)] {
        let event = RawEvent::of(event);
        assert_eq!(event.accept(1), Err(RequestError::NotARequest));
        assert_eq!(event.reject(), Err(RequestError::NotARequest));
        event.give_back().expect("still borrowed");
    }
}

/// Returning a request without an answer is refused, and the event stays valid.
pub fn return_of_unanswered_request(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    client.connect(&Connect::to(server.uri()).payload(b"valid").context(1).timeout(LIMIT)).expect("a connect");
    let event = RawEvent::of(world.next(1, EventKind::ConnectRequest));
    assert_eq!(event.give_back(), Err(RequestError::NotAnswered));
    assert_eq!(event.request_payload(), b"valid");
    event.accept(2).expect("an accept");
    event.give_back().expect("answered");
    assert_eq!(world.next(0, EventKind::Connect).outcome(), Ok(()));
}

/// A hundred connections between the same two endpoints stay apart.
pub fn many_connections(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    let pairs: Vec<_> = (0..100).map(|_| world.connect(0, 1, RO)).collect();
    for (number, (connection, _)) in pairs.iter().enumerate().rev() {
        client.send(*connection, &number.to_ne_bytes(), number as u64).expect("a send");
    }
    // Events of different connections come in any order.
    let mut left = [vec![true; pairs.len()], vec![true; pairs.len()]];
    for _ in &pairs {
        let event = world.next(1, EventKind::Recv);
        let bytes = event.received().expect("a message").to_vec();
        let number = usize::from_ne_bytes(bytes.try_into().expect("a number"));
        assert_eq!(event.connection(), Some(pairs[number].1));
        assert!(std::mem::take(&mut left[0][number]), "message {number} twice");
        let sent = world.next(0, EventKind::Send);
        let number = usize::try_from(sent.context()).expect("a number");
        assert_eq!(sent.connection(), Some(pairs[number].0));
        assert!(std::mem::take(&mut left[1][number]), "SEND {number} twice");
    }
}

/// Connecting and disconnecting a thousand times works as the first time, and old names are never
/// mistaken for new ones.
pub fn reconnect_many_times(device: &Device) {
    let (client, server) = (open(device), open(device));
    let world = World::new([&client, &server]);
    let mut old = None;
    for round in 0..1000u64 {
        let (connection, accepted) = world.connect(0, 1, RO);
        // Completed before the disconnect, so that nothing is left that could fail.
        client.send(connection, &round.to_ne_bytes(), round).expect("a send");
        assert_eq!((world.message(1).as_slice(), world.sent(0)), (&round.to_ne_bytes()[..], round));
        if let Some(old) = old.replace(connection) {
            assert!(client.send(old, b"stale", 0).is_err(), "round {round}");
        }
        client.disconnect(connection).expect("a disconnect");
        server.disconnect(accepted).expect("a disconnect");
    }
    let handle = client.handle().expect("a handle");
    assert!(!readable(&handle, Duration::ZERO) || drain(&client) == 0);
}
