//! Endpoints of `sm` with other largest messages than usual, also on the two sides of one lane.

use cci::{Connect, Device, Endpoint, EndpointOptions, EventKind, Notify, SendError, Status};
use cci_conformance::{LIMIT, World, open, pattern, sm_device};

fn device_with(mss: u32) -> Device {
    let mut device = sm_device();
    device.arguments.push(("mss".into(), mss.to_string()));
    device
}

/// Both directions carry messages of every interesting length up to the smaller of both maxima, and
/// none longer; and a connection request carries its 1,024 bytes whatever the maximum.
fn assert_sizes(client: u32, server: u32) {
    let (a, b) = (open(&device_with(client)), open(&device_with(server)));
    let world = World::new([&a, &b]);
    let payload = pattern(9, cci::CONN_REQ_LEN);
    a.connect(&Connect::to(b.uri()).payload(&payload).context(1).timeout(LIMIT)).expect("a connect");
    let request = world.next(1, EventKind::ConnectRequest);
    assert_eq!(request.request().expect("a request").payload(), payload, "{client} to {server}");
    request.into_request().expect("a request").accept(2).expect("an accept");
    let to_b = world.next(0, EventKind::Connect).connection().expect("one");
    let to_a = world.next(1, EventKind::Accept).connection().expect("one");
    let most = client.min(server);
    assert_eq!((to_b.max_send_size(), to_a.max_send_size()), (Some(most), Some(most)));
    let most = most as usize;
    for len in [0, 1, 56, 57, most - 1, most].into_iter().filter(|len| *len <= most) {
        a.send(to_b, &pattern(1, len), Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(1), pattern(1, len), "{len} bytes, {client} to {server}");
        b.send(to_a, &pattern(2, len), Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(0), pattern(2, len), "{len} bytes back, {client} to {server}");
    }
    assert_eq!(a.send(to_b, &vec![0; most + 1], Notify::OnFailure(0)), Err(SendError::TooLong));
    assert_eq!(b.send(to_a, &vec![0; most + 1], Notify::OnFailure(0)), Err(SendError::TooLong));
}

#[test]
fn every_size_works_on_both_sides() {
    let lines = (0..40).map(|step| 1000 + step * 17);
    let around = [2048u32, 4096, 8192, 65_536]
        .into_iter()
        .flat_map(|power| [power - 64, power - 1, power, power + 1, power + 63]);
    for mss in [64, 65, 100, 256, 1 << 20].into_iter().chain(lines).chain(around) {
        assert_sizes(mss, mss);
    }
}

#[test]
fn different_sizes_meet_at_the_smaller() {
    for (client, server) in [(64, 8192), (8192, 64), (1000, 65_536), (65_536, 1000), (8200, 8255), (1 << 20, 256)] {
        assert_sizes(client, server);
    }
}

#[test]
fn impossible_sizes_are_refused_with_a_sentence() {
    for mss in [0, 1, 63, (1 << 20) + 1, u32::MAX] {
        let error = Endpoint::open(&device_with(mss), &EndpointOptions::new()).expect_err("no such size");
        assert_eq!(error.status, Status::Inval);
        assert!(error.to_string().contains("mss"), "{error}");
    }
}
