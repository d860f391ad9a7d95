//! Answers to connection requests.

use crate::fixture::{End, LIMIT};
use cci_proto::{Attribute, EventKind, RequestError};
use cci_transport::{Connect, Transport};
use std::time::Instant;

#[test]
fn a_request_whose_redirection_is_refused_can_still_be_accepted() {
    let (mut client, mut broker) = (End::new(), End::new());
    let uri = broker.sm.uri().to_owned();
    let attribute = Attribute::ReliableOrdered;
    let connect = Connect { uri: &uri, payload: b"", attribute, context: 7, timeout: Some(LIMIT) };
    client.sm.connect(&mut client.core, &connect).expect("a connect");
    let begin = Instant::now();
    let request = loop {
        assert!(client.call().is_none() && begin.elapsed() < LIMIT, "no request");
        if let Some(slot) = broker.call() {
            break slot;
        }
    };
    assert_eq!(request.kind(), EventKind::ConnectRequest as u32);
    let too_long = format!("sm://{}", "1".repeat(100));
    let refused = broker.sm.redirect(&mut broker.core, request, &too_long, 1);
    assert_eq!(refused, Err(RequestError::OtherDevice));
    assert!(broker.sm.peer(request).is_some(), "the request is gone");
    broker.sm.accept(&mut broker.core, request, 0).expect("an accept");
    let connected = loop {
        assert!(begin.elapsed() < LIMIT, "no answer");
        broker.call();
        if let Some(slot) = client.call() {
            break slot;
        }
    };
    assert_eq!((connected.kind(), connected.detail()), (EventKind::Connect as u32, 0));
    assert!(connected.connection.get().is_some());
}
