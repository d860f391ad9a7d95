//! Endpoints of `auto` whose connections over a network are sealed with the secret of the device.

use cci::{Connect, Device, Endpoint, EndpointOptions, Event};
use cci_conformance::{LIMIT, device_of};
use std::time::{Duration, Instant};

/// How long a client asks that gets no answer which it may believe.
const SHORT: Duration = Duration::from_millis(700);

fn device(ways: &str, keys: &[(&str, &str)]) -> Device {
    device_of("auto", &[&[("ways", ways)], keys].concat())
}

fn open(ways: &str, keys: &[(&str, &str)]) -> Endpoint {
    Endpoint::open(&device(ways, keys), &EndpointOptions::new()).expect("an endpoint")
}

/// What protects the connection, by its client's report; `None`: it was not opened. And how many
/// requests the server's program has seen.
fn connect(client: &Endpoint, server: &Endpoint, timeout: Duration) -> (Option<String>, usize) {
    client.connect(&Connect::to(server.uri()).payload(b"who I am").timeout(timeout)).expect("a URI");
    let (begun, mut seen) = (Instant::now(), 0);
    loop {
        assert!(begun.elapsed() < LIMIT, "no answer");
        if let Some(Event::Request(request)) = server.get_event().expect("usable") {
            seen += 1;
            assert_eq!(request.payload(), b"who I am");
            request.accept(0).expect("room");
        }
        match client.get_event().expect("usable") {
            Some(Event::Connected(connected)) => {
                let report = client.report(connected.connection().expect("open")).expect("open");
                return (Some(report.protection), seen);
            }
            Some(Event::ConnectFailed(_)) => return (None, seen),
            _ => (),
        }
    }
}

#[test]
fn with_one_secret_each_way_over_a_network_is_sealed() {
    let (ours, others) = ("a".repeat(64), "b".repeat(64));
    for ways in ["sock", "tcp"] {
        let server = open(ways, &[("secret", &ours)]);
        let member = open(ways, &[("secret", &ours)]);
        let (protection, seen) = connect(&member, &server, LIMIT);
        let protection = protection.expect("one secret");
        assert!(seen == 1 && protection.starts_with("sealed by AES-256-GCM"), "{ways}: {protection}");
        for keys in [&[("security", "off")][..], &[("secret", &others)], &[("secret", &ours), ("security", "off")]] {
            let stranger = open(ways, keys);
            assert_eq!(connect(&stranger, &server, SHORT), (None, 0), "{ways}: {keys:?}");
            assert_eq!(connect(&member, &stranger, SHORT), (None, 0), "{ways}: a member falls back to {keys:?}");
        }
    }
}

#[test]
fn nothing_of_a_way_within_the_host_needs_to_be_sealed() {
    let keys = [("secret", &*"a".repeat(64)), ("security", "required")];
    let (server, member) = (open("sm,sock", &keys), open("sm,sock", &keys));
    assert_eq!(connect(&member, &server, LIMIT), (Some(String::new()), 1));
}

#[test]
fn an_endpoint_that_requires_a_secret_opens_only_with_one() {
    let missing = [("security", "required"), ("secret_file", "/nowhere/secret")];
    let why = Endpoint::open(&device("sock", &missing), &EndpointOptions::new()).expect_err("no secret").to_string();
    assert!(why.contains("/nowhere/secret"), "{why}");
}
