//! `auto` between hosts: a default endpoint, which nobody reaches from elsewhere, and a firewall
//! that changes.

use crate::pingpong::{built, command};
use crate::traffic::{Areas, messages, transfers};
use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connect, Connection, Endpoint, EndpointOptions, Event, EventKind, Failure, Rma};
use cci_conformance::namespace::{Net, pair};
use cci_conformance::process::Running;
use cci_conformance::{LIMIT, World, device_of, open, pattern, readable};
use cci_proto::wire::{self, Ack, Data, Header, Kind, Offer};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::panic::AssertUnwindSafe;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// An endpoint in a name space that the network reaches.
fn server(net: &Net, ways: &str) -> Endpoint {
    net.enter(|| open(&device_of("auto", &[("ways", ways), ("listen", "network")])))
}

/// An endpoint as a program without a configuration has it.
fn default_in(net: &Net, ways: &str) -> Endpoint {
    net.enter(|| {
        let device = device_of("auto", &[("ways", ways)]);
        Endpoint::open(&device, &EndpointOptions::new()).expect("an endpoint")
    })
}

fn way(endpoint: &Endpoint, connection: Connection) -> String {
    let report = endpoint.report(connection).expect("an open connection");
    report.path.split(':').next().expect("a name").to_owned()
}

/// Acts up to ten times, until the right way is taken: another program may have the processors for
/// the 100 ms in which TCP waits for the answer by UDP.
fn until_way<R>(mut act: impl FnMut() -> R, is_right: impl Fn(&R) -> bool) -> R {
    let first = act();
    (0..9).fold(first, |done, _| if is_right(&done) { done } else { act() })
}

/// As [`connect`], by UDP.
fn connect_by_udp(world: &World<'_>, uri: &str) -> [Connection; 2] {
    let connections = until_way(|| connect(world, uri), |ends| way(world.endpoint(1), ends[1]) == "sock");
    assert_eq!(way(world.endpoint(1), connections[1]), "sock");
    connections
}

/// Connects the second end to the first; connections of the first and of the second.
fn connect(world: &World<'_>, uri: &str) -> [Connection; 2] {
    let client = world.endpoint(1);
    client.connect(&Connect::to(uri).context(1).timeout(LIMIT)).expect("a connect");
    let begun = Instant::now();
    while world.waiting(0, EventKind::ConnectRequest) == 0 {
        world.step();
        if world.waiting(1, EventKind::Connect) > 0 || begun.elapsed() > LIMIT {
            let ended = world.next(1, EventKind::Connect);
            panic!("{uri}: {:?}, {:?}", ended.outcome(), ended.reason());
        }
    }
    let accepted = world.accept(0);
    let connected = world.next(1, EventKind::Connect);
    assert_eq!(connected.outcome(), Ok(()), "{:?}", connected.reason());
    [accepted, connected.connection().expect("one")]
}

/// Messages of many lengths both ways.
fn exchange(world: &World<'_>, connections: [Connection; 2]) {
    for (from, to) in [(0, 1), (1, 0)] {
        for len in [0, 1, 100, 1000] {
            world.endpoint(from).send(connections[from], &pattern(len as u64, len), 5).expect("a send");
            assert_eq!(world.message(to), pattern(len as u64, len));
            assert_eq!(world.sent(from), 5);
        }
    }
}

/// The local addresses, in hexadecimal digits, of every socket of UDP and TCP in this name space
/// that datagrams or streams of strangers reach: those that are connected to nobody.
pub(crate) fn open_to_strangers(net: &Net) -> Vec<String> {
    net.enter(|| {
        let tables = ["udp", "tcp", "udp6", "tcp6"];
        let read = |table| std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        let mut found = Vec::new();
        for line in tables.map(read).iter().flat_map(|table| table.lines().skip(1)) {
            let mut columns = line.split_whitespace().skip(1);
            let [local, remote] = [columns.next().expect("local"), columns.next().expect("remote")];
            if remote.ends_with(":0000") {
                found.push(local.to_owned());
            }
        }
        found
    })
}

/// Whether an address of [`open_to_strangers`] is of the loop-back interface.
pub(crate) fn is_loopback(local: &str) -> bool {
    local.starts_with("0100007F:")
}

/// Without a service or a key, an endpoint connects to another host, by UDP, and has no socket of
/// another address than the loop-back interface's before.
pub(crate) fn default_endpoint() {
    let nets = pair(1500);
    let server = server(&nets[0], "sm,sock,tcp");
    assert!(server.uri().contains("sock=10.0.0.1:"), "{}", server.uri());
    assert!(server.uri().ends_with(",tcp"), "one address and port for both: {}", server.uri());
    assert!(open_to_strangers(&nets[0]).iter().any(|local| local.starts_with("0100000A:")), "the server has some");
    let client = default_in(&nets[1], "sm,sock,tcp");
    let reachable = open_to_strangers(&nets[1]);
    assert!(!reachable.is_empty() && reachable.iter().all(|local| is_loopback(local)), "{reachable:?}");
    nets[1].enter(|| {
        let world = World::new([&server, &client]);
        let connections = connect_by_udp(&world, server.uri());
        assert_eq!(way(&server, connections[0]), "sock");
        let report = client.report(connections[1]).expect("open");
        assert!(report.why.contains("sm: the endpoint is on another host"), "{}", report.why);
        assert!(report.why.contains("tcp: sock is better"), "{}", report.why);
        assert!(report.path.contains("10.0.0.1:") && report.path.contains("accepts no requests"), "{}", report.path);
        exchange(&world, connections);
    });
    let outward: Vec<_> = open_to_strangers(&nets[1]).into_iter().filter(|local| !is_loopback(local)).collect();
    assert_eq!(outward.len(), 1, "one socket for all hosts: {outward:?}");
    for way in ["sock=", "tcp="] {
        let own = client.uri().split_once(way).map_or("127.0.0.1:", |(_, rest)| rest);
        assert!(own.starts_with("127.0.0.1:"), "{}", client.uri());
    }
}

/// The port of the socket by which the only endpoint in a name space reaches other hosts.
fn outward_port(net: &Net) -> u16 {
    let locals = open_to_strangers(net);
    let outward = locals.iter().find(|local| !is_loopback(local)).expect("a socket");
    u16::from_str_radix(outward.split_once(':').expect("a port").1, 16).expect("digits")
}

/// What strangers send to the outward socket is counted and goes unanswered: requests of an
/// endpoint of ours, and what a raw socket sends. The connection that is open there goes on.
pub(crate) fn strangers() {
    let nets = pair(1500);
    let server = server(&nets[0], "sock");
    let client = default_in(&nets[1], "sock");
    let stranger = nets[0].endpoint("v0");
    nets[1].enter(|| {
        let world = World::new([&server, &client]);
        let connections = connect(&world, server.uri());
        let at = ("10.0.0.2", outward_port(&nets[1]));
        let uri = format!("sock://{}:{}", at.0, at.1);
        stranger.connect(&Connect::to(&uri).context(7).timeout(Duration::from_millis(500))).expect("a connect");
        let raw = nets[0].enter(|| UdpSocket::bind("10.0.0.1:0").expect("a socket"));
        raw.set_nonblocking(true).expect("a flag");
        let ended = loop {
            for frame in stray_frames() {
                raw.send_to(&frame, at).expect("a datagram");
            }
            exchange(&world, connections);
            if let Some(event) = stranger.get_event().expect("usable") {
                break event;
            }
        };
        assert_eq!((ended.context(), ended.outcome()), (7, Err(Failure::TimedOut)), "{:?}", ended.reason());
        assert_eq!(world.waiting(1, EventKind::ConnectRequest), 0);
        let answered = raw.recv(&mut [0; 2000]).expect_err("an answer to a stranger");
        assert_eq!(answered.kind(), std::io::ErrorKind::WouldBlock);
        let strays = client.report(connections[1]).expect("open").strays;
        assert!(strays > 3, "{strays} frames of strangers were counted");
    });
}

/// Frames that an endpoint which takes requests answers: a request, and a message and an acceptance
/// for connections that do not exist.
fn stray_frames() -> Vec<Vec<u8>> {
    let header = |kind| Header { kind, to: 1 << 40, from: 7, number: 1, time: 0 };
    let offer = Offer {
        features: 0,
        first_seq: 1,
        attribute: Attribute::ReliableOrdered,
        mtu: 1400,
        max_send_size: 8192,
        recv_buffer: 1 << 20,
        credit: 64,
        host: 0,
    };
    let mut frames = [(); 3].map(|()| vec![0; 1400]);
    let connect = Header { to: 0, ..header(Kind::Connect) };
    let connect = wire::Connect {
        header: connect,
        offer,
        token: 0,
        cookie: 0,
        cookie_time: 0,
        payload: b"",
        share: wire::Share::None,
    };
    let accept = wire::Accept { header: header(Kind::Accept), offer, cookie: 0, share: &[] };
    let ack = Ack { credit: 1, ack: 0, echo_number: 0, echo_time: 0, delay: 0, congested: 0 };
    let data = Data { header: header(Kind::Data), seq: 0, flags: 0, ack, sack_words: 0 };
    let lengths = [connect.emit(&mut frames[0]), accept.emit(&mut frames[1]), data.emit(&[], &mut frames[2])];
    for (frame, len) in frames.iter_mut().zip(lengths) {
        frame.truncate(len);
        wire::seal(frame, 0, |check| check);
    }
    frames.into()
}

/// From a default endpoint, over a cable of 1,500 bytes: messages longer than a frame, and writes.
/// Frames to this host stay as large as ever.
pub(crate) fn everything_outward() {
    let nets = pair(1500);
    let ends = [default_in(&nets[1], "sock"), server(&nets[0], "sock"), default_in(&nets[1], "sock")];
    nets[1].enter(|| {
        let world = World::new([&ends[1], &ends[0]]);
        let outward = connect(&world, ends[1].uri());
        drop(world);
        let world = World::new([&ends[2], &ends[0]]);
        let here = connect(&world, ends[2].uri());
        drop(world);
        let mtu = |connection| ends[0].report(connection).expect("open").mtu;
        assert_eq!((mtu(outward[1]), mtu(here[1])), (1200, 65_000));
        let both = [&ends[0], &ends[1]];
        messages(both, [outward[1], outward[0]], 2000);
        let path = ends[0].report(outward[1]).expect("open").path;
        assert!(path.contains("accepts no requests") && path.contains("by a socket of its own"), "{path}");
        let world = World::new(both);
        let areas = Areas::new(both, 1 << 20);
        transfers(&world, both, outward[1], &areas, 3);
        messages([&ends[0], &ends[2]], [here[1], here[0]], 300);
        assert_eq!((mtu(outward[1]), mtu(here[1])), (1472, 65_000), "larger frames are probed");
    });
}

/// From a default endpoint to a host that drops UDP: TCP takes over, and by UDP again once it is
/// let through.
pub(crate) fn default_and_firewall() {
    let nets = pair(1500);
    let server = server(&nets[0], "sock,tcp");
    let client = default_in(&nets[1], "sock,tcp");
    nets[1].enter(|| {
        let world = World::new([&server, &client]);
        nets[0].rules(
            "add table ip d; add chain ip d in { type filter hook input priority 0; }; \
         add rule ip d in meta l4proto udp counter drop",
        );
        let first = connect(&world, server.uri());
        assert_eq!(way(&client, first[1]), "tcp");
        assert!(nets[0].counted("d", "in") > 0, "nothing was dropped");
        let why = client.report(first[1]).expect("open").why;
        assert!(why.contains("sock: asked before, and did not answer within 100 ms"), "{why}");
        nets[0].rules("delete table ip d");
        let second = connect_by_udp(&world, server.uri());
        exchange(&world, first);
        exchange(&world, second);
    });
}

/// A program that sleeps on the handle of a default endpoint is woken by what another host sends.
pub(crate) fn sleeper() {
    let nets = pair(1500);
    let server = server(&nets[0], "sm,sock,tcp");
    let client = default_in(&nets[1], "sm,sock,tcp");
    nets[1].enter(|| {
        let world = World::new([&server, &client]);
        let connections = connect_by_udp(&world, server.uri());
        let (handle, begun) = (client.handle().expect("a descriptor"), Instant::now());
        for round in 0..40 {
            client.arm().expect("usable");
            while client.get_event().expect("usable").is_some() {}
            server.send(connections[0], &pattern(round, 300), round).expect("a send");
            let event = loop {
                // It may be readable for nothing once.
                assert!(readable(&handle, LIMIT), "round {round}: the handle stays silent");
                if let Some(event) = client.get_event().expect("usable") {
                    break event;
                }
            };
            assert_eq!(event.received().expect("a message").to_vec(), pattern(round, 300));
            assert_eq!(world.sent(0), round);
        }
        // Timers would wake it within a second each.
        assert!(begun.elapsed() < LIMIT / 3, "after {:?}", begun.elapsed());
    });
}

/// The progress thread of a default endpoint serves what another host writes while the program
/// makes no calls.
pub(crate) fn absent() {
    const WRITES: u64 = 40;
    let nets = pair(1500);
    let ends = [server(&nets[0], "sock"), default_in(&nets[1], "sock")];
    nets[1].enter(|| {
        let world = World::new([&ends[0], &ends[1]]);
        let connections = connect(&world, ends[0].uri());
        drop(world);
        let areas = Areas::new([&ends[0], &ends[1]], 4096);
        let expected = pattern(1, 4096);
        areas.fill(&expected);
        let ([local, remote], begun) = (areas.handles(), Instant::now());
        for number in 0..WRITES {
            ends[0].rma(connections[0], &Rma::new(local, remote, 4096), number, Flags::WRITE).expect("a write");
            let ended = ends[0].wait(Some(LIMIT)).expect("usable").expect("it ends");
            assert_eq!((ended.context(), ended.outcome()), (number, Ok(())));
        }
        assert!(areas.written() == expected);
        // Timers would serve one write in a second.
        assert!(begun.elapsed() < LIMIT / 3, "after {:?}", begun.elapsed());
    });
}

/// Where no way leads to another host, a connect ends, and says why.
pub(crate) fn no_way() {
    let nets = pair(1500);
    let server = server(&nets[0], "sm,sock");
    let lonely = Net::new();
    let client = default_in(&lonely, "sm,sock");
    lonely.enter(|| {
        let world = World::new([&server, &client]);
        client.connect(&Connect::to(server.uri()).context(3).timeout(LIMIT)).expect("a connect");
        let begun = Instant::now();
        let ended = world.next(1, EventKind::Connect);
        assert!(begun.elapsed() < LIMIT / 10, "after {:?}", begun.elapsed());
        assert_eq!((ended.outcome(), ended.context()), (Err(Failure::Refused), 3));
        let reason = ended.reason().expect("a reason");
        assert!(reason.contains("sock: the system has no way to 10.0.0.1 ("), "{reason}");
        assert_eq!(world.waiting(0, EventKind::ConnectRequest), 0);
    });
    assert!(open_to_strangers(&lonely).iter().all(|local| is_loopback(local)));
}

/// A firewall that begins to drop UDP: connections over it stay what they are, and new ones go by
/// TCP; once it has gone, new ones go by UDP again, and what waited arrives.
pub(crate) fn firewall() {
    let nets = pair(1500);
    let [server, client] = [0, 1].map(|at| server(&nets[at], "sock,tcp"));
    // A stream is in the name space of the thread whose call opens it.
    nets[1].enter(|| {
        let world = World::new([&server, &client]);
        let first = connect_by_udp(&world, server.uri());
        exchange(&world, first);
        nets[0].rules(
            "add table ip d; add chain ip d in { type filter hook input priority 0; }; \
         add rule ip d in meta l4proto udp counter drop",
        );
        client.send(first[1], b"meanwhile", 7).expect("a send");
        let second = connect(&world, server.uri());
        assert_eq!(way(&client, second[1]), "tcp");
        let why = client.report(second[1]).expect("open").why;
        assert!(nets[0].counted("d", "in") > 0, "nothing was dropped");
        exchange(&world, second);
        assert_eq!(world.waiting(1, EventKind::Send), 0, "a connection over UDP has another way; {why}");
        nets[0].rules("delete table ip d");
        assert_eq!((world.sent(1), world.message(0)), (7, b"meanwhile".to_vec()));
        let third = connect_by_udp(&world, server.uri());
        for connections in [first, second, third] {
            exchange(&world, connections);
        }
    });
}

/// A way that dies behind the request, so that the answer of the program is lost: the connect goes
/// on by the other way, without another request, and without another event.
pub(crate) fn lost_answer() {
    let nets = pair(1500);
    let [server, client] = [0, 1].map(|at| server(&nets[at], "sock,tcp"));
    nets[1].enter(|| {
        let world = World::new([&server, &client]);
        client.connect(&Connect::to(server.uri()).payload(b"once").context(1).timeout(LIMIT)).expect("a connect");
        let request = world.next(0, EventKind::ConnectRequest).into_request().expect("a request");
        assert_eq!(request.payload(), b"once");
        nets[0].rules(
            "add table ip d; add chain ip d in { type filter hook input priority 0; }; \
             add rule ip d in meta l4proto udp drop; \
             add chain ip d out { type filter hook output priority 0; }; \
             add rule ip d out meta l4proto udp counter drop",
        );
        request.accept(2).expect("an accept");
        let connected = world.next(1, EventKind::Connect);
        assert_eq!((connected.outcome(), connected.context()), (Ok(()), 1), "{:?}", connected.reason());
        let accepted = world.next(0, EventKind::Accept);
        assert_eq!((accepted.outcome(), accepted.context()), (Ok(()), 2));
        let connections = [accepted, connected].map(|event| event.connection().expect("one"));
        assert_eq!([way(&server, connections[0]), way(&client, connections[1])], ["tcp", "tcp"]);
        assert_eq!(connections.map(|connection| connection.context()), [Some(2), Some(1)]);
        assert!(nets[0].counted("d", "out") > 0, "no answer was lost");
        exchange(&world, connections);
        nets[0].rules("delete table ip d");
        // By UDP again: what the first way still says of the connect changes nothing.
        let again = connect_by_udp(&world, server.uri());
        exchange(&world, again);
        exchange(&world, connections);
        let waiting =
            |at| [EventKind::ConnectRequest, EventKind::Accept, EventKind::Connect].map(|kind| world.waiting(at, kind));
        assert_eq!([0, 1].map(waiting), [[0; 3]; 2]);
    });
}

/// A server's host, another host, and one behind a firewall that drops UDP.
fn three_hosts() -> ([Net; 2], Net) {
    let nets = pair(1500);
    let guarded = Net::new();
    nets[0].join(("w0", "10.0.1.1/24"), &guarded, ("w1", "10.0.1.2/24"), 1500);
    // It knows the server by the address that is in the URI.
    guarded.run(&["ip route add 10.0.0.1 via 10.0.1.1"]);
    guarded.rules(
        "add table ip d; add chain ip d out { type filter hook output priority 0; }; \
         add rule ip d out meta l4proto udp counter drop",
    );
    (nets, guarded)
}

/// A server with one URI: a client on its host comes by `sm`, one on another host by UDP, one
/// behind a firewall that drops UDP by TCP. One loop serves all of them.
pub(crate) fn three_ways() {
    let (nets, guarded) = three_hosts();
    let server = server(&nets[0], "sm,sock,tcp");
    let mut clients = Vec::new();
    for (net, taken) in [(&nets[0], "sm"), (&nets[1], "sock"), (&guarded, "tcp")] {
        // In the client's name space, where its stream is opened.
        let client = net.enter(|| {
            let client = open(&device_of("auto", &[("ways", "sm,sock,tcp"), ("listen", "network")]));
            let world = World::new([&server, &client]);
            let connections = connect(&world, server.uri());
            assert_eq!([way(&server, connections[0]), way(&client, connections[1])], [taken, taken]);
            drop(world);
            (client, connections)
        });
        clients.push(client);
    }
    assert!(guarded.counted("d", "out") > 0, "the firewall dropped nothing");
    let world = World::new([&server, &clients[0].0, &clients[1].0, &clients[2].0]);
    for round in 0..50 {
        for (client, connections) in &clients {
            client.send(connections[1], &pattern(round, 300), round).expect("a send");
        }
        let mut heard = Vec::new();
        for _ in &clients {
            let event = world.next(0, EventKind::Recv);
            assert_eq!(event.received().expect("a message").to_vec(), pattern(round, 300));
            heard.push(event.connection().expect("one"));
        }
        for (at, (_, connections)) in clients.iter().enumerate() {
            assert!(heard.contains(&connections[0]), "round {round}: client {at}");
            assert_eq!(world.sent(at + 1), round);
        }
    }
}

/// A server whose host is in two subnets, one of them with IPv6 too, has one URI. Clients in either
/// one, which know no way to the other, reach it by the address that is theirs: as a default
/// endpoint, and as one that is in both. A client that has IPv6 only does too.
pub(crate) fn several_addresses() {
    let nets = pair(1500);
    let [second, sixth] = [Net::new(), Net::new()];
    nets[0].join(("w0", "10.0.1.1/24"), &second, ("w1", "10.0.1.2/24"), 1500);
    nets[0].join(("x0", ""), &sixth, ("x1", ""), 1500);
    for (net, address, interface) in [(&nets[0], "2001:db8::1/64", "x0"), (&sixth, "2001:db8::2/64", "x1")] {
        net.run(&[&format!("ip addr add {address} dev {interface} nodad")]);
    }
    let server = server(&nets[0], "sm,sock,tcp");
    let uri = server.uri();
    assert!(uri.contains("sock=10.0.0.1:") && uri.ends_with(",tcp,+10.0.1.1,+2001:db8::1"), "{uri}");
    assert!(uri.len() <= 120, "{} bytes", uri.len());
    let elsewhere = [(&nets[1], "10.0.0.1:"), (&second, "10.0.1.1:"), (&sixth, "[2001:db8::1]:")];
    for (net, address) in elsewhere {
        for ways in ["sock", "tcp", "sm,sock,tcp"] {
            net.enter(|| {
                let open_too = self::server(net, ways);
                let default = default_in(net, ways);
                // A default endpoint has addresses of IPv4 alone.
                for client in
                    [Some(&open_too), Some(&default).filter(|_| address != "[2001:db8::1]:" || ways != "sock")]
                {
                    let Some(client) = client else { continue };
                    let world = World::new([&server, client]);
                    let connections = connect(&world, uri);
                    let report = client.report(connections[1]).expect("open");
                    assert!(report.path.contains(address), "{ways}: {}", report.path);
                    exchange(&world, connections);
                    assert_eq!(world.waiting(0, EventKind::ConnectRequest), 0, "one request of each connect");
                }
            });
        }
    }
    // A program that sleeps on the handle is woken by each of them, and by nothing else.
    let handle = server.handle().expect("a descriptor");
    let fall_asleep = || {
        server.arm().expect("usable");
        while server.get_event().expect("usable").is_some() {}
    };
    for (net, address) in elsewhere {
        net.enter(|| {
            let client = self::server(net, "sock,tcp");
            let world = World::new([&server, &client]);
            let connections = connect(&world, uri);
            while readable(&handle, Duration::from_secs(1)) {
                fall_asleep();
            }
            client.send(connections[1], b"awake", 1).expect("a send");
            assert!(readable(&handle, LIMIT), "{address} the handle stays silent");
            assert_eq!(world.message(0), b"awake");
            assert_eq!(world.sent(1), 1);
        });
    }
    // Where datagrams to the only address with a route are dropped, its streams are left.
    nets[0].rules(
        "add table ip d; add chain ip d in { type filter hook input priority 0; }; \
         add rule ip d in meta l4proto udp counter drop",
    );
    second.enter(|| {
        let client = default_in(&second, "sock,tcp");
        let world = World::new([&server, &client]);
        let connections = connect(&world, uri);
        let report = client.report(connections[1]).expect("open");
        assert!(report.path.starts_with("tcp: ") && report.path.contains("10.0.1.1:"), "{}", report.path);
        for (address, why) in
            [("10.0.0.1", "the system has no way to 10.0.0.1"), ("10.0.1.1", "asked before, and did not")]
        {
            let sentence = |part: &&str| part.contains(&format!("sock {address}:")) && part.contains(why);
            assert!(report.why.split("; ").any(|part| sentence(&part)), "{address}: {}", report.why);
        }
    });
    // An address of the server that the client's host has too, as bridges of containers have it.
    nets[0].rules("delete table ip d");
    second.run(&["ip addr add 10.0.0.1/32 dev lo"]);
    second.enter(|| {
        let client = self::server(&second, "sock");
        let world = World::new([&server, &client]);
        let connections = connect(&world, uri);
        let report = client.report(connections[1]).expect("open");
        assert!(report.path.contains("10.0.1.1:"), "{}", report.path);
        assert!(report.why.contains(": it is an address of this host too"), "{}", report.why);
    });
}

/// Accepts every request of an endpoint while something is done.
fn while_accepting<T>(endpoint: &Endpoint, act: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let event = endpoint.get_event().expect("usable");
                match event.map(Event::into_request) {
                    Some(Some(request)) => request.accept(0).expect("an accept"),
                    Some(None) => {}
                    None => std::thread::yield_now(),
                }
            }
        });
        let done = std::panic::catch_unwind(AssertUnwindSafe(act));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|why| std::panic::resume_unwind(why))
    })
}

/// `cci explain` with the URI of a server, from each of three places: the way that is taken, and
/// why each other one is not.
pub(crate) fn explained() {
    let (nets, guarded) = three_hosts();
    let server = server(&nets[0], "sm,sock,tcp");
    let expected: [(&Net, [&str; 4]); 3] = [
        (&nets[0], ["messages   sm: ", "sock 10.0.1.1:", ": sm is better", "peers      are of this user"]),
        (
            &nets[1],
            [
                "messages   sock: ",
                "sm: the endpoint is on another host",
                ": sock is better",
                "peers      are not authenticated",
            ],
        ),
        (
            &guarded,
            [
                "messages   tcp: ",
                "sm: the endpoint is on another host",
                ": asked before, and did not answer",
                "peers      are not authenticated",
            ],
        ),
    ];
    for (net, texts) in expected {
        let explain = || Command::new(command()).args(["explain", server.uri()]).env("CCI_LISTEN", "network").output();
        let explained = || {
            let output = while_accepting(&server, || net.enter(explain)).expect("the command runs");
            let [told, complaint] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
            assert!(output.status.success(), "{complaint}");
            told
        };
        let told = until_way(explained, |told| told.contains(texts[0]));
        for text in texts {
            assert!(told.contains(text), "{text:?} is not in {told}");
        }
    }
}

/// The example with a port, and without a line about transports: from its host, and from another.
pub(crate) fn examples() {
    let nets = pair(1500);
    for (net, scheme) in [(&nets[0], "sm"), (&nets[1], "sock")] {
        let program = built("echo", "cci-examples");
        let serve = || Command::new(&program).args(["server", "5000"]).stdout(Stdio::piped()).spawn();
        let mut server = Running(nets[0].enter(serve).expect("the server runs"));
        let mut uri = String::new();
        BufReader::new(server.0.stdout.take().expect("piped")).read_line(&mut uri).expect("a line");
        assert!(uri.contains(",sock=") && uri.contains(":5000,tcp"), "{uri}");
        let ask = || Command::new(&program).args(["client", uri.trim(), "one", "two"]).output();
        let output = net.enter(ask).expect("the client runs");
        let [answers, complaint] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert_eq!(answers, "one\ntwo\n", "{scheme}: {complaint}");
        assert!(server.0.wait().expect("its end").success());
    }
}

/// Of each two ways 30 % of all packets are lost, each way: ten thousand connects are ten thousand
/// requests.
pub(crate) fn connects_under_loss() {
    const CONNECTS: usize = 10_000;
    /// At once: more than the requests that a program has not answered.
    const AT_ONCE: usize = 400;
    // Ten seconds where it is alone; other tests run beside it.
    let patience = 8 * LIMIT;
    let nets = pair(1500);
    for net in &nets {
        net.rules(
            "add table ip t; add chain ip t in { type filter hook input priority 0; }; \
             add rule ip t in ip protocol { tcp, udp } numgen random mod 100 < 30 counter drop",
        );
    }
    let [server, client] = [0, 1].map(|at| server(&nets[at], "sock,tcp"));
    let mut requests = vec![0_u32; CONNECTS + 1];
    let (mut begun, mut connected, mut accepted) = (0, 0, 0);
    let mut ways = BTreeMap::new();
    nets[1].enter(|| {
        let mut serve = || {
            while let Some(event) = server.get_event().expect("usable") {
                match event.kind() {
                    EventKind::ConnectRequest => {
                        let request = event.into_request().expect("a request");
                        let number = u64::from_le_bytes(request.payload().try_into().expect("a number"));
                        requests[usize::try_from(number).expect("small")] += 1;
                        request.accept(number).expect("an accept");
                    }
                    EventKind::Accept => {
                        assert_eq!(event.outcome(), Ok(()), "accept {}: {:?}", event.context(), event.reason());
                        accepted += 1;
                    }
                    kind => panic!("{kind:?}"),
                }
            }
            accepted
        };
        let ask = |uri: &str, number: usize| {
            let payload = (number as u64).to_le_bytes();
            let connect = Connect::to(uri).payload(&payload).context(number as u64).timeout(patience);
            client.connect(&connect).expect("a connect");
        };
        let started = Instant::now();
        while connected < CONNECTS {
            while begun < CONNECTS && begun - connected < AT_ONCE {
                ask(server.uri(), begun);
                begun += 1;
            }
            serve();
            while let Some(event) = client.get_event().expect("usable") {
                assert_eq!((event.kind(), event.outcome()), (EventKind::Connect, Ok(())), "{:?}", event.reason());
                *ways.entry(way(&client, event.connection().expect("one"))).or_insert(0_usize) += 1;
                connected += 1;
            }
            assert!(started.elapsed() < patience, "{connected} of {begun} have connected: {ways:?}");
        }
        // What may still be under way is in the stream, and one more connect comes behind it.
        let dropped = nets.each_ref().map(|net| net.counted("t", "in"));
        assert!(dropped.iter().all(|count| *count > 1000), "{dropped:?} packets were dropped");
        nets.iter().for_each(|net| net.rules("delete table ip t"));
        let port = server.uri().split_once("sock=").and_then(|(_, rest)| rest.split_once(','));
        let (address, _) = port.expect("an address");
        ask(&format!("tcp://{address}"), CONNECTS);
        // A client is connected before the server hears that it is.
        while serve() <= CONNECTS || connected <= CONNECTS {
            if let Some(event) = client.get_event().expect("usable") {
                assert_eq!((event.kind(), event.outcome()), (EventKind::Connect, Ok(())), "{:?}", event.reason());
                connected += 1;
            }
            assert!(started.elapsed() < 2 * patience, "the stream does not recover");
        }
    });
    assert!(requests.iter().all(|count| *count == 1), "a connect was no request, or several");
    assert_eq!(accepted, CONNECTS + 1);
    assert!(ways.len() == 2, "both ways were needed: {ways:?}");
}
