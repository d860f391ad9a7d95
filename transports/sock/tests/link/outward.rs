//! The outward socket: who gets one, when, and what may come by it.

use crate::ends::{Got, frame, open, take, wait};
use crate::namespace::in_own_network;
use crate::sys::replace_socket;
use cci_reliable::{Incoming, Link, Names, Wait};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// A network whose other hosts are silent.
const SILENT: &[&str] = &[
    "ip link set lo up",
    "ip link add d0 type dummy",
    "ip link set d0 mtu 3000 up",
    "ip addr add 192.0.2.9/24 dev d0",
];
const ELSEWHERE: &str = "sock://192.0.2.1:5000";
const CONNECTS: &[(&str, &str)] = &[("connect", "network")];

/// The ports of the UDP sockets here that are bound to any address.
fn ports_of_any_address() -> Vec<u16> {
    let table = std::fs::read_to_string("/proc/thread-self/net/udp").expect("a table");
    let locals = table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    locals.filter_map(|local| u16::from_str_radix(local.strip_prefix("00000000:")?, 16).ok()).collect()
}

#[test]
fn it_is_made_when_another_host_is_resolved_and_never_without_the_key() {
    in_own_network(SILENT, || {
        let mut without = open("127.0.0.1", &[]);
        without.resolve(ELSEWHERE).expect("an address");
        let mut elsewhere = open("192.0.2.9", CONNECTS);
        elsewhere.resolve(ELSEWHERE).expect("an address");
        let mut link = open("127.0.0.1", CONNECTS);
        assert!(link.uri().starts_with("sock://127.0.0.1:"));
        for here in ["sock://127.0.0.2:5000", "sock://192.0.2.9:5000"] {
            let to = link.resolve(here).expect("an address");
            assert_eq!(link.path_mtu(&to).base, link.base_mtu(), "{here}");
        }
        assert_eq!(ports_of_any_address(), [], "a socket before it is needed");
        let to = link.resolve(ELSEWHERE).expect("an address");
        assert_eq!(ports_of_any_address().len(), 1);
        assert_eq!((link.path_mtu(&to).base, link.base_mtu()), (1200, 65_000));
        assert!(link.path(&to).0.contains("192.0.2.1:5000, from a socket that accepts no requests"));
        link.resolve("sock://192.0.2.2:5000").expect("an address");
        assert_eq!(ports_of_any_address().len(), 1, "one for all hosts");
        let mut named = open("127.0.0.1", &[CONNECTS[0], ("mtu", "2000")]);
        let to = named.resolve(ELSEWHERE).expect("an address");
        assert_eq!(named.path_mtu(&to).base, 1972, "as the key says of every path");
    });
}

#[test]
fn what_comes_by_it_is_shown_apart_and_wakes() {
    in_own_network(SILENT, || {
        let mut link = open("127.0.0.1", CONNECTS);
        let to = link.resolve(ELSEWHERE).expect("an address");
        let mut plain_link = open("192.0.2.9", &[]);
        let other = UdpSocket::bind("192.0.2.9:0").expect("a socket");
        let port = ports_of_any_address()[0];
        assert!(link.watch(true) && link.arm(None, false));
        other.send_to(b"marked", ("192.0.2.9", port)).expect("a datagram");
        assert!(wait(&link, 10), "the handle tells");
        let got = take(&mut link, 1).remove(0);
        let Got::Unasked { from, bytes } = got else { panic!("{got:?}") };
        assert_eq!(bytes, b"marked");
        let same = plain_link.resolve(&format!("sock://{}", other.local_addr().expect("a name"))).expect("an address");
        assert_ne!(from, same, "the own socket knows no such peer");
        link.disarm();
        // The own socket goes on.
        other.send_to(b"own", link.uri().strip_prefix("sock://").expect("a URI")).expect("a datagram");
        let got = take(&mut link, 1).remove(0);
        assert!(matches!(&got, Got::Frame { bytes, .. } if bytes == b"own"), "{got:?}");
        // A burst leaves by both sockets, in the order of each.
        let here = link.resolve(plain_link.uri()).expect("an address");
        let mixed = [frame(here, b"one"), frame(to, b"lost"), frame(here, b"two")];
        assert_eq!(link.send_burst(&mixed), 3);
        assert_eq!(take(&mut plain_link, 2).into_iter().map(Got::bytes).collect::<Vec<_>>(), [b"one", b"two"]);
    });
}

#[test]
fn a_host_without_a_route_is_refused_with_a_reason() {
    in_own_network(&SILENT[..1], || {
        let mut link = open("127.0.0.1", CONNECTS);
        assert_eq!(link.begin(ELSEWHERE, 7), Ok(None));
        assert!(wait(&link, 10), "the handle tells");
        let (number, answer) = link.next().expect("an answer");
        let why = answer.expect_err("no route");
        assert!(number == 7 && why.contains("the system has no way to 192.0.2.1 ("), "{why}");
        assert_eq!(link.begin(ELSEWHERE, 8), Ok(None));
        link.forget(8);
        assert_eq!(link.next(), None);
        assert_eq!(ports_of_any_address(), []);
    });
}

#[test]
fn one_that_is_gone_concerns_its_own_peers_alone() {
    let commands = [
        "ip link set lo up",
        "ip link add v0 type veth peer name v1",
        "ip addr add 192.0.2.9/24 dev v0",
        "ip link set v0 up",
        "ip link set v1 up",
        "ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev v0",
    ];
    in_own_network(&commands, || {
        let mut link = open("127.0.0.1", CONNECTS);
        let [elsewhere, here] = [ELSEWHERE, "sock://127.0.0.2:5000"].map(|uri| link.resolve(uri).expect("an address"));
        assert!(replace_socket(ports_of_any_address()[0]), "the outward socket is there");
        let (begin, mut is_down) = (Instant::now(), false);
        while !is_down {
            assert!(begin.elapsed() < Duration::from_secs(20), "nothing tells");
            assert_eq!(link.send_burst(&[frame(elsewhere, b"lost")]), 1);
            link.recv_burst(8, &mut |incoming| {
                let Incoming::Down { concerns } = incoming else { panic!("{incoming:?}") };
                assert!(concerns(&elsewhere) && !concerns(&here));
                is_down = true;
            });
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}
