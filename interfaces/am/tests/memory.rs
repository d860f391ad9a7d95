//! What a mapped peer takes beyond its connection, over `sm`, by counting what is allocated.

#![forbid(unsafe_code)]

use cci::{Connect, Endpoint, EndpointOptions, Event};
use cci_am::{Handlers, Options, TAG_ALL};
use cci_conformance::sm_device;
use cci_instruments::{CountingAllocator, bytes_in_use};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Peers: the table that holds them is full, so that room for further ones does not count.
const PEERS: usize = 1024;
/// Bytes that each may take.
const MOST: usize = 160;

fn open() -> Endpoint {
    Endpoint::open(&sm_device(), &EndpointOptions::new()).expect("an endpoint")
}

/// Takes what comes to a server, which accepts everybody and otherwise does nothing.
fn serve(server: &Endpoint) {
    while let Some(event) = server.get_event().expect("usable") {
        if let Event::Request(request) = event {
            request.accept(0).expect("accepted");
        }
    }
}

/// Bytes for so many connections of CCI alone, both ends.
fn of_connections() -> usize {
    let (server, client) = (open(), open());
    let uri = server.uri().to_owned();
    let connect = || {
        client.connect(&Connect::to(&uri)).expect("a URI");
        loop {
            serve(&server);
            if let Some(Event::Connected(_)) = client.get_event().expect("usable") {
                return;
            }
        }
    };
    connect();
    let before = bytes_in_use();
    (0..PEERS).for_each(|_| connect());
    bytes_in_use() - before
}

/// Bytes for so many mapped peers, whose other ends are those of connections alone.
fn of_peers() -> usize {
    let server = open();
    let uri = server.uri().to_owned();
    let mut client = cci_am::Endpoint::open(&sm_device(), &Options::new(), Handlers::new(), ()).expect("an endpoint");
    let mut map = || {
        let peer = client.map(&uri, TAG_ALL).expect("a URI");
        while client.longest_in_place(peer).is_none() {
            serve(&server);
            client.poll().expect("usable");
        }
    };
    map();
    let before = bytes_in_use();
    (1..PEERS).for_each(|_| map());
    bytes_in_use() - before
}

#[test]
fn a_mapped_peer_takes_at_most_160_bytes_beyond_its_connection() {
    // What is allocated once for all, and again by nobody.
    of_connections();
    of_peers();
    let (connections, peers) = (of_connections(), of_peers());
    let each = peers.saturating_sub(connections).div_ceil(PEERS);
    assert!((1..=MOST).contains(&each), "{each} bytes: {peers} for peers, {connections} for connections");
}
