//! Peers that speak the format wrongly, byte by byte: each is dropped with its connection, no
//! memory is touched, and others go on.

use crate::world::{Seen, segment};
use cci::{Connect, Connection, Device, Endpoint as Raw, EndpointOptions, Event, Memory, Notify};
use cci_am::{Endpoint, Handlers, Options, Peer, Reply, Request, Returned, Status, TAG_ALL};
use cci_conformance::{LIMIT, device_of, sm_device};
use std::time::Instant;

const ECHO: u8 = 1;
const BACK: u8 = 2;
/// Bytes of the honest endpoint's segment.
const SEGMENT: usize = 4096;

fn echo(seen: &mut Seen, request: Request<'_>) {
    seen.requests.push((request.arguments().to_vec(), request.payload().to_vec()));
    let arguments = request.arguments();
    request.reply(BACK, arguments).expect("as many as came");
}

fn back(seen: &mut Seen, reply: Reply<'_>) {
    seen.replies.push((reply.arguments().to_vec(), Vec::new()));
}

fn returned(seen: &mut Seen, returned: Returned<'_>) {
    seen.returned.push((returned.status(), returned.handler(), returned.arguments().to_vec()));
}

fn honest(device: &Device) -> Endpoint<Seen> {
    honest_with(device, 8)
}

fn honest_with(device: &Device, credits: u32) -> Endpoint<Seen> {
    let handlers = Handlers::new().request(ECHO, echo).reply(BACK, back).returned(returned);
    Endpoint::open(device, &Options::new().credits(credits), handlers, Seen::default()).expect("an endpoint")
}

/// A message: kind, handler, count, flags, id, and what follows.
fn message([kind, handler, count, flags]: [u8; 4], id: u32, rest: &[u8]) -> Vec<u8> {
    [&[kind, handler, count, flags], &id.to_le_bytes()[..], rest].concat()
}

fn hello() -> Vec<u8> {
    [&[1, b'A', b'M', 0, 0, 0, 0, 0], &TAG_ALL.to_le_bytes()[..], &message([15, 0, 0, 0], 0, &[0; 40]), b"a liar"]
        .concat()
}

fn span(offset: u64, len: u64, epoch: u32) -> Vec<u8> {
    [&offset.to_le_bytes()[..], &len.to_le_bytes(), &epoch.to_le_bytes()].concat()
}

/// Every lie of a requester: its messages, one after the other.
fn lies_of_requesters() -> Vec<Vec<Vec<u8>>> {
    let one = |lie| vec![lie];
    vec![
        one(vec![1, 2, 3]),
        one(message([99, 0, 0, 0], 0, b"")),
        one(message([0, 0, 0, 0], 0, b"")),
        one(message([1, ECHO, 0, 0], 0, b"short")),
        one(message([1, ECHO, 17, 0], 0, &[0; 68])),
        one(message([1, ECHO, 5, 0], 0, &[0; 19])),
        // Parts of nothing, more parts than were announced, an empty one, a whole one that was cut.
        one(message([8, 0, 0, 0], 0, b"part")),
        vec![message([2, ECHO, 0, 0], 0, &[9, 0, 0, 0, 1]), message([8, 0, 0, 0], 0, &[0; 9])],
        vec![message([2, ECHO, 0, 0], 0, &[9, 0, 0, 0, 1]), message([8, 0, 0, 0], 0, b"")],
        one(message([2, ECHO, 0, 0], 0, &[1, 0, 0, 0, 1])),
        one(message([2, ECHO, 0, 0], 0, &[1, 0])),
        // Another request amid parts.
        vec![message([2, ECHO, 0, 0], 0, &[9, 0, 0, 0, 1]), message([1, ECHO, 0, 0], 0, b"")],
        // Beyond the segment, and where a sum would wrap; half a place.
        one(message([3, ECHO, 0, 0], 0, &span(SEGMENT as u64, 1, 1))),
        one(message([3, ECHO, 0, 0], 0, &span(u64::MAX, 2, 1))),
        one(message([3, ECHO, 0, 0], 0, &span(0, 1, 1)[..19])),
        one(message([4, ECHO, 0, 1], 0, b"")),
        // Credits that nobody asked back, what only targets send, half a segment.
        one(message([14, 0, 0, 0], 1, b"")),
        one(message([5, BACK, 0, 1], 0, b"")),
        one(message([12, 0, 0, 0], 1, b"")),
        one(message([15, 0, 0, 0], 1, &[1; 39])),
    ]
}

/// Every lie of a target, in answer to the request with this number.
fn lies_of_targets(id: u32) -> Vec<Vec<Vec<u8>>> {
    let one = |lie| vec![lie];
    let reply = message([5, BACK, 0, 0], id, b"");
    vec![
        one(message([5, BACK, 0, 1], id ^ 0x1_0000, b"")),
        one(message([5, BACK, 0, 1], 77, b"")),
        vec![reply.clone(), reply],
        one(message([10, 2, 1, 0], 0, &id.to_le_bytes())),
        one(message([10, 0, 1, 0], 0, &77u32.to_le_bytes())),
        one(message([9, 77, 0, 1], id, b"")),
        one(message([9, Status::BadTag as u8, 0, 1], 77, b"")),
        vec![message([12, 0, 0, 0], u32::MAX, b""); 2],
        one(message([8, 0, 0, 0], id, b"part")),
        one(message([6, BACK, 0, 0], 77, &[9, 0, 0, 0, 1])),
        one(message([7, BACK, 0, 0], id, &span(SEGMENT as u64, 1, 1))),
        one(message([1, ECHO, 0, 0], 0, b"")),
        one(message([11, 0, 0, 0], 0, b"")),
    ]
}

/// Polls all until the liar's connection has ended, or is open.
fn until_of(raw: &Raw, honest: &mut [&mut Endpoint<Seen>], is_open: bool) -> Option<Connection> {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < LIMIT, "the liar's connection: open is to be {is_open}");
        for endpoint in honest.iter_mut() {
            endpoint.poll().expect("usable");
        }
        match raw.get_event().expect("usable") {
            Some(Event::Request(request)) => request.accept(0).expect("room"),
            Some(event @ (Event::Connected(_) | Event::Accepted(_))) if is_open => return event.connection(),
            Some(Event::Disconnected(_)) if !is_open => return None,
            _ => {}
        }
    }
}

fn raw(device: &Device) -> Raw {
    Raw::open(device, &EndpointOptions::new().disconnect_events(true)).expect("an endpoint")
}

fn tell(raw: &Raw, connection: Connection, lies: &[Vec<u8>]) {
    for lie in lies {
        // Refused once the other side has closed.
        let _ = raw.send(connection, lie, Notify::OnFailure(0));
    }
}

/// A request of an honest peer is served.
fn serves(server: &mut Endpoint<Seen>, client: &mut Endpoint<Seen>, peer: Peer) {
    let (before, begun) = (client.state().replies.len(), Instant::now());
    let mut is_sent = false;
    while client.state().replies.len() == before {
        assert!(begun.elapsed() < LIMIT, "an honest peer is not served");
        is_sent = is_sent || client.now().request(peer, ECHO, &[7]).is_ok();
        server.poll().expect("usable");
        client.poll().expect("usable");
    }
}

fn requesters_that_lie(device: &Device) {
    let (mut server, mut client) = (honest(device), honest(device));
    let memory: Memory = segment(SEGMENT);
    server.set_segment(Some(memory.clone())).expect("a registration");
    let (name, zeroes) = (server.name().to_owned(), vec![0; SEGMENT]);
    let peer = client.map(&name, TAG_ALL).expect("a URI");
    for lies in lies_of_requesters() {
        let liar = raw(device);
        liar.connect(&Connect::to(&name).payload(&hello())).expect("a connect");
        let connection = until_of(&liar, &mut [&mut server], true).expect("open");
        tell(&liar, connection, &lies);
        until_of(&liar, &mut [&mut server], false);
        serves(&mut server, &mut client, peer);
        let mut found = vec![1; SEGMENT];
        assert!(memory.copy_out(0, &mut found) && found == zeroes);
    }
    assert!(
        server.state().requests.iter().all(|(arguments, _)| arguments.len() <= 1),
        "only what had a credit has run"
    );
}

fn targets_that_lie(device: &Device) {
    let (mut server, mut client) = (honest(device), honest(device));
    client.set_segment(Some(segment(SEGMENT))).expect("a registration");
    let name = server.name().to_owned();
    let good = client.map(&name, TAG_ALL).expect("a URI");
    for at in 0..lies_of_targets(0).len() {
        let liar = raw(device);
        let bad = client.map(liar.uri(), TAG_ALL).expect("a URI");
        let connection = until_of(&liar, &mut [&mut client], true).expect("open");
        tell(&liar, connection, &[message([12, 0, 0, 0], 2, b"")]);
        let begun = Instant::now();
        while client.now().request(bad, ECHO, &[9]).is_err() {
            assert!(begun.elapsed() < LIMIT, "no credit has come");
            client.poll().expect("usable");
            let _ = liar.get_event();
        }
        let id = loop {
            match liar.get_event().expect("usable") {
                Some(Event::Received(request)) if request.to_vec()[0] == 1 => {
                    break u32::from_le_bytes(request.to_vec()[4..8].try_into().expect("four bytes"));
                }
                _ => assert!(begun.elapsed() < LIMIT, "no request has come"),
            }
            client.poll().expect("usable");
        };
        tell(&liar, connection, &lies_of_targets(id)[at]);
        until_of(&liar, &mut [&mut client], false);
        assert_eq!(client.outstanding(bad), 0, "lie {at}");
        client.unmap(bad);
        serves(&mut server, &mut client, good);
    }
    assert!(client.state().returned.iter().all(|back| *back == (Status::Unreachable, ECHO, vec![9])));
    assert_eq!(client.state().returned.len(), lies_of_targets(0).len() - 1, "one lie was a second reply");
}

/// Of three credits none is given to who has not asked.
#[test]
fn a_request_without_a_credit() {
    let device = sm_device();
    let (mut server, liar) = (honest_with(&device, 3), raw(&device));
    liar.connect(&Connect::to(server.name()).payload(&hello())).expect("a connect");
    let connection = until_of(&liar, &mut [&mut server], true).expect("open");
    tell(&liar, connection, &[message([1, ECHO, 0, 0], 0, b"")]);
    until_of(&liar, &mut [&mut server], false);
    assert_eq!(server.state().requests.len(), 0);
}

#[test]
fn requesters_that_lie_over_sm() {
    requesters_that_lie(&sm_device());
}

#[test]
fn requesters_that_lie_over_sock() {
    requesters_that_lie(&device_of("sock", &[("ip", "127.0.0.1")]));
}

#[test]
fn targets_that_lie_over_sm() {
    targets_that_lie(&sm_device());
}

#[test]
fn targets_that_lie_over_sock() {
    targets_that_lie(&device_of("sock", &[("ip", "127.0.0.1")]));
}
