//! Endpoints of `auto` that accept only peers which prove a secret. Their connections are in clear;
//! `sealed.rs` has those that are sealed.

use cci::{Connect, Device, Endpoint, EndpointOptions, Event, Failure, OpenError, Snapshot};
use cci_conformance::{LIMIT, device_of};
use std::os::unix::fs::FileExt;
use std::time::Instant;

fn with_secret(ways: &str, digit: Option<char>) -> Device {
    let secret = digit.map(|digit| digit.to_string().repeat(64)).unwrap_or_default();
    let keys = [("ways", ways), ("security", "off"), ("secret", secret.as_str())];
    device_of("auto", &keys[..if digit.is_some() { 3 } else { 2 }])
}

fn open(device: &Device) -> Endpoint {
    Endpoint::open(device, &EndpointOptions::new()).expect("an endpoint")
}

/// How a connect ends, and how many requests the server's program has seen.
fn connect(client: &Endpoint, server: &Endpoint, uri: &str) -> (Result<(), Failure>, usize) {
    client.connect(&Connect::to(uri).payload(b"who I am").timeout(LIMIT)).expect("a URI");
    let (begun, mut seen) = (Instant::now(), 0);
    loop {
        assert!(begun.elapsed() < LIMIT, "no answer");
        if let Some(Event::Request(request)) = server.get_event().expect("usable") {
            seen += 1;
            assert_eq!(request.payload(), b"who I am");
            request.accept(0).expect("room");
        }
        match client.get_event().expect("usable") {
            Some(Event::Connected(_)) => return (Ok(()), seen),
            Some(Event::ConnectFailed(failed)) => return (Err(failed.failure()), seen),
            _ => (),
        }
    }
}

/// What the counters of the endpoint with this URI say of strays.
fn strays(uri: &str) -> u64 {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("descriptors");
    let pages = descriptors.filter_map(|entry| {
        let path = entry.ok()?.path();
        let is_page = std::fs::read_link(&path).ok()?.to_str()?.contains(Snapshot::NAME);
        let page = std::fs::File::open(path).ok().filter(|_| is_page)?;
        Snapshot::take(|bytes| page.read_at(bytes, 0)).ok()
    });
    pages.into_iter().find(|page| page.uri == uri).expect("the endpoint's counters").strays
}

#[test]
fn only_peers_that_prove_the_secret_reach_the_program() {
    for ways in ["sm", "sock", "tcp", "sm,sock,tcp"] {
        let server = open(&with_secret(ways, Some('a')));
        let member = open(&with_secret(ways, Some('a')));
        for other in [None, Some('b')] {
            let stranger = open(&with_secret(ways, other));
            assert_eq!(connect(&stranger, &server, server.uri()), (Err(Failure::Refused), 0), "{ways}: {other:?}");
        }
        assert_eq!(connect(&member, &server, server.uri()), (Ok(()), 1), "{ways}");
        assert!(strays(server.uri()) >= 2, "{ways}: refused requests are counted");
    }
}

#[test]
fn a_request_without_a_header_is_refused() {
    let server = open(&with_secret("sm", Some('a')));
    let plain = open(&device_of("sm", &[]));
    let rest = server.uri().split_once("sm=").expect("a way").1;
    assert_eq!(connect(&plain, &server, &format!("sm://{rest}")), (Err(Failure::Refused), 0));
}

/// An endpoint with a secret asks others as any other endpoint does.
#[test]
fn a_member_reaches_endpoints_without_a_secret() {
    for ways in ["sm", "sock", "tcp"] {
        let (open_to_all, member) = (open(&with_secret(ways, None)), open(&with_secret(ways, Some('a'))));
        assert_eq!(connect(&member, &open_to_all, open_to_all.uri()), (Ok(()), 1), "{ways}");
        assert_eq!(connect(&open_to_all, &member, member.uri()), (Err(Failure::Refused), 0), "{ways}: not back");
        let other = open(&with_secret(ways, Some('b')));
        assert_eq!(connect(&member, &other, other.uri()), (Err(Failure::Refused), 0), "{ways}: another secret");
    }
}

#[test]
fn what_is_no_secret_is_refused_when_the_endpoint_opens() {
    let device = with_secret("sm", Some('a'));
    let with = |value: &str| {
        let arguments = vec![("ways".to_owned(), "sm".to_owned()), ("secret".to_owned(), value.to_owned())];
        Endpoint::open(&Device { arguments, ..device.clone() }, &EndpointOptions::new())
    };
    let refused = |opened: Result<Endpoint, OpenError>| opened.expect_err("no secret").to_string();
    for value in ["", "abc", &"g".repeat(64)] {
        let why = refused(with(value));
        assert!(why.contains("64 hexadecimal digits"), "{why}");
        // What is nearly a secret may be most of one.
        let shown = format!("'secret' is a secret of {} characters;", value.len());
        assert!(why.contains(&shown) && (value.is_empty() || !why.contains(value)), "{why}");
    }
    assert!(with(&"0".repeat(64)).is_ok());
}
