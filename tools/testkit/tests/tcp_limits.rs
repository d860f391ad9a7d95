//! Not enough of something over `tcp`: descriptors, memory, ports, room in a backlog. And
//! strangers.

#![forbid(unsafe_code)]

use cci::{Attribute, Connect, Device, Endpoint, EndpointOptions, EventKind, Failure, Notify};
use cci_conformance::process::{describe_descriptors, resident_bytes, thread_time};
use cci_conformance::{LIMIT, Peer, World, alone, device_of, open, readable};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");
const RO: Attribute = Attribute::ReliableOrdered;

fn device() -> Device {
    device_of("tcp", &[("ip", "127.0.0.1")])
}

#[test]
fn limits_no_descriptors_for_an_endpoint() {
    let _alone = alone();
    assert_eq!(Peer::spawn(PROGRAM, "few-descriptors", &["tcp"]).line(), "refused well");
}

#[test]
fn limits_no_descriptors_for_peers() {
    let _alone = alone();
    assert_eq!(Peer::spawn(PROGRAM, "no-descriptors-later", &["tcp"]).line(), "served on");
}

#[test]
fn limits_no_memory_for_an_endpoint() {
    let _alone = alone();
    assert_eq!(Peer::spawn(PROGRAM, "little-memory", &["tcp"]).line(), "refused well");
}

#[test]
fn limits_a_port_in_use_is_named() {
    // A child that another test starts holds the port until it executes its program.
    let _alone = alone();
    let first = open(&device());
    let port = first.uri().rsplit_once(':').expect("a port").1;
    for (port, sentence) in [
        (port.to_owned(), format!("port {port} of 127.0.0.1 is in use; choose another port")),
        (format!("{port}-{port}"), format!("port {port} of 127.0.0.1 is in use; choose another port")),
    ] {
        let device = device_of("tcp", &[("ip", "127.0.0.1"), ("port", &port)]);
        let error = Endpoint::open(&device, &EndpointOptions::new()).expect_err("in use");
        assert!(error.to_string().contains(&sentence), "{error}");
    }
}

/// What endpoints have left to the allocator is not held a second time by those that come after
/// them.
#[test]
fn limits_an_idle_endpoint_holds_little_memory() {
    const COUNT: usize = 50;
    const MOST: usize = 1 << 20;
    let (_alone, device) = (alone(), device());
    for round in 0..3 {
        let before = resident_bytes(None);
        let endpoints: Vec<_> = (0..COUNT).map(|_| open(&device)).collect();
        let after = resident_bytes(None);
        assert!(after <= before + COUNT * MOST, "{} bytes each in round {round}", (after - before) / COUNT);
        drop(endpoints);
    }
}

fn socket() -> OwnedFd {
    socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("a socket")
}

/// A listener whose backlog is full for ever: the dial ends by the timeout of its connect.
#[test]
fn limits_full_backlog_does_not_spin() {
    let _alone = alone();
    let listener = socket();
    bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
    listen(&listener, 0).expect("a port");
    let address = SocketAddr::try_from(getsockname(&listener).expect("an address")).expect("an address");
    let fillers = [socket(), socket()];
    for filler in &fillers {
        // In progress, or left without an answer.
        let _ = connect(filler, &address);
    }
    let endpoint = open(&device());
    let handle = endpoint.handle().expect("a handle");
    let sockets = || describe_descriptors().iter().filter(|name| name.starts_with("socket:")).count();
    let before = sockets();
    let world = World::new([&endpoint]);
    let timeout = Duration::from_millis(1500);
    let (begun, used) = (Instant::now(), thread_time());
    endpoint.connect(&Connect::to(&format!("tcp://{address}")).context(4).timeout(timeout)).expect("a connect");
    let mut wakes = 0;
    while world.waiting(0, EventKind::Connect) == 0 {
        assert!(readable(&handle, LIMIT), "the timeout does not make the handle readable");
        world.poll(0);
        wakes += 1;
    }
    let event = world.next(0, EventKind::Connect);
    assert_eq!((event.outcome(), event.context()), (Err(Failure::TimedOut), 4));
    let (elapsed, used) = (begun.elapsed(), thread_time() - used);
    assert!(elapsed >= timeout, "early: {elapsed:?}");
    assert!(used < elapsed / 5, "{used:?} of processor time in {elapsed:?}, {wakes} wakes");
    world.until("its descriptor to be closed", || sockets() == before);
}

/// More strangers than an endpoint keeps, which say nothing, half of a HELLO, or nonsense. They get
/// no event, take little memory, and honest clients connect.
#[test]
fn limits_strangers_keep_nobody_out() {
    let _alone = alone();
    let server = open(&device());
    let address = server.uri().strip_prefix("tcp://").expect("a URI of tcp");
    let client = open(&device());
    let world = World::new([&client, &server]);
    let before = resident_bytes(None);
    let mut strangers = Vec::new();
    for number in 0..600 {
        let mut stranger = TcpStream::connect(address).expect("it listens");
        match number % 3 {
            0 => stranger.write_all(b"cci-tcp1\x01\0").expect("sent"),
            1 => stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent"),
            _ => {}
        }
        strangers.push(stranger);
        world.step();
    }
    let (connection, _) = world.connect(0, 1, RO);
    client.send(connection, b"through", Notify::OnFailure(0)).expect("a send");
    assert_eq!(world.message(1), b"through");
    assert_eq!(world.waiting(1, EventKind::ConnectRequest), 0);
    let grown = resident_bytes(None).saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes for strangers");
    // Those who talk nonsense, and the oldest of the others, were sent away at once.
    let is_closed = |stranger: &mut TcpStream| {
        stranger.set_nonblocking(true).expect("a socket");
        match stranger.read(&mut [0; 100]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    };
    let left = strangers.iter_mut().filter_map(|stranger| (!is_closed(stranger)).then_some(())).count();
    assert!((1..=256).contains(&left), "{left} strangers are left");
}

/// As many endpoints of one process as there are descriptors for, at most a thousand, which connect
/// at once.
#[test]
fn limits_a_thousand_ranks_of_one_host_connect_at_once() {
    const OF_AN_ENDPOINT: u64 = 8;
    let _alone = alone();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("a limit that is allowed");
    let ranks = limit.maximum.map_or(1000, |most| 1000.min((most - 100) / OF_AN_ENDPOINT));
    let server = open(&device());
    let mut many_peers = Peer::spawn(PROGRAM, "connect-many", &["tcp", server.uri(), &ranks.to_string(), "1"]);
    let begun = Instant::now();
    let mut accepted = 0;
    let serve = |accepted: &mut u64| {
        while let Some(event) = server.get_event().expect("open") {
            match event.kind() {
                EventKind::ConnectRequest => event.into_request().expect("a request").accept(0).expect("an accept"),
                EventKind::Accept => {
                    assert_eq!(event.outcome(), Ok(()));
                    *accepted += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(many_peers.line_while(|| serve(&mut accepted)), "connected");
    while accepted < ranks {
        assert!(begun.elapsed() < 2 * LIMIT, "{accepted} of {ranks}");
        serve(&mut accepted);
    }
    assert_eq!(accepted, ranks);
}
