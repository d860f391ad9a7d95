//! Ports of a discriminator that belong to somebody who does not answer: clients and peers find
//! their server at the next one.

use crate::attributes::{Reliability, ViAttributes};
use crate::errors::Error;
use crate::liars::{attributes, name};
use crate::nic::Nic;
use crate::rendezvous::{Accept, Address, Answer, ports};
use crate::vi::{Idle, Vi};
use cci::{Endpoint, EndpointOptions};
use cci_conformance::{LIMIT, device_of};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// What a listener answers that waits for another discriminator.
const OTHER: &[u8] = &[1, 0, 0];
/// Long enough for a client to have asked each port, and to have found that one is silent.
const LATE: Duration = Duration::from_millis(300);

fn nic() -> Nic {
    Nic::open(&device_of("sm", &[])).expect("a NIC")
}

fn idle(nic: &Nic) -> Vi<Idle> {
    let tag = nic.protection().expect("a tag");
    Vi::new(nic, &ViAttributes { tag, ..attributes(Reliability::Delivery) }, None, None).expect("a VI")
}

/// The address of a server of which nobody has a port yet, and a listener at the first of them.
fn silent(nic: &Nic) -> (Address, TcpListener) {
    let is_free = |port: &u16| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_err();
    let found = std::iter::repeat_with(name).find_map(|name| {
        let ports = ports(&name);
        let listener = ports.iter().all(is_free).then(|| TcpListener::bind((Ipv4Addr::LOCALHOST, ports[0])).ok())??;
        Some((Address::new(nic.host(), &name), listener))
    });
    found.expect("a free port")
}

/// Whoever asks. The names of servers are smaller.
fn own(nic: &Nic) -> Address {
    Address::new(nic.host(), b"client")
}

/// Fills the backlog, so that the system answers nobody who connects.
fn filled(listener: &TcpListener) -> Vec<TcpStream> {
    rustix::net::listen(listener, 0).expect("a listener");
    let at: SocketAddr = listener.local_addr().expect("an address");
    let streams = (0..8).map_while(|_| TcpStream::connect_timeout(&at, Duration::from_millis(200)).ok()).collect();
    assert!(TcpStream::connect_timeout(&at, Duration::from_millis(200)).is_err(), "there is room");
    streams
}

/// A server waits at the second port while a client connects.
fn is_served(at: &Address, server: &Nic, connect: impl FnOnce()) {
    std::thread::scope(|scope| {
        let vi = idle(server);
        let accepted = scope.spawn(|| server.listen(at, Some(LIMIT)).expect("a client").accept(vi).expect("agreed"));
        until_listening(ports(&at.discriminator)[1]);
        connect();
        drop(accepted.join().expect("the server"));
    });
}

fn until_listening(port: u16) {
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(begun.elapsed() < LIMIT, "nobody listens");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_client_finds_its_server_behind_a_silent_port() {
    let (server, client) = (nic(), nic());
    let (at, silent) = silent(&server);
    is_served(&at, &server, || {
        let vi = idle(&client).request(&own(&client), &at, LIMIT).map_err(|(_, why)| why).expect("a server");
        assert!(vi.is_connected());
    });
    // It has asked there too, and keeps no descriptor.
    let (mut stream, _) = silent.accept().expect("its question");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket");
    let mut question = Vec::new();
    stream.read_to_end(&mut question).expect("its end");
    assert!(question.len() > 2, "{question:?}");
}

/// The system does not even answer the connect.
#[test]
fn a_client_finds_its_server_behind_a_full_backlog() {
    let (server, client) = (nic(), nic());
    let (at, silent) = silent(&server);
    let streams = filled(&silent);
    is_served(&at, &server, || {
        let vi = idle(&client).request(&own(&client), &at, LIMIT).map_err(|(_, why)| why).expect("a server");
        assert!(vi.is_connected());
    });
    drop((silent, streams));
}

/// It learns late that the port is another's, with the server at the next one and without.
#[test]
fn a_late_answer_of_another_is_no_match_once_all_ports_have_refused() {
    let (server, client) = (nic(), nic());
    for is_there in [true, false] {
        let (at, silent) = silent(&server);
        std::thread::scope(|scope| {
            let late = scope.spawn(move || {
                let (mut stream, _) = silent.accept().expect("a client");
                std::thread::sleep(LATE);
                // Who has a server by now takes no answer.
                let _ = stream.write_all(OTHER);
                let _ = stream.read_to_end(&mut Vec::new());
            });
            if is_there {
                is_served(&at, &server, || {
                    let vi = idle(&client).request(&own(&client), &at, LIMIT).map_err(|(_, why)| why);
                    assert!(vi.expect("a server").is_connected());
                });
            } else {
                let refused = idle(&client).request(&own(&client), &at, LIMIT);
                assert_eq!(refused.err().map(|(_, why)| why), Some(Error::NoMatch));
            }
            late.join().expect("the silent one");
        });
    }
}

/// The server's program takes its time before it accepts, while the other ports refuse.
#[test]
fn a_server_that_accepts_late_is_waited_for() {
    let (server, client) = (nic(), nic());
    let at = Address::new(server.host(), &name());
    std::thread::scope(|scope| {
        let vi = idle(&server);
        let accepted = scope.spawn(|| {
            let mut asking = server.listen(&at, Some(LIMIT)).expect("a client");
            std::thread::sleep(LATE);
            asking.accept(vi).map_err(|(_, why)| why).expect("agreed")
        });
        until_listening(ports(&at.discriminator)[0]);
        let vi = idle(&client).request(&own(&client), &at, LIMIT).map_err(|(_, why)| why).expect("a server");
        assert!(vi.is_connected() && accepted.join().expect("the server").is_connected());
    });
}

/// It sleeps meanwhile, and says that the time was over.
#[test]
fn a_client_at_a_silent_port_sleeps_until_its_limit() {
    let client = nic();
    for is_full in [false, true] {
        let (at, silent) = silent(&client);
        let streams = is_full.then(|| filled(&silent));
        let used = || Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime));
        let (before, begun) = (used().expect("a time"), Instant::now());
        let refused = idle(&client).request(&own(&client), &at, Duration::from_secs(1));
        assert_eq!(refused.err().map(|(_, why)| why), Some(Error::Timeout));
        assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
        let taken = used().expect("a time").saturating_sub(before);
        assert!(taken < Duration::from_millis(100), "{taken:?} of a second");
        drop((silent, streams));
    }
}

/// Peers ask again and again: one that comes once all ports have been asked is found too.
#[test]
fn a_peer_that_comes_late_is_found_behind_a_silent_port() {
    for is_full in [false, true] {
        let (one, other) = (nic(), nic());
        let (at, silent) = silent(&one);
        let streams = is_full.then(|| filled(&silent));
        let asks = idle(&other).peer(&own(&other), &at, LIMIT).map_err(|(_, why)| why).expect("addresses");
        std::thread::scope(|scope| {
            let asks = scope.spawn(|| asks.wait().map_err(|(_, why)| why));
            std::thread::sleep(LATE);
            let listens = idle(&one).peer(&at, &own(&other), LIMIT).map_err(|(_, why)| why).expect("a port");
            let listening = listens.wait().map_err(|(_, why)| why).expect("a peer");
            assert!(listening.is_connected() && asks.join().expect("a thread").expect("a peer").is_connected());
        });
        drop((silent, streams));
    }
}

/// By steps: a silent second or more does not end it.
#[test]
fn a_connect_by_steps_takes_its_limit_at_a_silent_port() {
    for is_full in [false, true] {
        let (server, client) = (nic(), nic());
        let (at, silent) = silent(&server);
        let streams = is_full.then(|| filled(&silent));
        let vi = idle(&client);
        let (core, number) = (&client.0, vi.number());
        core.begin_request(number, &own(&client), &at, LIMIT).expect("addresses");
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1_500) {
            assert_eq!(core.peer_done(number), Ok(None));
            std::thread::sleep(Duration::from_millis(2));
        }
        is_served(&at, &server, || {
            while core.peer_done(number).expect("under way").is_none() {
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        drop((silent, streams));
    }
}

/// A client that has given up is none, whoever waits late.
#[test]
fn a_question_whose_client_is_gone_is_passed_over() {
    let (server, client) = (nic(), nic());
    let at = Address::new(server.host(), &name());
    let mut clients = server.0.clients(&at).expect("a port");
    let refused = idle(&client).request(&own(&client), &at, LATE);
    assert_eq!(refused.err().map(|(_, why)| why), Some(Error::Timeout));
    assert!(clients.next().is_none());
}

/// A stranger at the first port, who answers each question with this frame.
fn answers(listener: TcpListener, answer: &[u8]) {
    let frame = [&(answer.len() as u16).to_le_bytes()[..], answer].concat();
    let (mut stream, _) = listener.accept().expect("a client");
    let _ = stream.write_all(&frame);
    let _ = stream.read_to_end(&mut Vec::new());
}

/// An endpoint whose program makes no call, so that no connect to it ends.
fn mute() -> Endpoint {
    Endpoint::open(&device_of("sm", &[]), &EndpointOptions::new()).expect("an endpoint")
}

/// What a stranger may answer that is no honest server's, or that cannot be told from one's.
fn lies(mute: Option<&str>) -> Vec<Vec<u8>> {
    let accept = |uri: &str| {
        let attributes = attributes(Reliability::Delivery);
        Answer::Accept(Accept { ticket: 7, attributes, uri: uri.to_owned() }).emit()
    };
    // The process of the last one is not there.
    let uris = ["", "nonsense", "sm://", "sm://x/y", "tcp://127.0.0.1:1", "sm://999999999/0"];
    let mut lies: Vec<Vec<u8>> = uris.into_iter().chain(mute).map(accept).collect();
    lies.extend([vec![1], vec![2], vec![2, 0, 0], vec![3], vec![4], vec![5], vec![6], vec![255, 1, 2]]);
    lies
}

#[test]
fn a_liar_at_an_earlier_port_ends_no_clients_question() {
    let mute = mute();
    for lie in lies(Some(mute.uri())) {
        let (server, client) = (nic(), nic());
        let (at, liar) = silent(&server);
        std::thread::scope(|scope| {
            scope.spawn(|| answers(liar, &lie));
            is_served(&at, &server, || {
                let vi = idle(&client).request(&own(&client), &at, LIMIT).map_err(|(_, why)| why);
                assert_eq!(vi.as_ref().err(), None, "{lie:?}");
            });
        });
    }
}

#[test]
fn a_liar_at_an_earlier_port_ends_no_connect_by_steps() {
    let mute = mute();
    for lie in lies(Some(mute.uri())) {
        let (server, client) = (nic(), nic());
        let (at, liar) = silent(&server);
        std::thread::scope(|scope| {
            scope.spawn(|| answers(liar, &lie));
            is_served(&at, &server, || {
                let vi = idle(&client);
                let (core, number) = (&client.0, vi.number());
                core.begin_request(number, &own(&client), &at, LIMIT).expect("addresses");
                loop {
                    match core.peer_done(number) {
                        Ok(Some(_)) => break,
                        Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                        Err(why) => panic!("{lie:?}: {why}"),
                    }
                }
            });
        });
    }
}

/// A mismatch of peers is one, since either could be the honest one; all else is not.
#[test]
fn a_liar_at_an_earlier_port_ends_no_peers_question() {
    let mute = mute();
    for lie in lies(Some(mute.uri())).into_iter().filter(|lie| !matches!(lie[..], [3..=5])) {
        let (one, other) = (nic(), nic());
        let (at, liar) = silent(&one);
        // The port stays the liar's.
        let kept = liar.try_clone().expect("a descriptor");
        std::thread::scope(|scope| {
            scope.spawn(|| answers(liar, &lie));
            let asks = idle(&other).peer(&own(&other), &at, LIMIT).map_err(|(_, why)| why).expect("addresses");
            let asks = scope.spawn(|| asks.wait().map_err(|(_, why)| why));
            std::thread::sleep(LATE);
            let listens = idle(&one).peer(&at, &own(&other), LIMIT).map_err(|(_, why)| why).expect("a port");
            let listening = listens.wait().map_err(|(_, why)| format!("{lie:?}: {why}")).expect("a peer");
            let asked = asks.join().expect("a thread");
            assert_eq!(asked.as_ref().err(), None, "{lie:?}");
            drop((asked, listening));
        });
        drop(kept);
    }
}

/// The answer of a server that stands alone is the result, also beside a port that is silent.
#[test]
fn a_refusal_is_the_result_once_no_other_port_may_be_the_servers() {
    for is_full in [false, true] {
        let (server, client) = (nic(), nic());
        let (at, first) = silent(&server);
        let streams = is_full.then(|| filled(&first));
        let first = is_full.then_some(first);
        let refused = std::thread::scope(|scope| {
            scope.spawn(|| server.listen(&at, Some(LIMIT)).expect("a client").reject());
            until_listening(ports(&at.discriminator)[usize::from(is_full)]);
            let begun = Instant::now();
            let refused = idle(&client).request(&own(&client), &at, 3 * LIMIT).err().map(|(_, why)| why);
            assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
            refused
        });
        assert_eq!(refused, Some(Error::Reject));
        drop((first, streams));
    }
}

/// A port that is silent may be the server's until the limit.
#[test]
fn a_refusal_beside_a_silent_port_is_the_result_at_the_limit() {
    let client = nic();
    let (at, liar) = silent(&client);
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, ports(&at.discriminator)[1])).expect("a free port");
    std::thread::scope(|scope| {
        scope.spawn(|| answers(liar, &[1]));
        let begun = Instant::now();
        let refused = idle(&client).request(&own(&client), &at, Duration::from_secs(3));
        assert_eq!(refused.err().map(|(_, why)| why), Some(Error::Reject));
        assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
    });
    drop(silent);
}

/// Invitations that lead nowhere at a port, and no server at the others.
#[test]
fn an_invitation_that_leads_nowhere_is_the_reason_where_no_other_port_answers() {
    for lie in lies(None).into_iter().take(6) {
        let client = nic();
        let (at, liar) = silent(&client);
        std::thread::scope(|scope| {
            scope.spawn(|| answers(liar, &lie));
            let refused = idle(&client).request(&own(&client), &at, LIMIT);
            assert_eq!(refused.err().map(|(_, why)| why), Some(Error::NotReachable), "{lie:?}");
        });
    }
}
