//! Present endpoints: alive to their peers while their programs make no calls.

#![forbid(unsafe_code)]

use cci::{
    Connect, Connection, ConnectionOption, Context, Device, Endpoint, EndpointOptions, Event, EventKind, LocalEndpoint,
    Notify, Status,
};
use std::time::{Duration, Instant};

/// What a step of a test may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The keepalive of these tests.
const SILENCE: Duration = Duration::from_millis(700);

/// A usable device of this transport.
fn device(transport: &str) -> Device {
    let context = Context::new().expect("devices");
    let device = context.devices().iter().find(|device| device.transport == transport && device.up);
    device.expect("a usable device").clone()
}

/// A client that has a keepalive, a server of this transport, and what the client is connected by.
fn two(transport: &str, is_present: bool) -> (Endpoint, Endpoint, Connection) {
    let device = device(transport);
    let open = |is_present| Endpoint::open(&device, &EndpointOptions::new().present(is_present)).expect("an endpoint");
    let (client, server) = (open(false), open(is_present));
    let connection = connect(&client, &server);
    client.set_option(connection, ConnectionOption::KeepaliveTimeout, SILENCE).expect("an option");
    (client, server, connection)
}

/// Connects the client. The server has its event too.
fn connect(client: &Endpoint, server: &Endpoint) -> Connection {
    client.connect(&Connect::to(server.uri()).timeout(LIMIT)).expect("a connect");
    let (begun, mut connected, mut is_accepted) = (Instant::now(), None, false);
    while connected.is_none() || !is_accepted {
        assert!(begun.elapsed() < LIMIT, "no connection");
        if let Some(Event::Connected(event)) = client.get_event().expect("usable") {
            connected = event.connection();
        }
        match server.get_event().expect("usable") {
            Some(Event::Request(request)) => request.accept(2).expect("an accept"),
            Some(Event::Accepted(_)) => is_accepted = true,
            _ => {}
        }
    }
    connected.expect("just seen")
}

/// A server whose program computes answers keepalives and acknowledges what comes.
fn is_alive_without_calls(transport: &str) {
    let (client, server, connection) = two(transport, true);
    client.send(connection, b"while it computes", Notify::Always(7)).expect("a send");
    let begun = Instant::now();
    let mut sent = None;
    while sent.is_none() || begun.elapsed() < SILENCE * 3 {
        match client.get_event().expect("usable") {
            Some(Event::Completed(event)) => sent = Some((event.context(), event.outcome())),
            Some(other) => panic!("{other:?} after {:?}", begun.elapsed()),
            None => std::thread::yield_now(),
        }
    }
    assert_eq!(sent, Some((7, Ok(()))));
    let Ok(Some(Event::Received(message))) = server.wait(Some(LIMIT)) else { panic!("no message") };
    assert_eq!(message.to_vec(), b"while it computes");
}

#[test]
fn a_present_endpoint_of_sock_is_alive_without_calls() {
    is_alive_without_calls("sock");
}

#[test]
fn a_present_endpoint_of_tcp_is_alive_without_calls() {
    is_alive_without_calls("tcp");
}

#[test]
fn a_present_endpoint_of_sm_is_alive_without_calls() {
    is_alive_without_calls("sm");
}

#[test]
fn a_present_endpoint_of_auto_is_alive_without_calls() {
    is_alive_without_calls("auto");
}

/// The twin: a server that is not present is silent.
#[test]
fn an_endpoint_that_is_not_present_is_silent_without_calls() {
    for transport in ["sock", "tcp", "sm", "auto"] {
        let (client, _server, _) = two(transport, false);
        let begun = Instant::now();
        while client.get_event().expect("usable").is_none_or(|event| event.kind() != EventKind::KeepaliveTimedOut) {
            assert!(begun.elapsed() < LIMIT, "{transport}: it is alive");
        }
    }
}

/// An endpoint of one thread has no progress thread that could answer.
#[test]
fn an_endpoint_for_one_thread_cannot_be_present() {
    let refused = LocalEndpoint::open(&device("sm"), &EndpointOptions::new().present(true)).expect_err("one thread");
    assert_eq!(refused.status, Status::Inval);
    assert!(refused.to_string().contains("open it for many threads"), "{refused}");
}
