//! Processes that have one secret, over a network.

use crate::world::{Seen, segment};
use cci_am::{Endpoint, Handlers, Options, Reply, Request, Returned, TAG_ALL};
use cci_conformance::sealed::{PAUSE, Serving, check};
use cci_conformance::{LIMIT, pattern};
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Replies with the same bytes.
const ECHO: u8 = 1;
/// Takes bulk, and replies without bytes.
const TAKE: u8 = 2;
/// Takes a reply.
const BACK: u8 = 3;
/// Longer than a message of `sock`, so that it goes in parts, and by RMA where it is bulk.
const LEN: usize = 40_000;

/// Notes a request, and returns its bytes.
fn note(seen: &mut Seen, request: &Request<'_>) -> Vec<u8> {
    let bytes = request.payload().to_vec();
    seen.requests.push((request.arguments().to_vec(), bytes.clone()));
    bytes
}

fn echo(seen: &mut Seen, request: Request<'_>) {
    let bytes = note(seen, &request);
    request.reply_medium(BACK, &[], &bytes).expect("what came can go back");
}

fn take(seen: &mut Seen, request: Request<'_>) {
    note(seen, &request);
    request.reply(BACK, &[]).expect("no arguments");
}

fn back(seen: &mut Seen, reply: Reply<'_>) {
    seen.replies.push((Vec::new(), reply.payload().to_vec()));
}

fn returned(seen: &mut Seen, back: Returned<'_>) {
    seen.returned.push((back.status(), back.handler(), back.arguments().to_vec()));
}

fn open(device: &cci::Device, limit: Duration) -> Endpoint<Seen> {
    let handlers = Handlers::new().request(ECHO, echo).request(TAKE, take).reply(BACK, back).returned(returned);
    Endpoint::open(device, &Options::new().send_timeout(limit), handlers, Seen::default()).expect("an endpoint")
}

fn serve(device: &cci::Device, serving: &Serving) -> usize {
    let mut endpoint = open(device, LIMIT);
    endpoint.set_segment(Some(segment(LEN))).expect("room");
    serving.announce(endpoint.name());
    while serving.goes_on(Duration::ZERO) {
        endpoint.wait(Some(PAUSE)).expect("usable");
    }
    let requests = &endpoint.state().requests;
    assert!(requests.iter().all(|(_, bytes)| *bytes == pattern(7, LEN)));
    requests.len() / 2
}

fn call(device: &cci::Device, server: &str, limit: Duration) -> Result<(), String> {
    fn sentence(why: impl Display) -> String {
        why.to_string()
    }
    let mut client = open(device, limit);
    let (to, bytes) = (client.map(server, TAG_ALL).map_err(sentence)?, pattern(7, LEN));
    let begun = Instant::now();
    for is_bulk in [false, true] {
        let sent = if is_bulk {
            client.request_bulk(to, TAKE, &[], &bytes, 0)
        } else {
            client.request_medium(to, ECHO, &[], &bytes)
        };
        sent.map_err(sentence)?;
        while client.outstanding(to) > 0 {
            assert!(begun.elapsed() < LIMIT, "a request that does not end");
            client.wait(Some(PAUSE)).expect("usable");
        }
        if let Some((status, ..)) = client.state().returned.first() {
            return Err(status.to_string());
        }
    }
    assert!(client.state().replies == [(Vec::new(), bytes), (Vec::new(), Vec::new())]);
    Ok(())
}

#[test]
fn members_of_a_group_exchange_sealed_messages_and_strangers_do_not() {
    check("sealed::members_of_a_group_exchange_sealed_messages_and_strangers_do_not", serve, call);
}
