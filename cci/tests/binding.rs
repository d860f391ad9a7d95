//! Endpoints through their cells, as bindings use them.

#![allow(unsafe_code)]

use cci::__binding::{cell, close, get_event, handle, into_cell};
use cci::{Context, Endpoint, EndpointOptions, PollError, Unusable};

fn open() -> Endpoint {
    let context = Context::new().expect("devices");
    Endpoint::open(context.default_device().expect("a usable device"), &EndpointOptions::new()).expect("an endpoint")
}

#[test]
fn a_closed_endpoint_refuses_through_its_cell() {
    let endpoint = open();
    // SAFETY: there is no event.
    let cell = unsafe { cell(&endpoint) };
    endpoint.close().expect("a close");
    assert_eq!(get_event(cell).err(), Some(PollError::Unusable(Unusable::Closed)));
    // SAFETY: as above.
    assert_eq!(unsafe { close(cell) }, Err(Unusable::Closed.into()));
    assert_eq!(handle(cell).err(), Some(Unusable::Closed));
}

#[test]
fn an_endpoint_survives_its_handle_where_a_binding_takes_it() {
    // SAFETY: there is no event.
    let cell = unsafe { into_cell(open()) };
    assert!(get_event(cell).expect("still open").is_none());
    // SAFETY: as above.
    unsafe { close(cell) }.expect("a close");
}

#[test]
fn a_sleeper_has_the_handle_in_use_until_it_ends() {
    let endpoint = open();
    // SAFETY: there is no event.
    let cell = unsafe { cell(&endpoint) };
    let is_in_use = || cell.with(|core, _| core.is_handle_in_use()).expect("an open endpoint");
    assert!(!is_in_use(), "nobody waits");
    let waits = [endpoint.sleeper(), endpoint.sleeper()].map(|sleeper| sleeper.expect("a sleeper"));
    assert!(is_in_use());
    let [one, other] = waits;
    drop(one);
    assert!(is_in_use(), "another thread waits");
    drop(other);
    assert!(!is_in_use(), "a program that polls from here on pays for its handle");
}
