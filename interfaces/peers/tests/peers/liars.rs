//! Peers that speak the format wrongly, and strangers.

use crate::world::{Side, open, sim, until};
use cci::{Connect, Endpoint, Event, Notify};
use cci_conformance::{LIMIT, sm_device};
use cci_peers::{Lost, Name, Options, Table};
use std::time::Instant;

/// The payload of a request for peer 0, of a side that calls itself by this number.
fn hello(target: u64, own: u64) -> Vec<u8> {
    attempt(target, own, 1)
}

/// The same, of the attempt with this number.
fn attempt(target: u64, own: u64, serial: u32) -> Vec<u8> {
    let name = |number: u64| [&[1, 8, 0][..], &number.to_le_bytes()].concat();
    [b"ccipeer1", &[7; 8][..], &serial.to_le_bytes(), &0u32.to_le_bytes(), &name(target), &name(own)].concat()
}

/// How a request with this payload ends, and with which connection.
fn ask(liar: &Endpoint, side: &mut Side, payload: &[u8]) -> bool {
    liar.connect(&Connect::to(side.endpoint.uri()).payload(payload).timeout(LIMIT)).expect("a URI");
    let begun = Instant::now();
    loop {
        side.step();
        match liar.get_event().expect("usable") {
            Some(Event::Connected(_)) => return true,
            Some(Event::ConnectFailed(_)) => return false,
            _ => assert!(begun.elapsed() < LIMIT, "no answer"),
        }
    }
}

#[test]
fn requests_for_others_and_of_oneself_are_rejected() {
    for device in [sm_device(), sim()] {
        let mut side = Side::new(open(&device), 0, &Table::new(), &Options::new().most_peers(1));
        let liar = open(&device);
        assert!(!ask(&liar, &mut side, &hello(5, 1)), "for another name");
        assert!(!ask(&liar, &mut side, &hello(0, 0)), "of itself");
        assert!(ask(&liar, &mut side, &hello(0, 1)));
        assert!(!ask(&liar, &mut side, &hello(0, 2)), "a second peer, where one may be");
        assert_eq!(side.peers.counts().strangers, 3);
        crate::world::close(vec![side, Side::new(liar, 9, &Table::new(), &Options::new())]);
    }
}

/// The peer has noticed first that the link is broken, and asks again; a request that it made
/// before the link is late.
#[test]
fn a_later_request_of_the_same_process_replaces_the_link_and_an_earlier_one_does_not() {
    let device = sm_device();
    let mut side = [Side::new(open(&device), 0, &Table::new(), &Options::new())];
    let peer = open(&device);
    assert!(ask(&peer, &mut side[0], &attempt(0, 1, 5)));
    until(&mut side, "a link", |side| side[0].ups.len() == 1);
    assert!(!ask(&peer, &mut side[0], &attempt(0, 1, 5)) && !ask(&peer, &mut side[0], &attempt(0, 1, 4)));
    assert_eq!((side[0].ups.len(), side[0].downs.len()), (1, 0));
    assert!(ask(&peer, &mut side[0], &attempt(0, 1, 6)));
    until(&mut side, "the second link", |side| side[0].ups.len() == 2);
    let one = Name::Number(1);
    assert_eq!(side[0].ups, [(one.clone(), true), (one.clone(), false)]);
    assert_eq!(side[0].downs, [(one, Lost::Closed)]);
}

/// It accepts, and then sends something else than who it is: the link does not come up, and what
/// waits goes to nobody.
#[test]
fn a_first_message_that_is_wrong_ends_its_connection() {
    for first in [&b""[..], b"hello", b"ccipeerw", &[0; 20], &[0; 21]] {
        let device = sm_device();
        let liar = open(&device);
        let mut table = Table::new();
        table.insert(Name::Number(1), liar.uri());
        let mut side = [Side::new(open(&device), 0, &table, &Options::new())];
        side[0].post(1, 1);
        let mut is_closed = false;
        until(&mut side, "the close", |_| {
            match liar.get_event().expect("usable") {
                Some(Event::Request(request)) => request.accept(1).expect("room"),
                Some(Event::Accepted(accepted)) => {
                    let connection = accepted.connection().expect("open");
                    liar.send(connection, first, Notify::OnFailure(0)).expect("room");
                }
                Some(Event::Received(message)) => panic!("{:?} went to a liar", message.to_vec()),
                Some(Event::Disconnected(_)) => is_closed = true,
                _ => (),
            }
            is_closed
        });
        assert!(side[0].ups.is_empty() && side[0].peers.counts().malformed >= 1);
    }
}
