//! Endpoints that are found by a host and a port.

use crate::world::{LONG, Side, domain, of};
use cci_fabric::Record;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

/// A port that nobody listens at now.
fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("its address")
}

#[test]
fn who_listens_at_a_port_is_asked_for_its_record_as_often_as_anybody_wants() {
    let (domain, place) = (domain("auto"), free());
    let server = Side::at(&domain, 0, Some(place));
    let record = server.endpoint.address().expect("it is enabled");
    // More than it serves at a time.
    let asked = std::thread::scope(|scope| {
        let asks = scope.spawn(|| [(); 20].map(|()| domain.ask("127.0.0.1", place.port(), LONG)));
        while !asks.is_finished() {
            server.turn();
        }
        asks.join().expect("no panic")
    });
    assert_eq!(asked, [(); 20].map(|()| Ok(Record::from_bytes(&record).expect("a record"))));

    let client = Side::new(&domain);
    let to = client.vector.insert(&record).expect("a record");
    client.send(to, &of(vec![3; 8]), 1, 1, 0).expect("a send");
    let received = crate::world::memory(8);
    server.receive(&received, 1, 2).expect("a receive");
    assert_eq!(server.next_beside(&client).map(|entry| entry.context), Ok(2));
    assert_eq!(crate::world::bytes(&received), [3; 8]);
}

#[test]
fn where_nobody_listens_or_answers_there_is_a_reason() {
    let domain = domain("auto");
    let why = domain.ask("127.0.0.1", free().port(), LONG).expect_err("nobody is there");
    assert!(why.contains("refused") || why.contains("nobody"), "{why}");
    // It makes no progress.
    let place = free();
    let _silent = Side::at(&domain, 0, Some(place));
    let limit = Duration::from_millis(200);
    domain.ask("127.0.0.1", place.port(), limit).expect_err("it does not answer");
}
