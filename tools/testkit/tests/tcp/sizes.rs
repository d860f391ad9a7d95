//! Endpoints of `tcp` with other largest messages than usual, also on the two sides of one lane,
//! and with checked RMA.

use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connect, Device, EventKind, Notify, Rights, Rma, SendError};
use cci_conformance::memory::Origin;
use cci_conformance::{LIMIT, World, device_of, open, pattern};

fn device_with(mss: u32) -> Device {
    device_of("tcp", &[("ip", "127.0.0.1"), ("mss", &mss.to_string())])
}

/// Both directions carry messages of every interesting length up to the smaller of both maxima, and
/// none longer; and a connection request carries its 1,024 bytes whatever the maximum.
fn assert_sizes(client: u32, server: u32, attribute: Attribute) {
    let (a, b) = (open(&device_with(client)), open(&device_with(server)));
    let world = World::new([&a, &b]);
    let payload = pattern(9, cci::CONN_REQ_LEN);
    let connect = Connect::to(b.uri()).payload(&payload).attribute(attribute).context(1).timeout(LIMIT);
    a.connect(&connect).expect("a connect");
    let request = world.next(1, EventKind::ConnectRequest);
    assert_eq!(request.request().expect("a request").payload(), payload, "{client} to {server}");
    request.into_request().expect("a request").accept(2).expect("an accept");
    let to_b = world.next(0, EventKind::Connect).connection().expect("one");
    let to_a = world.next(1, EventKind::Accept).connection().expect("one");
    let most = client.min(server);
    assert_eq!((to_b.max_send_size(), to_a.max_send_size()), (Some(most), Some(most)));
    let most = most as usize;
    for len in [0, 1, 56, 57, 8192, 16_385, most - 1, most].into_iter().filter(|len| *len <= most) {
        a.send(to_b, &pattern(1, len), Notify::OnFailure(0)).expect("a send");
        assert!(world.message(1) == pattern(1, len), "{len} bytes, {client} to {server}");
        b.send(to_a, &pattern(2, len), Notify::OnFailure(0)).expect("a send");
        assert!(world.message(0) == pattern(2, len), "{len} bytes back, {client} to {server}");
    }
    assert_eq!(a.send(to_b, &vec![0; most + 1], Notify::OnFailure(0)), Err(SendError::TooLong));
    assert_eq!(b.send(to_a, &vec![0; most + 1], Notify::OnFailure(0)), Err(SendError::TooLong));
}

#[test]
fn every_size_works_on_both_sides() {
    for mss in [64, 65, 100, 1000, 8192, 32_768, 65_535, 65_536] {
        for attribute in [Attribute::ReliableOrdered, Attribute::Unreliable] {
            assert_sizes(mss, mss, attribute);
        }
    }
}

#[test]
fn different_sizes_meet_at_the_smaller() {
    for (client, server) in [(64, 8192), (8192, 64), (1000, 65_536), (65_536, 1000)] {
        assert_sizes(client, server, Attribute::ReliableOrdered);
    }
}

/// Each side checks what it sends, if its key says so.
#[test]
fn checked_and_unchecked_endpoints_meet() {
    let keys = ["off", "remote", "always"];
    for (client, server) in keys.iter().flat_map(|client| keys.map(|server| (*client, server))) {
        let device = |check| device_of("tcp", &[("ip", "127.0.0.1"), ("check", check)]);
        let (a, b) = (open(&device(client)), open(&device(server)));
        let (world, connection, _) = World::joined([&a, &b], Attribute::ReliableOrdered);
        let path = a.report(connection).expect("open").rma_path;
        assert_eq!(path.contains("checked"), client == "always", "{path}");
        for len in [1, 8, 4096, 4097, 65_536, 65_537, 3_000_000] {
            let (source, target) = (Origin::Program.allocate(len), Origin::Program.allocate(len));
            source.write(0, &pattern(3, len));
            let local = a.register_memory(source.memory(), Rights::NONE).expect("a registration");
            let remote = b.register_memory(target.memory(), Rights::READ_WRITE).expect("a registration");
            a.rma(connection, &Rma::new(&local, &remote, len as u64), 1, Flags::WRITE).expect("an RMA");
            assert_eq!(world.sent(0), 1);
            assert!(target.to_vec(0, len) == pattern(3, len), "{len} bytes from {client} to {server}");
            target.write(0, &pattern(4, len));
            a.rma(connection, &Rma::new(&local, &remote, len as u64), 2, Flags::READ).expect("an RMA");
            assert_eq!(world.sent(0), 2);
            assert!(source.to_vec(0, len) == pattern(4, len), "{len} bytes from {server} to {client}");
            a.deregister(&local).expect("own registration");
            b.deregister(&remote).expect("own registration");
        }
    }
}
