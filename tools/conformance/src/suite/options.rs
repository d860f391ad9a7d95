//! Options, reports, devices.

use crate::world::{World, open, open_with};
use cci::{Attribute, ConnectionOption, Device, Endpoint, EndpointOptions, EventKind, Notify, OptionError, Status};
use std::time::Duration;

const RO: Attribute = Attribute::ReliableOrdered;

/// Defaults: thousands of buffers, no timeouts, a URI of its own.
pub fn defaults(device: &Device) {
    let (a, b) = (open(device), open(device));
    assert!(a.recv_buffers().expect("usable") >= 1000);
    assert!(a.send_buffers().expect("usable") >= 1000);
    assert_eq!((a.send_timeout(), a.keepalive()), (Ok(None), Ok(None)));
    assert_ne!(a.uri(), b.uri());
    assert!(a.uri().contains("://"), "{}", a.uri());
}

/// What is set is got, and new connections take the endpoint's timeouts over.
pub fn set_and_get(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    let (seven, nine) = (Some(Duration::from_secs(7)), Some(Duration::from_secs(9)));
    a.set_send_timeout(seven).expect("an option");
    a.set_keepalive(nine).expect("an option");
    assert_eq!((a.send_timeout(), a.keepalive()), (Ok(seven), Ok(nine)));
    let (connection, at_b) = world.connect(0, 1, RO);
    assert_eq!(a.option(connection, ConnectionOption::SendTimeout), Ok(seven));
    assert_eq!(a.option(connection, ConnectionOption::KeepaliveTimeout), Ok(nine));
    assert_eq!(b.option(at_b, ConnectionOption::SendTimeout), Ok(None));
    for count in [1, 2, 100] {
        a.set_recv_buffers(count).expect("an option");
        a.set_send_buffers(count).expect("an option");
        assert_eq!((a.recv_buffers(), a.send_buffers()), (Ok(count), Ok(count)));
    }
}

/// Counts of 0, or above what the endpoint was opened with, are refused and change nothing.
pub fn out_of_range(device: &Device) {
    let a = open_with(device, |options| {
        options.recv_buffers = 64;
        options.send_buffers = 32;
    });
    for count in [0, 65, u32::MAX] {
        assert_eq!(a.set_recv_buffers(count), Err(OptionError::Range));
    }
    for count in [0, 33, u32::MAX] {
        assert_eq!(a.set_send_buffers(count), Err(OptionError::Range));
    }
    assert_eq!((a.recv_buffers(), a.send_buffers()), (Ok(64), Ok(32)));
}

/// Options of a connection are its own.
pub fn of_a_connection(device: &Device) {
    let (a, b) = (open(device), open(device));
    let world = World::new([&a, &b]);
    let ((first, _), (second, _)) = (world.connect(0, 1, RO), world.connect(0, 1, RO));
    for option in [ConnectionOption::SendTimeout, ConnectionOption::KeepaliveTimeout] {
        let timeout = Some(Duration::from_micros(123_456_789));
        a.set_option(first, option, timeout).expect("an option");
        assert_eq!((a.option(first, option), a.option(second, option)), (Ok(timeout), Ok(None)));
    }
}

/// A closed connection has no options.
pub fn of_a_closed_connection(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    a.disconnect(connection).expect("a disconnect");
    for option in [ConnectionOption::SendTimeout, ConnectionOption::KeepaliveTimeout] {
        assert_eq!(a.option(connection, option), Err(OptionError::Disconnected));
        assert_eq!(a.set_option(connection, option, Duration::from_micros(1)), Err(OptionError::Disconnected));
    }
    assert_eq!(a.report(connection), Err(OptionError::Disconnected));
}

/// The alignment that RMA needs is 0 or a power of two.
pub fn alignment(device: &Device) {
    let alignment = open(device).alignment().expect("usable");
    let writes = [alignment.write_local_addr, alignment.write_remote_addr, alignment.write_length];
    let reads = [alignment.read_local_addr, alignment.read_remote_addr, alignment.read_length];
    assert!(writes.iter().chain(&reads).all(|bytes| *bytes == 0 || bytes.is_power_of_two()), "{alignment:?}");
}

/// The report of a connection counts what went over it, and says how and why.
pub fn counters(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    for number in 0..100 {
        a.send(connection, &[1; 70], number).expect("a send");
        world.message(1);
        world.sent(0);
    }
    for _ in 0..7 {
        b.send(at_b, b"back", Notify::OnFailure(0)).expect("a send");
        world.message(0);
    }
    let (from_a, from_b) = (a.report(connection).expect("open"), b.report(at_b).expect("open"));
    assert_eq!((from_a.sent, from_a.received, from_a.open), (100, 7, 0));
    assert_eq!((from_b.sent, from_b.received), (7, 100));
    assert_eq!(from_a.transport, device.transport);
    assert!(!from_a.path.is_empty() && !from_a.rma_path.is_empty() && !from_a.why.is_empty(), "{from_a:?}");
}

/// The report of a broken connection says nothing of a peer that came later, whatever of the first
/// one it has got.
pub fn report_of_a_broken_connection(device: &Device) {
    let (a, b) = (open_with(device, |options| options.disconnect_events = true), open(device));
    let (world, broken, _) = World::joined([&a, &b], RO);
    drop(world);
    b.close().expect("a close");
    let world = World::new([&a]);
    let event = world.first(0);
    assert_eq!((event.kind(), event.connection()), (EventKind::Disconnect, Some(broken)));
    drop((event, world));
    let c = open(device);
    World::new([&a, &c]).connect(0, 1, RO);
    let report = a.report(broken).expect("the program has not disconnected");
    assert!(![&report.why, &report.path, &report.rma_path].iter().any(|text| text.contains(c.uri())), "{report:?}");
}

/// A device that is down opens no endpoint, and says why.
pub fn down_device(device: &Device) {
    let down = Device { up: false, reason: "its cable is out".into(), ..device.clone() };
    let error = Endpoint::open(&down, &EndpointOptions::new()).expect_err("it is down");
    assert_eq!(error.status, Status::NoDev);
    assert!(error.to_string().contains("its cable is out"), "{error}");
}
