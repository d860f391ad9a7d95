//! Setting up streams.

use crate::fixture::{End, LIMIT, NUMBER, OPTIONS, Script, port};
use crate::frame::{ConnectBody, HELLO, Header, Hello, Kind, Refusal};
use crate::setup::listen::STRANGERS;
use cci_proto::{Attribute, EventKind, Status};
use cci_transport::{CoreOptions, Transport};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

fn socket() -> OwnedFd {
    socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("a socket")
}

/// A port whose backlog is full: the system answers no more dials to it.
fn full_backlog() -> (SocketAddr, [OwnedFd; 3]) {
    let listener = socket();
    bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
    listen(&listener, 0).expect("a port");
    let address = SocketAddr::try_from(getsockname(&listener).expect("an address")).expect("an address");
    let fillers = [socket(), socket()];
    for filler in &fillers {
        let _ = connect(filler, &address);
    }
    let [first, second] = fillers;
    (address, [listener, first, second])
}

/// Dials that nobody answers count as such until they end, and no longer.
#[test]
fn dials_that_end_early_make_room_for_others() {
    let (mut client, mut server) = (End::new(), End::new());
    let ports: Vec<_> = (0..70).map(|_| full_backlog()).collect();
    for (address, _) in &ports {
        client.connect(&format!("tcp://{address}"), Duration::from_millis(300));
    }
    client.calls(20);
    assert_eq!(client.tcp.dialing, 64, "no more than 64 dial at a time");
    for _ in &ports {
        client.ends(EventKind::Connect, Status::TimedOut);
    }
    assert_eq!(client.tcp.dialing, 0);
    let uri = server.tcp.uri().to_owned();
    client.connect(&uri, LIMIT);
    let begun = Instant::now();
    let connected = loop {
        assert!(begun.elapsed() < LIMIT, "the client does not dial any more");
        if let Some(slot) = server.call() {
            if slot.kind() == EventKind::ConnectRequest as u32 {
                server.tcp.accept(&mut server.core, slot, 0).expect("an accept");
            }
            assert!(slot.give_back());
        }
        if let Some(slot) = client.call() {
            break slot;
        }
    };
    assert_eq!((connected.kind(), connected.detail()), (EventKind::Connect as u32, Status::Success as u32));
}

/// Lanes of an endpoint.
fn lanes(end: &End) -> usize {
    end.tcp.lanes.iter().flatten().count()
}

#[test]
fn beyond_the_strangers_who_have_asked_others_are_refused_and_come_again() {
    let (mut server, mut client) = (End::new(), End::new());
    let mut strangers: Vec<_> = (0..STRANGERS).map(|_| Script::dial(&server)).collect();
    for stranger in &mut strangers {
        stranger.say_hello(&mut server, None);
        stranger.ask(&mut server, Attribute::ReliableOrdered, b"");
    }
    server.until("requests", |server| {
        server.tcp.lanes.iter().flatten().filter(|lane| lane.has_asked).count() == STRANGERS
    });
    let mut refused = Script::dial(&server);
    refused.say_hello(&mut server, None);
    assert_eq!(refused.hello(&mut server).refusal, Some(Refusal::Full));
    refused.until_closed(&mut server);
    client.connect(server.tcp.uri(), LIMIT);
    for _ in 0..100 {
        client.calls(1);
        server.tcp.progress(&mut server.core);
    }
    assert_eq!(lanes(&server), STRANGERS);
    drop(strangers);
    let begun = Instant::now();
    let connected = loop {
        assert!(begun.elapsed() < LIMIT, "the client does not come again");
        if let Some(slot) = server.call() {
            if slot.kind() == EventKind::ConnectRequest as u32 {
                server.tcp.accept(&mut server.core, slot, 0).expect("an accept");
            }
            assert!(slot.give_back());
        }
        if let Some(slot) = client.call() {
            break slot;
        }
    };
    assert_eq!(connected.detail(), Status::Success as u32);
}

#[test]
fn a_client_dials_again_when_the_server_is_full() {
    let mut client = End::new();
    let (listener, uri) = port();
    client.connect(&uri, LIMIT);
    let own = Hello { dialed: false, ..Script::own_hello() };
    let full = Hello { refusal: Some(Refusal::Full), ..own };
    for _ in 0..3 {
        let mut script = Script::greet(&listener, &mut client, &full);
        script.until_closed(&mut client);
    }
    let mut script = Script::greet(&listener, &mut client, &own);
    let cell = script.accept(&mut client);
    script.put(&mut client, Kind::Grant, 0, 0, &[&1_u32.to_le_bytes()]);
    client.send(cell, b"hello", 1);
    assert_eq!(script.find(&mut client, Kind::Message).1, b"hello");
}

#[test]
fn a_client_that_is_turned_away_until_its_time_is_over_says_so() {
    let mut client = End::new();
    let (listener, uri) = port();
    client.connect(&uri, Duration::from_millis(100));
    listener.set_nonblocking(true).expect("a socket");
    while !client.core.has_event() {
        client.tcp.progress(&mut client.core);
        drop(listener.accept());
    }
    let failed = client.next(EventKind::Connect);
    assert_eq!(failed.detail(), Status::TimedOut as u32);
    let reason = client.core.reason(failed).unwrap_or_default();
    assert!(reason.contains("too few descriptors"), "{reason}");
}

/// Why a connect to a server that says this has failed.
fn refused(hello: &Hello) -> String {
    let mut client = End::new();
    let (listener, uri) = port();
    client.connect(&uri, LIMIT);
    let mut script = Script::greet(&listener, &mut client, hello);
    let failed = client.next(EventKind::Connect);
    assert_eq!(failed.detail(), Status::ConnRefused as u32);
    script.until_closed(&mut client);
    client.core.reason(failed).unwrap_or_default().to_owned()
}

#[test]
fn servers_of_another_version_or_the_same_role_are_refused() {
    let own = Hello { dialed: false, ..Script::own_hello() };
    let reason = refused(&Hello { refusal: Some(Refusal::Version), ..own });
    assert!(reason.contains("speaks another version of the protocol; use one version of cci"), "{reason}");
    // A socket that TCP has connected to itself says the same as this side.
    let reason = refused(&Script::own_hello());
    assert!(reason.contains("does not speak the protocol of tcp endpoints"), "{reason}");
}

#[test]
fn a_client_of_another_version_is_told() {
    let mut server = End::new();
    let mut script = Script::dial(&server);
    let mut hello = Script::own_hello().emit();
    hello[8] = 9;
    script.write(&mut server, &hello);
    assert_eq!(script.hello(&mut server).refusal, Some(Refusal::Version));
    script.until_closed(&mut server);
}

#[test]
fn nonsense_closes_a_stream_at_its_first_byte() {
    for nonsense in [&b"G"[..], b"GET / HTTP/1.1\r\n\r\n", b"cci-tcp2", &[0; HELLO], &[0xff; 3000]] {
        let mut server = End::new();
        let mut script = Script::dial(&server);
        script.write(&mut server, nonsense);
        script.until_closed(&mut server);
        server.until("the end of a lane", |server| lanes(server) == 0);
        assert!(server.call().is_none() && server.tcp.shared.malformed == 1, "{nonsense:?}");
    }
}

#[test]
fn who_says_nothing_or_half_a_hello_goes_after_five_seconds() {
    let mut server = End::new();
    let mut silent = Script::dial(&server);
    let mut half = Script::dial(&server);
    half.write(&mut server, &Script::own_hello().emit()[..HELLO / 2]);
    server.until("two lanes", |server| lanes(server) == 2);
    server.calls(20);
    assert!(server.tcp.shared.check_at.is_some_and(|at| at <= server.tcp.shared.now + Duration::from_secs(5)));
    let now = server.tcp.shared.now;
    server.tcp.shared.check_by(now);
    server.calls(20);
    assert_eq!(lanes(&server), 2, "they have their five seconds");
    // So long ago.
    for lane in server.tcp.lanes.iter_mut().flatten() {
        lane.idle_since = cci_proto::Time(lane.idle_since.0 - 5_000_000_000);
    }
    server.tcp.shared.check_by(now);
    silent.until_closed(&mut server);
    half.until_closed(&mut server);
    assert!(lanes(&server) == 0 && server.call().is_none());
}

/// A frame after HELLO and, with `open`, on an open connection, closes the lane.
fn breaks(what: &str, open: bool, header: &[u8]) {
    let mut server = End::new();
    let (mut friend, cell) = Script::connect(&mut server);
    friend.put(&mut server, Kind::Grant, 0, 0, &[&4_u32.to_le_bytes()]);
    let mut script = if open {
        Script::connect(&mut server).0
    } else {
        let mut script = Script::dial(&server);
        script.say_hello(&mut server, None);
        script.hello(&mut server);
        script
    };
    script.write(&mut server, header);
    server.until(what, |server| server.tcp.shared.malformed == 1);
    script.until_closed(&mut server);
    assert!(server.call().is_none(), "{what}");
    server.send(cell, b"others go on", 1);
    assert_eq!(friend.find(&mut server, Kind::Message).1, b"others go on");
}

#[test]
fn frames_that_lie_close_their_lane_and_no_other() {
    let header = Header { len: 0, kind: Kind::Ping, flags: 0, connection: 0, taken: 0 };
    let with = |kind, len| Header { kind, len, ..header };
    for (kind, lens) in [
        (Kind::Connect, &[0, 31, 32 + cci_proto::MAX_REQUEST + 1, u32::MAX as usize][..]),
        (Kind::Accept, &[0, 7, 9]),
        (Kind::Reject, &[0, 3, 5]),
        (Kind::Redirect, &[7, 1281]),
        (Kind::Disconnect, &[1]),
        (Kind::Message, &[8193, u32::MAX as usize]),
        (Kind::Datagram, &[8193, u32::MAX as usize]),
        (Kind::Write, &[0, 39]),
        (Kind::Read, &[0, 39, 41]),
        (Kind::Data, &[0, 4]),
        (Kind::Result, &[0, 15, 17]),
        (Kind::Atomic, &[0, 63, 65]),
        (Kind::Grant, &[0, 3, 5]),
        (Kind::Return, &[0, 5]),
        (Kind::Large, &[15]),
        (Kind::Landing, &[23]),
        (Kind::Landed, &[7]),
    ] {
        for len in lens {
            breaks(&format!("{kind:?} of {len} bytes"), true, &with(kind, *len).emit());
        }
    }
    for kind in [0, 24, 255] {
        let mut bytes = header.emit();
        bytes[4] = kind;
        breaks(&format!("a kind {kind}"), false, &bytes);
    }
    for (at, byte) in [(5, 0x80), (6, 1), (7, 1)] {
        let mut bytes = header.emit();
        bytes[at] = byte;
        breaks(&format!("byte {at} is {byte}"), false, &bytes);
    }
    breaks("taken what was not sent", true, &Header { taken: 1, ..header }.emit());
    breaks("a message without a connection", false, &with(Kind::Message, 0).emit());
    let returned = [&with(Kind::Return, 4).emit()[..], &[0; 4]].concat();
    breaks("grants given back that nobody asked for", true, &returned);
    let granted = [&with(Kind::Grant, 4).emit()[..], &100_000_u32.to_le_bytes()].concat();
    breaks("more grants than there can be", true, &granted);
    let body = ConnectBody { attribute: Attribute::ReliableOrdered, identity: [1, 2], token: 0 }.emit();
    let mut multicast = [&with(Kind::Connect, 32).emit()[..], &body].concat();
    multicast[16] = 3;
    breaks("a connect to a group", false, &multicast);
}

/// What a client says until a message of its own has come: HELLO and CONNECT; and behind ACCEPT
/// MESSAGE, WRITE and half a READ.
fn words(connection: u32) -> (Vec<u8>, Vec<u8>) {
    let body = ConnectBody { attribute: Attribute::ReliableOrdered, identity: [1, 2], token: 0 }.emit();
    let header = Header { len: 36, kind: Kind::Connect, flags: 0, connection: NUMBER, taken: 0 };
    let first = [&Script::own_hello().emit()[..], &header.emit(), &body, b"load"].concat();
    let header = |kind, len| Header { len, kind, flags: 0, connection, taken: 0 }.emit();
    let target = crate::frame::Target { operation: 1 << 16, handle: [1, 2], offset: 0, total: 20 }.emit();
    let write = [&header(Kind::Write, 60)[..], &target, &[7; 20]].concat();
    let read = [&header(Kind::Read, 40)[..], &target[..20]].concat();
    (first, [&header(Kind::Message, 5)[..], b"hello", &write, &read].concat())
}

/// A stream that ends, or is reset, behind each byte leaves nothing behind.
#[test]
fn streams_may_end_behind_each_byte() {
    let mut server = End::new();
    let (first, _) = words(0);
    for reset in [false, true] {
        for count in 0..=first.len() {
            let mut script = Script::dial(&server);
            script.write(&mut server, &first[..count]);
            server.until("a lane", |server| lanes(server) == 1);
            close(script, reset);
            server.until("its end", |server| lanes(server) == 0);
            while let Some(slot) = server.call() {
                assert_eq!(slot.kind(), EventKind::ConnectRequest as u32);
                server.tcp.reject(&mut server.core, slot).expect("a reject");
                assert!(slot.give_back());
            }
        }
        for count in 0..words(0).1.len() {
            let (mut script, _) = Script::connect(&mut server);
            let (_, bytes) = words(script.connection);
            server.until("the word of grants", |_| script.poll().is_some_and(|(header, _)| header.kind == Kind::Grant));
            script.write(&mut server, &bytes[..count]);
            server.tcp.progress(&mut server.core);
            close(script, reset);
            server.until("its end", |server| lanes(server) == 0);
            while let Some(slot) = server.call() {
                assert_eq!(slot.kind(), EventKind::Recv as u32);
                assert!(slot.give_back());
            }
            // The program has not disconnected these.
            let broken: Vec<_> = server.core.connections().collect();
            assert_eq!(broken.len(), 1);
            server.tcp.disconnect(&mut server.core, broken[0]);
        }
    }
    assert_eq!((server.tcp.shared.malformed, server.tcp.shared.open_operations), (0, 0));
}

/// Ends a stream, or resets it.
fn close(script: Script, reset: bool) {
    if reset {
        rustix::net::sockopt::set_socket_linger(&script.stream, Some(Duration::ZERO)).expect("a socket");
    }
    drop(script);
}

#[test]
fn both_sides_may_connect_at_once() {
    let (mut a, mut b) = (End::new(), End::new());
    for _ in 0..20 {
        let (to_a, to_b) = (a.tcp.uri().to_owned(), b.tcp.uri().to_owned());
        a.connect(&to_b, LIMIT);
        b.connect(&to_a, LIMIT);
        let begun = Instant::now();
        let mut connected = 0;
        while connected < 2 {
            assert!(begun.elapsed() < LIMIT, "no connection");
            for end in [&mut a, &mut b] {
                let Some(slot) = end.call() else { continue };
                match slot.kind() {
                    kind if kind == EventKind::ConnectRequest as u32 => {
                        end.tcp.accept(&mut end.core, slot, 0).expect("an accept");
                    }
                    kind if kind == EventKind::Connect as u32 => {
                        assert_eq!(slot.detail(), Status::Success as u32);
                        connected += 1;
                    }
                    _ => {}
                }
                assert!(slot.give_back());
            }
        }
    }
    assert_eq!((lanes(&a), lanes(&b)), (2, 2), "one for each direction of dialing");
}

#[test]
fn a_half_closed_stream_ends_its_connections() {
    let mut server = End::new();
    let (mut script, cell) = Script::connect(&mut server);
    script.put(&mut server, Kind::Grant, 0, 0, &[&1_u32.to_le_bytes()]);
    server.calls(20);
    server.send(cell, b"hello", 1);
    assert_eq!(script.find(&mut server, Kind::Message).1, b"hello");
    // What it said before counts.
    script.taken = 1;
    script.put(&mut server, Kind::Ping, 0, 0, &[]);
    script.stream.shutdown(std::net::Shutdown::Write).expect("a stream");
    server.ends(EventKind::Send, Status::Success);
    server.until("its end", |server| lanes(server) == 0);
    assert_eq!(cell.state(), cci_transport::ConnectionState::Broken);
    script.until_closed(&mut server);
}

/// Requests that nobody answers have a quarter of the slots at most, and a peer with a connection
/// gets the others.
#[test]
fn requests_of_many_strangers_leave_a_peer_its_slots() {
    let mut server = End::with(&[], CoreOptions { recv_count: 256, ..OPTIONS });
    let (mut friend, _) = Script::connect(&mut server);
    let mut strangers: Vec<_> = (0..200).map(|_| Script::dial(&server)).collect();
    for stranger in &mut strangers {
        stranger.say_hello(&mut server, None);
        stranger.ask(&mut server, Attribute::ReliableOrdered, b"");
        stranger.ask(&mut server, Attribute::ReliableOrdered, b"");
    }
    server.until("requests", |server| server.tcp.lanes.iter().flatten().filter(|lane| lane.has_asked).count() == 201);
    let mut asked = 0;
    while let Some(slot) = server.call() {
        assert_eq!(slot.kind(), EventKind::ConnectRequest as u32);
        asked += 1;
    }
    assert_eq!(asked, 64, "a quarter of 256");
    // The others are asked to come again.
    let busy = |script: &mut Script| std::iter::from_fn(|| script.poll()).any(|(header, _)| header.kind == Kind::Busy);
    let last = strangers.last_mut().expect("some");
    assert_eq!(last.hello(&mut server).refusal, None);
    server.until("BUSY", |_| busy(last));
    // All of them unanswered, and every message held.
    let mut granted = 0;
    for number in 0..150 {
        while granted == number {
            let (header, body) = friend.frame(&mut server);
            if header.kind == Kind::Grant {
                granted = crate::frame::Fields(&body).u32();
            }
        }
        friend.put(&mut server, Kind::Message, 0, friend.connection, &[b"through"]);
        assert_eq!(server.next(EventKind::Recv).kind(), EventKind::Recv as u32);
    }
}

/// A server without room is asked again and again. Whether its last answer has come when the time
/// is over is chance: the reason is the same.
#[test]
fn a_server_that_had_no_room_is_named_so_while_it_is_asked_again() {
    let mut client = End::new();
    let (listener, uri) = port();
    client.connect(&uri, Duration::from_millis(400));
    let mut script = Script::greet(&listener, &mut client, &Hello { dialed: false, ..Script::own_hello() });
    let (asked, _) = script.find(&mut client, Kind::Connect);
    script.put(&mut client, Kind::Busy, 0, asked.connection, &[]);
    script.find(&mut client, Kind::Connect);
    let slot = client.next(EventKind::Connect);
    assert_eq!(slot.detail(), Status::TimedOut as u32);
    let reason = client.core.reason(slot).unwrap_or_default().to_owned();
    assert!(reason.contains("had no room for another request, and has not answered since"), "{reason}");
    assert!(slot.give_back());
}
