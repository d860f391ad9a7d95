//! Several ways of one `auto` endpoint at the same time: which one a connect takes, and what is
//! common to all.

use cci::__binding::Contract;
use cci::{
    Attribute, Connect, ConnectError, Connection, Device, Endpoint, EventKind, Failure, HeapBytes, Memory, Rights, Rma,
    RmaHandle, SendError,
};
use cci_conformance::memory::Origin;
use cci_conformance::{LIMIT, Peer, World, device_of, drain, most, open, open_with, pattern, readable, sm_device};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

fn over(ways: &str) -> Device {
    device_of("auto", &[("ways", ways)])
}

/// The way that a connection goes.
fn way(endpoint: &Endpoint, connection: Connection) -> String {
    let report = endpoint.report(connection).expect("an open connection");
    assert_eq!(report.transport, "auto");
    report.path.split(':').next().expect("a name").to_owned()
}

/// The URI with other text for one of its ways, and the same as before for the others.
fn with_way(uri: &str, name: &str, rest: &str) -> String {
    let (head, ways) = uri.split_once(',').expect("ways");
    let (mut text, mut before) = (head.to_owned(), "");
    for part in ways.split(',') {
        // A way without a text has that of the way before it.
        let (way, own) = part.split_once('=').unwrap_or((part, before));
        text = format!("{text},{way}={}", if way == name { rest } else { own });
        before = own;
    }
    text
}

/// Joins a group on the loop-back interface, as `attribute` says.
fn join(world: &World<'_>, at: usize, group: &str, attribute: Attribute) -> Connection {
    world.endpoint(at).connect(&Connect::to(group).attribute(attribute).context(3)).expect("a connect");
    let joined = world.next(at, EventKind::Connect);
    assert_eq!((joined.outcome(), joined.context()), (Ok(()), 3), "{:?}", joined.reason());
    joined.connection().expect("one")
}

/// Groups go by the way that has them, whatever stands before it.
#[test]
fn a_group_is_joined_by_the_way_that_has_groups() {
    let [sender, receiver, other] = ["sm,sock,tcp", "tcp,sm,sock", "sock"].map(|ways| open(&over(ways)));
    let world = World::new([&sender, &receiver, &other]);
    let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let group = format!("cci://239.255.72.1:{free}?interface=lo");
    let [there, _] = [1, 2].map(|at| join(&world, at, &group, Attribute::MulticastReceive));
    assert_eq!(way(&receiver, there), "sock");
    let here = join(&world, 0, &group, Attribute::MulticastSend);
    sender.send(here, b"to all", 4).expect("a send");
    assert_eq!([world.message(1), world.message(2)], [b"to all", b"to all"]);
    assert_eq!(world.sent(0), 4);
    let refused =
        |uri: &str| sender.connect(&Connect::to(uri).attribute(Attribute::MulticastSend)).expect_err("no group");
    assert_eq!(refused("cci://239.255.72.1:0"), ConnectError::BadUri);
    assert_eq!(refused("cci://nonsense"), ConnectError::BadUri);
    assert_eq!(refused(receiver.uri()), ConnectError::NotImplemented);
    assert_eq!(refused("sm://1/1"), ConnectError::NotImplemented);
}

/// Connects, with the CONNECT event of this context.
fn connect(world: &World<'_>, from: usize, to: usize, uri: &str) -> (Connection, Connection) {
    world.endpoint(from).connect(&Connect::to(uri).context(9).timeout(LIMIT)).expect("a connect");
    let accepted = world.accept(to);
    let connected = world.next(from, EventKind::Connect);
    assert_eq!((connected.outcome(), connected.context()), (Ok(()), 9));
    (connected.connection().expect("one"), accepted)
}

#[test]
fn a_connect_takes_the_best_way_that_both_have() {
    let server = open(&over("sm,sock"));
    for (ways, taken) in [("sm,sock", "sm"), ("sock,sm", "sock"), ("sm", "sm"), ("sock", "sock")] {
        let client = open(&over(ways));
        let world = World::new([&server, &client]);
        let (there, here) = connect(&world, 1, 0, server.uri());
        assert_eq!((way(&client, there), way(&server, here)), (taken.into(), taken.into()), "client with {ways}");
        let why = client.report(there).expect("an open connection").why;
        let other = if taken == "sm" { "sock: sm is better" } else { "sm: sock is better" };
        assert_eq!(why.contains(other), ways.contains(','), "{why}");
        client.send(there, b"hello", 1).expect("a send");
        assert_eq!(world.message(0), b"hello");
        server.send(here, b"hello to you", 2).expect("a send");
        assert_eq!(world.message(1), b"hello to you");
        assert_eq!((world.sent(0), world.sent(1)), (2, 1));
    }
}

#[test]
fn all_ways_deliver_to_one_queue_and_share_the_receive_buffers() {
    let server = open_with(&over("sm,sock"), |options| options.recv_buffers = 16);
    let clients = ["sm", "sock"].map(|ways| open(&over(ways)));
    let world = World::new([&server, &clients[0], &clients[1]]);
    let connections = [1, 2].map(|at| connect(&world, at, 0, server.uri()));
    let mut next = [0u64; 2];
    // More than there are buffers, from both: what is returned by one way is there for the other.
    for round in 0..100 {
        for (client, (there, _)) in clients.iter().zip(connections) {
            client.send(there, &pattern(round, 200), round).expect("a send");
        }
    }
    for _ in 0..200 {
        let event = world.next(0, EventKind::Recv);
        let at = connections.iter().position(|(_, here)| event.connection() == Some(*here)).expect("one of them");
        assert_eq!(event.received().expect("a message").to_vec(), pattern(next[at], 200));
        next[at] += 1;
    }
    assert_eq!(next, [100; 2]);
    for at in [1, 2] {
        (0..100).for_each(|round| assert_eq!(world.sent(at), round));
    }
    assert_eq!(server.recv_buffers(), Ok(16));
}

/// What the program holds of one way's large messages is missing for those of another way, until it
/// is returned.
#[test]
fn all_ways_share_the_limit_of_large_messages() {
    const LEN: usize = 800 << 10;
    let server = open(&over("sm,sock,tcp"));
    server.set_large_limit(1 << 20).expect("usable");
    let clients = ["sm", "sock", "tcp"].map(|ways| open(&over(ways)));
    let world = World::new([&server, &clients[0], &clients[1], &clients[2]]);
    let connections = [1, 2, 3].map(|at| connect(&world, at, 0, server.uri()));
    let send = |at: usize, number: u64| {
        let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(pattern(number, LEN))));
        clients[at].send_large(connections[at].0, &memory, number).expect("a send");
    };
    for [first, second] in [[0, 1], [1, 2], [2, 0]] {
        send(first, 1);
        let held = world.next(0, EventKind::Recv);
        assert_eq!(held.received().expect("a message").len(), LEN);
        assert_eq!(world.sent(first + 1), 1);
        send(second, 2);
        // It has been asked for when what comes behind it elsewhere has been delivered.
        for round in 0..20 {
            clients[first].send(connections[first].0, &pattern(round, 100), round).expect("a send");
            assert_eq!(world.next(0, EventKind::Recv).received().expect("a message").len(), 100, "{first}, {second}");
            assert_eq!(world.sent(first + 1), round);
        }
        assert_eq!(world.waiting(second + 1, EventKind::Send), 0);
        drop(held);
        assert_eq!(world.message(0), pattern(2, LEN));
        assert_eq!(world.sent(second + 1), 2);
    }
}

#[test]
fn a_program_that_holds_every_buffer_of_all_ways_is_told_so() {
    let server = open_with(&over("sm,sock"), |options| options.recv_buffers = 8);
    let clients = ["sm", "sock"].map(|ways| open(&over(ways)));
    let world = World::new([&server, &clients[0], &clients[1]]);
    let connections = [1, 2].map(|at| connect(&world, at, 0, server.uri()).0);
    for (client, connection) in clients.iter().zip(connections) {
        (0..8).for_each(|round| client.send(connection, b"held", round).expect("a send"));
    }
    let begun = Instant::now();
    let mut held = Vec::new();
    let refused = loop {
        match server.get_event() {
            Ok(event) => held.extend(event),
            Err(error) => break error,
        }
        clients.iter().for_each(|client| {
            drain(client);
        });
        assert!(begun.elapsed() < LIMIT, "{} events are held", held.len());
    };
    assert_eq!((refused, held.len()), (cci::PollError::NoBuffers, 8));
    held.clear();
    while held.len() < 8 {
        held.extend(server.get_event().expect("room again"));
        clients.iter().for_each(|client| {
            drain(client);
        });
        assert!(begun.elapsed() < LIMIT, "{} events came after the return", held.len());
    }
}

#[test]
fn one_handle_is_valid_over_every_way() {
    const LEN: usize = 100_000;
    let server = open(&over("sm,sock"));
    for origin in Origin::ALL {
        let target = origin.allocate(LEN);
        let handle = server.register_memory(target.memory(), Rights::READ_WRITE).expect("a registration");
        let [first, second, ..] = handle.words();
        let half = RmaHandle::from_words([first, second, 0, 0]);
        for ways in ["sm", "sock", "sm,sock"] {
            let client = open(&over(ways));
            let world = World::new([&server, &client]);
            let (connection, _) = connect(&world, 1, 0, server.uri());
            let source = origin.allocate(LEN);
            let local = client.register_memory(source.memory(), Rights::NONE).expect("a registration");
            source.write(0, &pattern(LEN as u64, LEN));
            for remote in [&handle, &half] {
                client.write(connection, &Rma::new(&local, remote, LEN as u64), 1).expect("a write");
                assert_eq!(world.sent(1), 1, "{ways}");
            }
            assert!(target.to_vec(0, LEN) == pattern(LEN as u64, LEN), "{ways}");
            target.write(0, &pattern(5, LEN));
            client.read(connection, &Rma::new(&local, &half, LEN as u64), 2).expect("a read");
            assert_eq!(world.sent(1), 2, "{ways}");
            assert!(source.to_vec(0, LEN) == pattern(5, LEN), "{ways}");
        }
        server.deregister(&handle).expect("registered");
        for ways in ["sm", "sock"] {
            let client = open(&over(ways));
            let world = World::new([&server, &client]);
            let (connection, _) = connect(&world, 1, 0, server.uri());
            let source = origin.allocate(LEN);
            let local = client.register_memory(source.memory(), Rights::NONE).expect("a registration");
            client.write(connection, &Rma::new(&local, &handle, 8), 3).expect("begun");
            assert_eq!(world.next(1, EventKind::Send).outcome(), Err(Failure::RemoteHandle), "{ways}");
        }
    }
}

#[test]
fn a_connect_goes_on_by_the_next_way_where_nobody_listens() {
    let (server, client) = (open(&over("sm,sock")), open(&over("sm,sock")));
    let world = World::new([&server, &client]);
    let (_, gone) = (open(&sm_device()), open(&sm_device()));
    let rest = gone.uri().trim_start_matches("sm://").to_owned();
    gone.close().expect("a close");
    let uri = with_way(server.uri(), "sm", &rest);
    assert_ne!(uri, server.uri());
    let (there, _) = connect(&world, 1, 0, &uri);
    assert_eq!(way(&client, there), "sock");
}

#[test]
fn a_connect_by_no_way_says_why_for_each() {
    let (server, client) = (open(&over("sm,sock")), open(&over("sm,sock")));
    let uri = server.uri().to_owned();
    server.close().expect("a close");
    let world = World::new([&client]);
    client.connect(&Connect::to(&uri).context(4).timeout(LIMIT)).expect("a connect");
    let ended = world.next(0, EventKind::Connect);
    assert_eq!((ended.outcome(), ended.context()), (Err(Failure::Refused), 4));
    let reason = ended.reason().expect("a reason");
    assert!(["sm: ", "; sock: "].iter().all(|part| reason.contains(part)), "{reason}");
}

#[test]
fn a_rejected_connect_is_one_request_though_it_goes_on_by_the_next_way() {
    let (server, client) = (open(&over("sm,sock")), open(&over("sm,sock")));
    let world = World::new([&server, &client]);
    for round in 0..20 {
        client.connect(&Connect::to(server.uri()).payload(b"please").context(round).timeout(LIMIT)).expect("a connect");
        world.next(0, EventKind::ConnectRequest).into_request().expect("a request").reject().expect("a reject");
        let ended = world.next(1, EventKind::Connect);
        assert_eq!((ended.outcome(), ended.context()), (Err(Failure::Refused), round));
        let reason = ended.reason().expect("a reason");
        assert!(reason.contains("sm: ") && reason.contains("sock: "), "both were asked: {reason}");
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(50) {
        world.step();
    }
    assert_eq!(world.waiting(0, EventKind::ConnectRequest), 0);
}

#[test]
fn an_endpoint_that_has_anothers_address_rejects_its_clients() {
    let (wanted, other, client) = (open(&over("sm,sock")), open(&over("sm,sock")), open(&over("sm,sock")));
    let world = World::new([&wanted, &other, &client]);
    // The identity of one, the ways of the other.
    let head = wanted.uri().split(',').next().expect("a head");
    let ways = other.uri().split_once(',').expect("ways").1;
    client.connect(&Connect::to(&format!("{head},{ways}")).context(6).timeout(LIMIT)).expect("a connect");
    let ended = world.next(2, EventKind::Connect);
    assert_eq!((ended.outcome(), ended.context()), (Err(Failure::Refused), 6));
    assert_eq!([0, 1].map(|at| world.waiting(at, EventKind::ConnectRequest)), [0, 0]);
    connect(&world, 2, 1, other.uri());
}

#[test]
fn endpoints_of_one_way_and_of_several_reach_each_other() {
    let several = open(&over("sm,sock"));
    let plain = [open(&sm_device()), open(&device_of("sock", &[("interface", "lo")]))];
    for (name, other) in ["sm", "sock"].iter().zip(&plain) {
        let world = World::new([&several, other]);
        let (there, _) = connect(&world, 0, 1, other.uri());
        assert_eq!(way(&several, there), *name);
        let part = several.uri().split(',').find(|part| part.starts_with(&format!("{name}="))).expect("a way");
        connect(&world, 1, 0, &part.replacen('=', "://", 1));
    }
    let refused = several.connect(&Connect::to("tcp://127.0.0.1:1").context(1));
    assert_eq!(refused, Err(ConnectError::BadUri), "it has no such way");
}

#[test]
fn without_a_service_no_socket_is_on_an_address_of_the_network() {
    let local = open(&over("sm,sock"));
    assert!(local.uri().contains(",sock=127.0.0.1:"), "{}", local.uri());
    let shares = |_| open(&over("sm,sock,tcp")).uri().ends_with(",tcp");
    assert!((0..5).any(shares), "sock and tcp share a port where it is free");
    assert!(local.uri().len() <= 120);
    let refused = Endpoint::open(&over("sm,sock"), &cci::EndpointOptions::new().service("77/0"));
    let Err(error) = refused else { panic!("it is no port") };
    assert_eq!(error.status, cci::Status::Inval);
}

#[test]
fn a_sleeper_wakes_by_each_way() {
    let server = open(&over("sm,sock"));
    let clients = ["sm", "sock"].map(|ways| open(&over(ways)));
    let world = World::new([&server, &clients[0], &clients[1]]);
    let connections = [1, 2].map(|at| connect(&world, at, 0, server.uri()));
    let handle = server.handle().expect("a handle");
    for round in 0..50 {
        while drain(&server) > 0 {}
        server.arm().expect("armed");
        let (client, (there, here)) = (&clients[round % 2], connections[round % 2]);
        if round >= 10 {
            std::thread::sleep(Duration::from_millis(2));
        }
        client.send(there, &pattern(1, round), 1).expect("a send");
        let begun = Instant::now();
        loop {
            assert!(readable(&handle, LIMIT), "round {round}: the handle stays silent");
            drain(client);
            if let Some(event) = server.get_event().expect("usable") {
                assert_eq!(event.connection(), Some(here));
                break;
            }
            assert!(begun.elapsed() < LIMIT, "round {round}: no message");
        }
    }
}

#[test]
fn a_handle_is_quiet_while_nothing_happens() {
    let server = open(&over("sm,sock"));
    let client = open(&over("sock"));
    let world = World::new([&server, &client]);
    connect(&world, 1, 0, server.uri());
    let handle = server.handle().expect("a handle");
    let begun = Instant::now();
    loop {
        drain(&server);
        drain(&client);
        server.arm().expect("armed");
        if !readable(&handle, Duration::from_millis(20)) {
            return;
        }
        assert!(begun.elapsed() < LIMIT, "it stays readable");
    }
}

#[test]
fn another_process_is_reached_by_each_way() {
    for (theirs, ours, taken) in
        [("sm,sock", "sm,sock", "sm"), ("sm,sock", "sock", "sock"), ("sock", "sm,sock", "sock")]
    {
        let mut peer = Peer::spawn(PROGRAM, "echo-over-ways", &[theirs]);
        let uri = peer.line();
        let endpoint = open(&over(ours));
        let world = World::new([&endpoint]);
        endpoint.connect(&Connect::to(&uri).context(1).timeout(LIMIT)).expect("a connect");
        let connection = world.next(0, EventKind::Connect).connection().expect("a connection");
        assert_eq!(way(&endpoint, connection), taken);
        for len in [0, 1, 56, 57, 1000, most(connection)] {
            endpoint.send(connection, &pattern(len as u64, len), len as u64).expect("a send");
            assert_eq!(world.message(0), pattern(len as u64, len));
            assert_eq!(world.sent(0), len as u64);
        }
        endpoint.disconnect(connection).expect("a disconnect");
    }
}

/// The largest message of a connection is that of its way at both ends, whatever other ways take.
#[test]
fn a_connection_takes_what_its_way_takes() {
    let device = over("sm,sock,tcp");
    let (endpoint, largest) = (open(&device), device.max_send_size as usize);
    let world = World::new([&endpoint]);
    for (theirs, expected) in [("sm", largest), ("sock", largest), ("tcp", 2048)] {
        let mut peer = Peer::spawn("env", "CCI_TCP_MSS=2048", &[PROGRAM, "echo-over-ways", theirs]);
        endpoint.connect(&Connect::to(&peer.line()).context(1).timeout(LIMIT)).expect("a connect");
        let connection = world.next(0, EventKind::Connect).connection().expect("a connection");
        assert_eq!((way(&endpoint, connection), most(connection)), (theirs.to_owned(), expected));
        endpoint.send(connection, &pattern(1, expected), 1).expect("a send");
        assert_eq!(world.message(0), pattern(1, expected));
        assert_eq!(world.sent(0), 1);
        assert_eq!(endpoint.send(connection, &pattern(1, expected + 1), 2), Err(SendError::TooLong));
        endpoint.disconnect(connection).expect("a disconnect");
    }
}

#[test]
fn a_connection_by_a_way_that_was_not_used_for_long_still_delivers() {
    let server = open(&over("sm,sock"));
    let client = open(&over("sock"));
    let world = World::new([&server, &client]);
    let (there, here) = connect(&world, 1, 0, server.uri());
    for round in 0..20 {
        // The server's way over sock turns cold meanwhile.
        for _ in 0..10_000 {
            assert!(server.get_event().expect("usable").is_none());
        }
        client.send(there, &pattern(round, 100), round).expect("a send");
        assert_eq!(world.message(0), pattern(round, 100));
        server.send(here, b"answer", round).expect("a send");
        assert_eq!(world.message(1), b"answer");
        assert_eq!((world.sent(1), world.sent(0)), (round, round));
    }
}

/// A server that sends as soon as it has accepted: its message may come with the answer.
#[test]
fn a_connect_ends_before_the_first_message_comes() {
    for name in ["sm", "tcp"] {
        let [server, client] = [0, 1].map(|_| open(&over(name)));
        client.connect(&Connect::to(server.uri()).timeout(LIMIT)).expect("a connect");
        let world = World::new([&server, &client]);
        let request = world.next(0, EventKind::ConnectRequest).into_request().expect("a request");
        request.accept(1).expect("an accept");
        // The client makes no call meanwhile.
        let server_only = World::new([&server]);
        let accepted = server_only.next(0, EventKind::Accept).connection().expect("one");
        for number in 0..3 {
            server.send(accepted, &[7; 100], number).expect("a send");
        }
        (0..1000).for_each(|_| server_only.step());
        let kinds: Vec<_> = (0..4).map(|_| world.first(1).kind()).collect();
        assert_eq!(kinds[0], EventKind::Connect, "{name}: {kinds:?}");
        assert_eq!(kinds[1..], [EventKind::Recv; 3], "{name}");
    }
}

/// Asks the first of three endpoints, which sends the client on to the second; connections of the
/// client, the third, and of the second.
fn send_on(world: &World<'_>, uri: &str) -> (Connection, Connection) {
    world.endpoint(2).connect(&Connect::to(uri).context(9).timeout(LIMIT)).expect("a connect");
    let request = world.next(0, EventKind::ConnectRequest).into_request().expect("a request");
    request.accept_on(world.endpoint(1), 4).expect("an answer");
    let accepted = world.next(1, EventKind::Accept);
    assert_eq!((accepted.outcome(), accepted.context()), (Ok(()), 4));
    let connected = world.next(2, EventKind::Connect);
    assert_eq!((connected.outcome(), connected.context()), (Ok(()), 9), "{:?}", connected.reason());
    (connected.connection().expect("one"), accepted.connection().expect("one"))
}

#[test]
fn a_client_is_sent_on_by_the_way_that_it_has_come() {
    let [broker, worker] = [0, 1].map(|_| open(&over("sm,sock,tcp")));
    for name in ["sm", "sock", "tcp"] {
        let client = open(&over(name));
        let world = World::new([&broker, &worker, &client]);
        let (there, here) = send_on(&world, broker.uri());
        assert_eq!([way(&client, there), way(&worker, here)], [name, name]);
        client.send(there, b"work", 1).expect("a send");
        assert_eq!((world.message(1), world.sent(2)), (b"work".to_vec(), 1));
    }
}

#[test]
fn a_client_is_not_sent_where_its_way_does_not_lead() {
    let (broker, worker) = (open(&over("sm,sock")), open(&over("sock")));
    let client = open(&over("sm"));
    let world = World::new([&broker, &worker, &client]);
    client.connect(&Connect::to(broker.uri()).context(9).timeout(LIMIT)).expect("a connect");
    let request = world.next(0, EventKind::ConnectRequest).into_request().expect("a request");
    let refused = request.accept_on(&worker, 4).expect_err("the worker has no such way");
    assert!(refused.to_string().contains("device"), "{refused}");
    refused.request.accept(5).expect("still unanswered");
    assert_eq!(world.next(0, EventKind::Accept).context(), 5);
    assert_eq!(world.next(2, EventKind::Connect).outcome(), Ok(()));
}

/// A client that is sent on and never comes: one event, although each way expects it.
#[test]
fn a_client_that_does_not_come_is_told_of_once() {
    let [broker, worker] = [0, 1].map(|_| open(&over("sm,sock,tcp")));
    let client = open(&over("sm"));
    client.connect(&Connect::to(broker.uri()).timeout(LIMIT)).expect("a connect");
    let asked = World::new([&broker, &client]).next(0, EventKind::ConnectRequest);
    // The client makes no call any more.
    asked.into_request().expect("a request").accept_on(&worker, 4).expect("an answer");
    let world = World::new([&broker, &worker]);
    let ended = world.next(1, EventKind::Accept);
    assert_eq!((ended.outcome(), ended.context()), (Err(Failure::TimedOut), 4));
    (0..10_000).for_each(|_| world.step());
    assert_eq!(world.waiting(1, EventKind::Accept), 0, "each way has told of it");
}

/// Calls of `read` and `write` that this thread has made: those that settle a handle are among
/// them, those that send and receive are not.
fn reads_and_writes() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").expect("counters of this thread");
    let counts = text.lines().filter_map(|line| line.strip_prefix("syscr: ").or(line.strip_prefix("syscw: ")));
    counts.map(|count| count.parse::<u64>().expect("a number")).sum()
}

/// A way that has been armed since nothing came by it is not settled after each call once it is at
/// work, as a way beside others or alone among those of the network.
#[test]
fn a_way_at_work_is_polled_without_its_handle() {
    const ROUNDS: u64 = 2_000;
    for name in ["sock", "tcp"] {
        let [server, client] = [0, 1].map(|_| open(&over("sm,sock,tcp")));
        let world = World::new([&server, &client]);
        let uri = with_way(server.uri(), "sm", "none");
        let uri = if name == "tcp" { with_way(&uri, "sock", "[::1]:1") } else { uri };
        let (there, here) = connect(&world, 1, 0, &uri);
        assert_eq!(way(&client, there), name);
        // Long enough for every way of the network to be cold.
        (0..100_000).for_each(|_| world.step());
        let before = reads_and_writes();
        for round in 0..ROUNDS {
            client.send(there, &[1; 8], round).expect("a send");
            assert_eq!(world.message(0), [1; 8]);
            server.send(here, &[2; 8], round).expect("a send");
            assert_eq!((world.message(1), world.sent(0), world.sent(1)), (vec![2; 8], round, round));
        }
        let calls = reads_and_writes() - before;
        assert!(calls < ROUNDS, "{name}: {calls} calls of read and write in {ROUNDS} round trips");
    }
}

/// A socket that takes every datagram and answers none, and its address.
fn silent_socket() -> (std::net::UdpSocket, String) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("bound").to_string();
    (socket, address)
}

#[test]
fn a_connect_goes_by_the_next_way_where_one_answers_nothing() {
    let (server, client) = (open(&over("sock,tcp")), open(&over("sock,tcp")));
    let world = World::new([&server, &client]);
    let (_socket, silent) = silent_socket();
    let begun = Instant::now();
    let (there, here) = connect(&world, 1, 0, &with_way(server.uri(), "sock", &silent));
    assert!(begun.elapsed() >= Duration::from_millis(100), "after {:?}", begun.elapsed());
    assert_eq!((way(&client, there), way(&server, here)), ("tcp".into(), "tcp".into()));
    // A sleeper too.
    let handle = client.handle().expect("a handle");
    client.connect(&Connect::to(&with_way(server.uri(), "sock", &silent)).context(8)).expect("a connect");
    while drain(&client) > 0 {}
    client.arm().expect("armed");
    let begun = Instant::now();
    while world.waiting(0, EventKind::ConnectRequest) == 0 {
        assert!(readable(&handle, LIMIT) && begun.elapsed() < LIMIT, "nothing wakes the client");
        drain(&client);
        client.arm().expect("armed");
        world.poll(0);
    }
}

#[test]
fn a_slow_server_sees_one_request_though_the_client_asks_by_two_ways() {
    let (server, client) = (open(&over("sock,tcp")), open(&over("sock,tcp")));
    let world = World::new([&server, &client]);
    client.connect(&Connect::to(server.uri()).context(3).timeout(LIMIT)).expect("a connect");
    let request = world.next(0, EventKind::ConnectRequest);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(400) {
        world.step();
    }
    assert_eq!((world.waiting(0, EventKind::ConnectRequest), world.waiting(1, EventKind::Connect)), (0, 0));
    request.into_request().expect("a request").accept(2).expect("an accept");
    let connected = world.next(1, EventKind::Connect);
    assert_eq!((connected.outcome(), connected.context()), (Ok(()), 3));
    assert_eq!(way(&client, connected.connection().expect("one")), "sock");
    world.next(0, EventKind::Accept);
}

#[test]
fn a_connect_that_no_way_answers_times_out_once() {
    let client = open(&over("sock,tcp"));
    let world = World::new([&client]);
    let (_socket, silent) = silent_socket();
    // It takes streams and answers nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let deaf = listener.local_addr().expect("bound").to_string();
    let uri = with_way(&with_way(client.uri(), "sock", &silent), "tcp", &deaf);
    client.connect(&Connect::to(&uri).context(5).timeout(Duration::from_millis(300))).expect("a connect");
    let ended = world.next(0, EventKind::Connect);
    assert_eq!((ended.outcome(), ended.context()), (Err(Failure::TimedOut), 5));
    let reason = ended.reason().expect("a reason");
    assert!(reason.contains("sock: ") && reason.contains("tcp: "), "{reason}");
    assert_eq!(drain(&client), 0);
}

/// The devices of a program without a configuration, with this `CCI_CTP`: a line each.
fn devices(selection: &str) -> Vec<String> {
    let mut command = std::process::Command::new(PROGRAM);
    command.arg("devices").env_remove("CCI_CONFIG").env("CCI_TEST_PARENT", std::process::id().to_string());
    let output = command.env("CCI_CTP", selection).output().expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn the_default_device_has_every_way_that_the_selection_leaves() {
    let auto = |selection: &str| devices(selection).into_iter().find(|line| line.starts_with("auto "));
    assert_eq!(auto("").as_deref(), Some("auto  default"));
    assert_eq!(auto("auto").as_deref(), Some("auto  default"));
    assert_eq!(auto("sm").as_deref(), Some("auto ways=sm default"));
    assert_eq!(auto("sock,sm").as_deref(), Some("auto ways=sm,sock default"));
    assert_eq!(auto("sock,auto").as_deref(), Some("auto ways=sock default"));
    assert!(auto("^sm").is_some_and(|line| line.starts_with("auto ways=sock") && line.ends_with(" default")));
    assert_eq!((auto("^auto"), auto("sim")), (None, None));
    assert!(devices("^auto").iter().any(|line| line == "sm  default"), "without it the default is as ever");
}

#[test]
fn an_endpoint_of_a_way_alone_is_not_taken_for_one_that_had_its_address_before() {
    for way in ["sm", "sock", "tcp"] {
        let first = Endpoint::open(&over(way), &cci::EndpointOptions::new()).expect("an endpoint");
        let uri = first.uri().to_owned();
        drop(first);
        let address = uri.split_once('=').expect("a way").1;
        let port = address.rsplit(':').next().expect("a port");
        let options = cci::EndpointOptions::new();
        let other = match way {
            "sm" => Endpoint::open(&device_of("sm", &[]), &options.service(address)),
            _ => Endpoint::open(&device_of(way, &[("ip", "127.0.0.1"), ("port", port)]), &options),
        };
        let other = other.expect("the address is free");
        assert_eq!(other.uri(), format!("{way}://{address}"));
        let client = Endpoint::open(&over(way), &cci::EndpointOptions::new()).expect("an endpoint");
        client.connect(&Connect::to(&uri).payload(b"for the first").timeout(LIMIT)).expect("a URI");
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < LIMIT, "{way}: no answer");
            assert!(other.get_event().expect("usable").is_none(), "{way}: a request for another endpoint");
            if let Some(event) = client.get_event().expect("usable") {
                assert!(matches!(event, cci::Event::ConnectFailed(_)), "{way}: {event:?}");
                break;
            }
        }
    }
}
