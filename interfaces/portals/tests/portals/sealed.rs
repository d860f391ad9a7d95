//! Processes that have one secret, over a network.

use crate::world::{GET, PUT, Side, anything, bytes, other, pattern, side, zeroes};
use cci::{Device, Endpoint};
use cci_conformance::sealed::{PAUSE, Serving, check};
use cci_peers::{Name, Table};
use cci_portals::{EventKind, Limits, buffer, endpoint_options, options};
use std::time::{Duration, Instant};

/// Longer than a message, so that it goes by RMA.
const SIZE: usize = 100_000;

fn open(device: &Device, number: u32, table: &Table) -> Side {
    let endpoint = Endpoint::open(device, &endpoint_options()).expect("an endpoint");
    side(endpoint, number, table, Limits::default())
}

fn serve(device: &Device, serving: &Serving) -> usize {
    let target = open(device, 0, &Table::new());
    target.post(anything(), &zeroes(SIZE), PUT | GET | options::MANAGE_REMOTE);
    serving.announce(target.ni.uri());
    let mut served = 0;
    while serving.goes_on(Duration::ZERO) {
        target.ni.make_progress(PAUSE).expect("open");
        while let Some(event) = target.event() {
            assert_eq!(event.failure, 0, "{event:?}");
            served += usize::from(event.kind == EventKind::GetEnd);
        }
    }
    served
}

fn call(device: &Device, server: &str, limit: Duration) -> Result<(), String> {
    let mut table = Table::new();
    table.insert(Name::Number(9 << 32), server);
    let initiator = open(device, 1, &table);
    let (source, sink) = (initiator.bind(&buffer(pattern(SIZE, 3))), zeroes(SIZE));
    let begun = Instant::now();
    let until = |kind| {
        loop {
            match initiator.event() {
                Some(event) if event.failure != 0 => return Err(format!("{:?} has failed", event.kind)),
                Some(event) if event.kind == kind => return Ok(()),
                Some(_) => {}
                None if begun.elapsed() > limit => return Err(format!("no {kind:?} within {limit:?}")),
                None => initiator.ni.make_progress(PAUSE).expect("open"),
            }
        }
    };
    initiator.ni.put(source, None, true, &other(0)).expect("room");
    until(EventKind::Ack)?;
    let memory = initiator.bind(&sink);
    initiator.ni.get(memory, None, &other(0)).expect("room");
    until(EventKind::ReplyEnd)?;
    assert!(bytes(&sink) == pattern(SIZE, 3));
    Ok(())
}

#[test]
fn members_of_a_group_exchange_sealed_messages_and_strangers_do_not() {
    check("sealed::members_of_a_group_exchange_sealed_messages_and_strangers_do_not", serve, call);
}
