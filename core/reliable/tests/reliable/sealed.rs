//! Sealed connections with the real cipher.

use crate::memory_link::{Faults, Hub};
use crate::world::{End, How, LARGEST, LIMIT, join, message, next, outcome, two, two_sealed};
use cci_instruments::pattern;
use cci_mem::arena::SharedMemory;
use cci_proto::{Access, Attribute, EventKind, Rights, Status};
use cci_transport::{Core, Protect, Rma};
use std::time::Duration;

const RO: Attribute = Attribute::ReliableOrdered;
const BAD: Faults = Faults { lost: 50, doubled: 50, late: 100, spoilt: 50 };

#[test]
fn every_length_arrives_sealed_on_every_kind_of_connection() {
    let (_, a, b) = two_sealed();
    let ends = [&a, &b];
    for attribute in [RO, Attribute::ReliableUnordered, Attribute::Unreliable] {
        let (to_b, to_a) = join(&ends, attribute);
        for len in [0, 1, 7, 8, 55, 56, 57, 1000, 1100, 1200, 4000, 4096, 5000, LARGEST as usize] {
            a.send(to_b, &pattern(len as u64, len), len as u64);
            assert_eq!(message(&ends, 1), pattern(len as u64, len), "{len} bytes, {attribute:?}");
            assert_eq!(outcome(&ends, 0, EventKind::Send), (Some(Status::Success), len as u64));
            b.send(to_a, &pattern(1, len), 5);
            assert_eq!(message(&ends, 0), pattern(1, len), "{len} bytes back, {attribute:?}");
            assert_eq!(outcome(&ends, 1, EventKind::Send), (Some(Status::Success), 5));
        }
        let protection = a.report(to_b).protection;
        assert!(
            protection.starts_with("sealed by AES-256-GCM") && protection.contains("phases 0 and 0"),
            "{protection}"
        );
    }
}

#[test]
fn a_bad_network_changes_nothing_of_sealed_connections_but_the_time() {
    let (hub, a, b) = two_sealed();
    let ends = [&a, &b];
    hub.set_faults(BAD);
    let (to_b, _) = join(&ends, RO);
    let memory = SharedMemory::new(40_000).expect("memory");
    let local = a.register(memory.memory(), Rights::NONE);
    let remote = b.register(memory.memory(), Rights::READ_WRITE);
    let (local, remote) = (&local, &remote);
    for number in 0..300 {
        let bytes = pattern(number, 8 + number as usize % 2000);
        a.send(to_b, &bytes, number);
        assert_eq!(message(&ends, 1), bytes, "message {number}");
        assert_eq!(outcome(&ends, 0, EventKind::Send), (Some(Status::Success), number));
    }
    for (number, access) in [Access::Write, Access::Read].into_iter().cycle().take(20).enumerate() {
        let bytes = pattern(number as u64, 15_000);
        let (from, to) = if access == Access::Write { (0, 20_000) } else { (20_000, 0) };
        assert!(memory.memory().copy_in(from, &bytes));
        let rma = Rma {
            local,
            local_offset: 0,
            remote,
            remote_offset: 20_000,
            len: 15_000,
            access,
            fence: false,
            message: None,
        };
        a.rma(to_b, &rma, 9).expect("started");
        assert_eq!(outcome(&ends, 0, EventKind::Send), (Some(Status::Success), 9));
        let mut found = vec![0; 15_000];
        assert!(memory.memory().copy_out(to, &mut found));
        assert_eq!(found, bytes, "operation {number}, {access:?}");
    }
}

/// Connects, and returns what the CONNECT event says: the status, and why.
fn refused(client: How, server: How) -> (Option<Status>, String) {
    let hub = Hub::new();
    let (a, b) = (End::open(&hub, client), End::open(&hub, server));
    let ends = [&a, &b];
    a.connect(&b.uri, RO, Duration::from_millis(300), b"");
    let slot = next(&ends, 0, EventKind::Connect);
    let status = Status::from_u32(slot.detail());
    let reason = a.cell.with(|core: &mut Core, _| core.reason(slot).unwrap_or_default().to_owned()).expect("usable");
    a.give_back(slot);
    (status, reason)
}

#[test]
fn who_has_not_the_secret_is_refused_in_one_sentence() {
    let plain = How::default;
    let (status, reason) = refused(plain(), How::sealed(5));
    assert_eq!(status, Some(Status::ConnRefused));
    assert!(reason.contains("takes sealed connections only; give this endpoint its secret"), "{reason}");
    for server in [plain(), How::sealed(6)] {
        let (status, reason) = refused(How::sealed(5), server);
        assert_eq!(status, Some(Status::TimedOut));
        assert!(reason.contains("does not agree to a sealed connection") && !reason.contains('\n'), "{reason}");
    }
}

#[test]
fn who_prefers_sealed_connections_takes_plain_ones() {
    let prefers = How { secret: Some((5, Protect::Prefer)), ..How::default() };
    for (client, server, expected) in [
        (prefers, How::default(), "plain"),
        (How::default(), prefers, "plain"),
        (prefers, How::sealed(5), "sealed"),
        (How::sealed(5), prefers, "sealed"),
    ] {
        let hub = Hub::new();
        let (a, b) = (End::open(&hub, client), End::open(&hub, server));
        let ends = [&a, &b];
        let (to_b, to_a) = join(&ends, RO);
        for (end, connection) in [(&a, to_b), (&b, to_a)] {
            let protection = end.report(connection).protection;
            assert!(protection.starts_with(expected), "{protection}");
        }
    }
    let (_, a, b) = two();
    let (to_b, _) = join(&[&a, &b], RO);
    assert!(a.report(to_b).protection.starts_with("plain, since"));
}

/// A rejection reaches a sealed client, with the payload of its request read.
#[test]
fn a_sealed_request_is_rejected_by_the_program() {
    let (hub, a, b) = two_sealed();
    hub.set_faults(BAD);
    let ends = [&a, &b];
    a.connect(&b.uri, RO, LIMIT, b"who I am");
    let request = next(&ends, 1, EventKind::ConnectRequest);
    assert_eq!(cci_instruments::payload(request), b"who I am");
    b.cell.with(|core, transport| transport.reject(core, request)).expect("usable").expect("rejected");
    request.mark.store(1, cci_mem::sync::Ordering::Relaxed);
    b.give_back(request);
    assert_eq!(outcome(&ends, 0, EventKind::Connect).0, Some(Status::ConnRefused));
}

/// Messages to a group are in clear: an endpoint with a secret joins none.
#[test]
fn an_endpoint_with_a_secret_joins_no_group() {
    let (_, a, _) = two_sealed();
    let connect = cci_transport::Connect {
        uri: "mem://group",
        payload: b"",
        attribute: Attribute::MulticastReceive,
        context: 1,
        timeout: None,
    };
    let refused = a.cell.with(|core, transport| transport.connect(core, &connect)).expect("usable");
    assert_eq!(refused, Err(cci_proto::ConnectError::NotImplemented));
}
