//! Processes that have one secret, over a network.

use crate::world::{KEY, NIC, bytes, pattern, post, side};
use cci::Device;
use cci_conformance::LIMIT;
use cci_conformance::sealed::{PAUSE, Serving, check};
use cci_mx::{Code, Endpoint, Options, Request, buffer, endpoint_options};
use cci_peers::{Name, Table};
use std::time::Duration;

/// The bits of a message and of its answer. Messages of this size go by RMA.
const BITS: [u64; 2] = [1, 2];
const SIZE: usize = 100_000;

fn open(device: &Device, id: u32, table: &Table) -> Endpoint {
    let endpoint = cci::Endpoint::open(device, &endpoint_options()).expect("an endpoint");
    side(endpoint, id, table, &Options::new())
}

/// Sleeps until a request has ended well.
fn finish(endpoint: &Endpoint, request: Request) {
    let status = endpoint.wait(request, Some(LIMIT)).expect("a request").expect("an end");
    assert_eq!(status.code, Code::Success);
}

fn serve(device: &Device, serving: &Serving) -> usize {
    let endpoint = open(device, 0, &Table::new());
    serving.announce(endpoint.uri());
    let (mut receive, mut memory) = post(&endpoint, SIZE, BITS[0]);
    let mut served = 0;
    while serving.goes_on(Duration::ZERO) {
        let Some(status) = endpoint.wait(receive, Some(PAUSE)).expect("a request") else { continue };
        assert_eq!(status.code, Code::Success);
        let answer = endpoint.send(buffer(bytes(&memory)), status.source, BITS[1], 0).expect("room");
        finish(&endpoint, answer);
        served += 1;
        (receive, memory) = post(&endpoint, SIZE, BITS[0]);
    }
    served
}

fn call(device: &Device, server: &str, limit: Duration) -> Result<(), String> {
    let mut table = Table::new();
    table.insert(Name::Number(NIC << 32), server);
    let endpoint = open(device, 1, &table);
    let to = endpoint.connect((NIC, 0), KEY, Some(limit)).map_err(|why| why.to_string())?;
    let (receive, memory) = post(&endpoint, SIZE, BITS[1]);
    let sent = endpoint.send(buffer(pattern(SIZE, 3)), to, BITS[0], 0).expect("room");
    finish(&endpoint, sent);
    finish(&endpoint, receive);
    assert!(bytes(&memory) == pattern(SIZE, 3));
    Ok(())
}

#[test]
fn members_of_a_group_exchange_sealed_messages_and_strangers_do_not() {
    check("sealed::members_of_a_group_exchange_sealed_messages_and_strangers_do_not", serve, call);
}
