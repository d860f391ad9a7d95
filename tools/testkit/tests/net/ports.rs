//! Endpoints of `auto` at a fixed port: `cci://HOST:PORT`, and services that name an address.

use cci::{Connect, Connection, Context, Device, Endpoint, EndpointOptions, EventKind, Failure, Status};
use cci_conformance::namespace::{Net, pair};
use cci_conformance::{LIMIT, World, device_of, open, open_with};
use std::time::{Duration, Instant};

/// An endpoint at a service.
fn at(transport: &str, keys: &[(&str, &str)], service: &str) -> Endpoint {
    open_with(&device_of(transport, keys), |options| options.service = Some(service.to_owned()))
}

fn way(endpoint: &Endpoint, connection: Connection) -> String {
    let report = endpoint.report(connection).expect("an open connection");
    report.path.split(':').next().expect("a name").to_owned()
}

/// Connects the last endpoint, and accepts at the first that is asked: which one, and by which way.
fn connect(world: &World<'_>, count: usize, uri: &str) -> (usize, String) {
    let client = count - 1;
    world.endpoint(client).connect(&Connect::to(uri).payload(b"who").timeout(LIMIT)).expect("a connect");
    let begun = Instant::now();
    let asked = loop {
        world.step();
        if let Some(asked) = (0..client).find(|at| world.waiting(*at, EventKind::ConnectRequest) > 0) {
            break asked;
        }
        if world.waiting(client, EventKind::Connect) > 0 || begun.elapsed() > LIMIT {
            let ended = world.next(client, EventKind::Connect);
            panic!("{uri}: {:?}, {:?}", ended.outcome(), ended.reason());
        }
    };
    let request = world.next(asked, EventKind::ConnectRequest).into_request().expect("a request");
    assert_eq!(request.payload(), b"who", "the program sees its peer's payload alone");
    request.accept(2).expect("an accept");
    let connected = world.next(client, EventKind::Connect);
    assert_eq!(connected.outcome(), Ok(()), "{uri}: {:?}", connected.reason());
    assert_eq!((0..client).map(|at| world.waiting(at, EventKind::ConnectRequest)).sum::<usize>(), 0, "one request");
    (asked, way(world.endpoint(client), connected.connection().expect("one")))
}

/// How a connect fails, and why.
fn refused(world: &World<'_>, client: usize, uri: &str) -> (Failure, String) {
    world.endpoint(client).connect(&Connect::to(uri).timeout(LIMIT)).expect("a connect");
    let ended = world.next(client, EventKind::Connect);
    (ended.outcome().expect_err("it is refused"), ended.reason().expect("a reason").to_string())
}

pub(crate) fn restarted() {
    Net::new().enter(|| {
        let client = open(&device_of("auto", &[]));
        let mut old = None;
        for _ in 0..3 {
            let server = at("auto", &[], "127.0.0.1:5000");
            let world = World::new([&server, &client]);
            if let Some(old) = old.replace(server.uri().to_owned()) {
                let (failure, why) = refused(&world, 1, &old);
                assert_eq!(failure, Failure::Refused);
                assert!(why.contains("if the server was restarted"), "{why}");
                assert!(why.ends_with("or connect to cci://127.0.0.1:5000, whoever listens there"), "{why}");
                assert_eq!(world.waiting(0, EventKind::ConnectRequest), 0);
            }
            for uri in ["cci://127.0.0.1:5000", "cci://localhost:5000", server.uri()] {
                assert_eq!(connect(&world, 2, uri), (0, "sm".into()), "{uri}");
            }
        }
    });
}

pub(crate) fn every_way() {
    Net::new().enter(|| {
        let server = at("auto", &[], "[::1]:5000");
        for ways in ["sm", "sock", "tcp"] {
            // A link reaches addresses of its own family.
            let keys = [("ways", ways), ("ip", "::1"), ("listen", "network")];
            let client = open(&device_of("auto", &keys));
            let world = World::new([&server, &client]);
            assert_eq!(connect(&world, 2, "cci://[::1]:5000"), (0, ways.into()));
        }
        drop(server);
        for transport in ["sock", "tcp"] {
            let plain = at(transport, &[("ip", "127.0.0.1")], "5000");
            let client = open(&device_of("auto", &[]));
            let world = World::new([&plain, &client]);
            assert_eq!(connect(&world, 2, "cci://127.0.0.1:5000"), (0, transport.into()), "an endpoint of one way");
            let (failure, why) = refused(&world, 1, "cci://127.0.0.1:5001");
            assert_eq!(failure, Failure::Refused);
            assert!(!why.contains("restarted"), "{why}");
        }
    });
}

/// One of them has the name within the host, and the other is found by its socket.
pub(crate) fn two_addresses() {
    Net::new().enter(|| {
        let servers = ["127.0.0.1:5000", "127.0.0.2:5000"].map(|service| at("auto", &[], service));
        let client = open(&device_of("auto", &[]));
        let world = World::new([&servers[0], &servers[1], &client]);
        assert_eq!(connect(&world, 3, "cci://127.0.0.1:5000"), (0, "sm".into()));
        assert_eq!(connect(&world, 3, "cci://127.0.0.2:5000"), (1, "sock".into()));
        // The name's owner does not poll, as a stopped process: the other one is reached all the
        // same.
        let world = World::new([&servers[1], &client]);
        assert_eq!(connect(&world, 2, "cci://127.0.0.2:5000"), (0, "sock".into()));
    });
}

/// The client asks by a second way meanwhile.
pub(crate) fn slow_server() {
    Net::new().enter(|| {
        let server = at("auto", &[("ways", "sock,tcp")], "127.0.0.1:5000");
        let client = open(&device_of("auto", &[]));
        client.connect(&Connect::to("cci://127.0.0.1:5000").payload(b"who").timeout(LIMIT)).expect("a connect");
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(500) {
            assert!(client.get_event().expect("usable").is_none());
        }
        let world = World::new([&server, &client]);
        world.next(0, EventKind::ConnectRequest).into_request().expect("a request").accept(2).expect("an accept");
        assert_eq!(world.next(1, EventKind::Connect).outcome(), Ok(()));
        assert!(world.next(0, EventKind::Accept).connection().is_some());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(300) {
            world.step();
        }
        assert_eq!(world.waiting(0, EventKind::ConnectRequest), 0, "one request of one connect");
    });
}

pub(crate) fn secret() {
    Net::new().enter(|| {
        let keys = [("secret", "a".repeat(64))];
        let keys = keys.each_ref().map(|(key, value)| (*key, value.as_str()));
        let server = at("auto", &keys, "127.0.0.1:5000");
        let member = open(&device_of("auto", &keys));
        let world = World::new([&server, &member]);
        assert_eq!(refused(&world, 1, "cci://127.0.0.1:5000").0, Failure::Refused);
        assert_eq!(world.waiting(0, EventKind::ConnectRequest), 0);
        assert_eq!(connect(&world, 2, server.uri()), (0, "sm".into()));
    });
}

pub(crate) fn between_hosts() {
    let nets = pair(1500);
    let open_in = |net: &Net, service: &str| net.enter(|| at("auto", &[], service));
    let server = open_in(&nets[0], "10.0.0.1:5000");
    for (net, taken) in [(&nets[0], "sm"), (&nets[1], "sock")] {
        net.enter(|| {
            let client = open(&device_of("auto", &[]));
            let world = World::new([&server, &client]);
            assert_eq!(connect(&world, 2, "cci://10.0.0.1:5000"), (0, taken.into()));
        });
    }
    // Who listens to the network is found on its own host by the name that every host has.
    nets[0].enter(|| {
        let client = open(&device_of("auto", &[]));
        let world = World::new([&server, &client]);
        assert_eq!(connect(&world, 2, "cci://localhost:5000"), (0, "sm".into()));
    });
    let addresses = crate::auto::open_to_strangers(&nets[0]);
    assert!(addresses.contains(&"0100000A:1388".to_owned()), "{addresses:?}");
    drop(server);
    let local = open_in(&nets[0], "127.0.0.1:5000");
    assert!(local.uri().contains("=127.0.0.1:5000"), "{}", local.uri());
    let addresses = crate::auto::open_to_strangers(&nets[0]);
    assert!(addresses.iter().all(|address| address.starts_with("0100007F:")), "{addresses:?}");
}

/// One sentence, in every transport over IP.
pub(crate) fn wrong_services() {
    Net::new().enter(|| {
        for transport in ["auto", "sock", "tcp"] {
            let device = device_of(transport, &[("ip", "127.0.0.1")]);
            for service in ["localhost", "tcp://127.0.0.1:5000", "::1:5000", "1234/0", "65536", "127.0.0.1:x"] {
                let error = Endpoint::open(&device, &EndpointOptions::new().service(service)).expect_err(service);
                let sentence = error.to_string();
                assert_eq!(error.status, Status::Inval, "{sentence}");
                let names_right = sentence.contains("such as 5000") && sentence.contains("127.0.0.1:5000");
                assert!(sentence.contains(&format!("'{service}'")) && names_right, "{transport}: {sentence}");
            }
            for service in ["127.0.0.1:5000", "localhost:5001"] {
                let port = service.rsplit_once(':').expect("a port").1;
                let endpoint = Endpoint::open(&device, &EndpointOptions::new().service(service)).expect(service);
                assert!(endpoint.uri().contains(&format!("127.0.0.1:{port}")), "{}", endpoint.uri());
            }
        }
    });
}

/// The device of a transport that a program without a configuration has.
fn found(transport: &str) -> Device {
    let context = Context::new().expect("devices");
    context.devices().iter().find(|device| device.transport == transport).expect("a device").clone()
}

/// It reaches other hosts, and is reached from none unless somebody says so.
pub(crate) fn found_devices() {
    let nets = pair(1500);
    for (transport, port) in [("sock", "5000"), ("tcp", "5001")] {
        let server = nets[0].enter(|| {
            for service in [None, Some(port)] {
                let endpoint = open_with(&found(transport), |options| options.service = service.map(str::to_owned));
                assert!(endpoint.uri().contains("://127.0.0.1:"), "{}", endpoint.uri());
            }
            let addresses = crate::auto::open_to_strangers(&nets[0]);
            assert!(addresses.iter().all(|address| address.starts_with("0100007F:")), "{addresses:?}");
            open_with(&found(transport), |options| options.service = Some(format!("10.0.0.1:{port}")))
        });
        assert_eq!(server.uri(), format!("{transport}://10.0.0.1:{port}"));
        nets[1].enter(|| {
            let client = open(&found(transport));
            let world = World::new([&server, &client]);
            world.connect(1, 0, cci::Attribute::ReliableOrdered);
        });
        let uri = crate::pingpong::uri_of_server(&nets[0], transport, "network");
        assert!(uri.starts_with(&format!("{transport}://10.0.0.1:")), "{uri}");
        let uri = crate::pingpong::uri_of_server(&nets[0], transport, "local");
        assert!(uri.starts_with(&format!("{transport}://127.0.0.1:")), "{uri}");
    }
}
