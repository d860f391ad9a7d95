//! The connected socket of the peer that frames go to.

use crate::ends::{self, Got, frame, open, take, wait};
use crate::sys::{duplicate, no_children, own_network, run};
use cci_mem::arena::SharedMemory;
use cci_mem::memory::Piece;
use cci_proto::Address;
use cci_reliable::{Incoming, Link, Outgoing, Wait};
use cci_sock::Sock;
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use std::net::SocketAddr;
use std::process::Command;

/// More single frames than it takes: datagrams.
const ENOUGH: usize = 600;

/// Two links that know each other's addresses: of the second, and of the first.
fn pair(ip: &str) -> (Sock, Sock, Address, Address) {
    let (mut a, mut b) = (open(ip, &[]), open(ip, &[]));
    let (to_b, to_a) = (a.resolve(b.uri()).expect("a URI"), b.resolve(a.uri()).expect("a URI"));
    (a, b, to_b, to_a)
}

/// Sends one frame and takes it at the other end, where it comes from here.
fn pass(from: &mut Sock, to: &mut Sock, (name, source): (Address, Address), bytes: &[u8]) {
    assert_eq!(from.send_burst(&[frame(name, bytes)]), 1);
    let got = take(to, 1).remove(0);
    assert_eq!(got, Got::Frame { from: source, bytes: bytes.to_vec(), congested: false });
}

/// Single frames there and back until both have a connected socket.
pub(crate) fn acquaint(a: &mut Sock, b: &mut Sock, to_b: Address, to_a: Address) {
    for _ in 0..ENOUGH {
        pass(a, b, (to_b, to_a), b"there");
        pass(b, a, (to_a, to_b), b"back");
    }
    assert!(has_connected(a, to_b) && has_connected(b, to_a));
}

/// Lone frames one way.
fn pass_many(from: &mut Sock, to: &mut Sock, names: (Address, Address)) {
    for _ in 0..ENOUGH {
        pass(from, to, names, b"one way");
        from.recv_burst(64, &mut |_| ());
    }
}

pub(crate) fn has_connected(link: &Sock, to: Address) -> bool {
    link.path(&to).0.contains("by a socket of its own")
}

#[test]
fn lone_frames_earn_a_socket_and_all_peers_are_heard() {
    for ip in ends::homes() {
        let (mut a, mut b, to_b, to_a) = pair(ip);
        assert!(!has_connected(&a, to_b));
        acquaint(&mut a, &mut b, to_b, to_a);
        let mut c = open(ip, &[]);
        let (c_to_a, a_to_c) = (c.resolve(a.uri()).expect("a URI"), a.resolve(c.uri()).expect("a URI"));
        for round in 0..100_u8 {
            pass(&mut c, &mut a, (c_to_a, a_to_c), &[round, 1]);
            pass(&mut b, &mut a, (to_a, to_b), &[round, 2]);
            pass(&mut a, &mut b, (to_b, to_a), &[round, 3]);
            pass(&mut a, &mut c, (a_to_c, c_to_a), &[round, 4]);
        }
        assert!(has_connected(&a, to_b) && !has_connected(&a, a_to_c), "a streak that others interrupt earns nothing");
        let (sent, received) = (a.counters(), b.counters());
        assert_eq!((sent.tx_frames, sent.tx_calls), (ENOUGH as u64 + 200, ENOUGH as u64 + 200));
        assert_eq!((received.rx_frames, received.rx_datagrams), (ENOUGH as u64 + 100, ENOUGH as u64 + 100));
    }
}

#[test]
fn bursts_to_its_peer_arrive_whole_and_in_turn_with_others() {
    let (mut a, mut b, to_b, to_a) = pair("127.0.0.1");
    acquaint(&mut a, &mut b, to_b, to_a);
    let mut c = open("127.0.0.1", &[]);
    let c_to_b = c.resolve(b.uri()).expect("a URI");
    let bytes: Vec<_> = (0..64).map(|number| ends::with_length(vec![number; 1000], 0)).collect();
    let burst = |to| bytes.iter().map(|bytes| frame(to, bytes)).collect::<Vec<_>>();
    assert_eq!((a.send_burst(&burst(to_b)), c.send_burst(&burst(c_to_b))), (64, 64));
    let (of_a, of_c): (Vec<_>, Vec<_>) =
        take(&mut b, 128).into_iter().partition(|got| matches!(got, Got::Frame { from, .. } if *from == to_a));
    for got in [of_a, of_c] {
        assert_eq!(got.into_iter().map(Got::bytes).collect::<Vec<_>>(), bytes);
    }
}

#[test]
fn the_next_peer_gets_it_and_nothing_is_lost() {
    let _guard = no_children();
    for ip in ends::homes() {
        let (mut a, mut b, to_b, to_a) = pair(ip);
        acquaint(&mut a, &mut b, to_b, to_a);
        let mut c = open(ip, &[]);
        let (c_to_a, a_to_c) = (c.resolve(a.uri()).expect("a URI"), a.resolve(c.uri()).expect("a URI"));
        for number in 0..ENOUGH {
            // What the old peer sends waits at the socket that is given away meanwhile.
            assert_eq!(b.send_burst(&[frame(to_a, &number.to_be_bytes())]), 1);
            assert_eq!(a.send_burst(&[frame(a_to_c, b"to the next")]), 1);
            assert_eq!(take(&mut a, 1).remove(0).bytes(), number.to_be_bytes());
            assert_eq!(take(&mut c, 1).remove(0).bytes(), b"to the next");
        }
        assert!(has_connected(&a, a_to_c) && !has_connected(&a, to_b));
        pass(&mut c, &mut a, (c_to_a, a_to_c), b"from the next");
        pass(&mut b, &mut a, (to_a, to_b), b"from the last");
    }
}

#[test]
fn a_forked_child_that_keeps_the_socket_does_not_silence_its_peer() {
    let (mut a, mut b, to_b, to_a) = pair("127.0.0.1");
    acquaint(&mut a, &mut b, to_b, to_a);
    let name = |link: &Sock| link.uri().trim_start_matches("sock://").to_owned();
    let childs = duplicate(&name(&a), &name(&b)).expect("a socket with both names");
    let mut c = open("127.0.0.1", &[]);
    let (c_to_a, a_to_c) = (c.resolve(a.uri()).expect("a URI"), a.resolve(c.uri()).expect("a URI"));
    pass_many(&mut a, &mut c, (a_to_c, c_to_a));
    assert!(!has_connected(&a, to_b));
    for _ in 0..ENOUGH {
        pass(&mut b, &mut a, (to_a, to_b), b"to the parent");
        pass(&mut a, &mut b, (to_b, to_a), b"from the parent");
    }
    drop(childs);
    for _ in 0..8 {
        pass_many(&mut a, &mut c, (a_to_c, c_to_a));
    }
    acquaint(&mut a, &mut c, a_to_c, c_to_a);
}

#[test]
fn probes_do_not_earn_it_and_go_by_the_endpoints_own() {
    let (mut a, mut b, to_b, to_a) = pair("127.0.0.1");
    let probe = |a: &mut Sock, bytes: &[u8]| a.send_burst(&[Outgoing { probe: true, ..frame(to_b, bytes) }]);
    for _ in 0..ENOUGH {
        assert_eq!(probe(&mut a, b"probe"), 1);
        take(&mut b, 1);
        a.recv_burst(64, &mut |_| ());
    }
    assert!(!has_connected(&a, to_b));
    acquaint(&mut a, &mut b, to_b, to_a);
    // One that is longer than any datagram is refused, which would be the end of the connected
    // socket.
    assert_eq!(probe(&mut a, &[0; 66_000]), 1);
    assert_eq!(a.counters().tx_lost, 1);
    a.recv_burst(64, &mut |_| ());
    assert!(has_connected(&a, to_b));
    pass(&mut a, &mut b, (to_b, to_a), b"there");
}

/// Frames with memory, of unequal lengths, so that each is a datagram of its own; and what arrives
/// of each.
struct Bulk {
    pieces: Vec<Piece>,
    heads: Vec<Vec<u8>>,
}

impl Bulk {
    const FRAMES: usize = 8;

    fn new() -> Self {
        let memory = SharedMemory::new(4096).expect("memory").memory();
        assert!(memory.copy_in(0, &[7; 4096]));
        let head = |at: u8| ends::with_length(vec![at; 100], 1000 + usize::from(at));
        let pieces = (0..Self::FRAMES).map(|at| memory.piece(0, 1000 + at).expect("inside")).collect();
        Self { pieces, heads: (0..Self::FRAMES as u8).map(head).collect() }
    }

    fn to(&self, to: Address) -> Vec<Outgoing<'_>> {
        let heads = self.heads.iter().enumerate();
        heads.zip(&self.pieces).map(|(head, piece)| Outgoing { piece: Some(piece), ..frame(to, head.1) }).collect()
    }

    fn arrived(&self) -> Vec<Vec<u8>> {
        let heads = self.heads.iter().enumerate();
        heads.map(|(at, head)| [head.clone(), vec![7; 1000 + at]].concat()).collect()
    }
}

#[test]
fn bursts_with_memory_earn_it_and_leave_by_it() {
    let bulk = Bulk::new();
    for ip in ends::homes() {
        let (mut a, mut b, to_b, _) = pair(ip);
        for _ in 0..ENOUGH / Bulk::FRAMES {
            assert_eq!(a.send_burst(&bulk.to(to_b)), Bulk::FRAMES);
            let got = take(&mut b, Bulk::FRAMES).into_iter().map(Got::bytes).collect::<Vec<_>>();
            assert_eq!(got, bulk.arrived());
            a.recv_burst(64, &mut |_| ());
        }
        assert!(has_connected(&a, to_b));
        let before = a.counters().tx_connected;
        assert_eq!(a.send_burst(&bulk.to(to_b)), Bulk::FRAMES);
        take(&mut b, Bulk::FRAMES);
        assert_eq!(a.counters().tx_connected - before, Bulk::FRAMES as u64);
        // Others are served too, in the same burst.
        let mut c = open(ip, &[]);
        let to_c = a.resolve(c.uri()).expect("a URI");
        assert_eq!(a.send_burst(&[bulk.to(to_b), bulk.to(to_c)].concat()), 2 * Bulk::FRAMES);
        assert_eq!(a.counters().tx_connected - before, Bulk::FRAMES as u64);
        for end in [&mut b, &mut c] {
            let got = take(end, Bulk::FRAMES).into_iter().map(Got::bytes).collect::<Vec<_>>();
            assert_eq!(got, bulk.arrived());
        }
        // The peer is gone: the network's answer ends the socket. The frames are taken all the
        // same.
        drop(b);
        assert_eq!(a.send_burst(&bulk.to(to_b)), Bulk::FRAMES);
        let mut refused = 0;
        while has_connected(&a, to_b) {
            assert!(wait(&a, 10), "the network has answered");
            a.recv_burst(64, &mut |incoming| refused += usize::from(matches!(incoming, Incoming::Refused { .. })));
        }
        assert!((1..=Bulk::FRAMES).contains(&refused), "{refused}");
    }
}

#[test]
fn a_streak_counts_datagrams_and_ends_where_a_burst_goes_elsewhere() {
    let (mut a, mut b, to_b, _) = pair("127.0.0.1");
    let mut c = open("127.0.0.1", &[]);
    let to_c = a.resolve(c.uri()).expect("a URI");
    let bytes = ends::with_length(vec![1; 1000], 0);
    for _ in 0..ENOUGH / 60 {
        // One datagram for the system to cut.
        assert_eq!(a.send_burst(&[frame(to_b, &bytes); 60]), 60);
        assert_eq!(take(&mut b, 60).len(), 60);
        a.recv_burst(64, &mut |_| ());
    }
    assert!(!has_connected(&a, to_b), "ten datagrams");
    let bulk = Bulk::new();
    for _ in 0..ENOUGH / Bulk::FRAMES {
        for (end, to) in [(&mut b, to_b), (&mut c, to_c)] {
            assert_eq!(a.send_burst(&bulk.to(to)), Bulk::FRAMES);
            take(end, Bulk::FRAMES);
            a.recv_burst(64, &mut |_| ());
        }
    }
    assert!(!has_connected(&a, to_b) && !has_connected(&a, to_c));
    // Whoever comes last in them, and whoever has the socket.
    for holder in [None, Some(to_b)] {
        while holder.is_some() && !has_connected(&a, to_b) {
            assert_eq!(a.send_burst(&bulk.to(to_b)), Bulk::FRAMES);
            take(&mut b, Bulk::FRAMES);
            a.recv_burst(64, &mut |_| ());
        }
        for _ in 0..ENOUGH {
            assert_eq!(a.send_burst(&[bulk.to(to_b), bulk.to(to_c)].concat()), 2 * Bulk::FRAMES);
            take(&mut b, Bulk::FRAMES);
            take(&mut c, Bulk::FRAMES);
            a.recv_burst(64, &mut |_| ());
        }
        assert!(!has_connected(&a, to_c) && has_connected(&a, to_b) == holder.is_some());
    }
}

#[test]
fn the_handle_tells_of_both_sockets() {
    let (mut a, mut b, to_b, to_a) = pair("127.0.0.1");
    acquaint(&mut a, &mut b, to_b, to_a);
    let mut c = open("127.0.0.1", &[]);
    let c_to_a = c.resolve(a.uri()).expect("a URI");
    for watched_anew in [false, true] {
        if watched_anew {
            assert!(!a.watch(false));
            assert_eq!(b.send_burst(&[frame(to_a, b"x")]), 1);
            assert!(!wait(&a, 0), "nobody waits");
            take_polling(&mut a);
            assert!(a.watch(true));
        }
        for (peer, to) in [(&mut b, to_a), (&mut c, c_to_a)] {
            assert!(a.arm(None, false));
            assert!(!wait(&a, 0));
            assert_eq!(peer.send_burst(&[frame(to, b"x")]), 1);
            assert!(wait(&a, 10) && !a.arm(None, false), "a frame has arrived");
            a.disarm();
            assert_eq!(a.recv_burst(64, &mut |_| ()), 1, "by the first call");
            assert!(!wait(&a, 0));
        }
    }
}

/// Takes one frame from a link whose handle does not tell.
fn take_polling(link: &mut Sock) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while link.recv_burst(1, &mut |_| ()) == 0 {
        assert!(std::time::Instant::now() < end, "nothing came");
    }
}

#[test]
fn a_peer_that_is_gone_is_refused_and_its_successors_are_heard() {
    let _guard = no_children();
    for ip in ends::homes() {
        let (mut a, mut b, to_b, to_a) = pair(ip);
        acquaint(&mut a, &mut b, to_b, to_a);
        let port = b.uri().rsplit(':').next().expect("a port").to_owned();
        // A server's clients come and go: each earns it as soon as the first.
        for _ in 0..13 {
            drop(b);
            assert_eq!(a.send_burst(&[frame(to_b, b"gone?")]), 1);
            while has_connected(&a, to_b) {
                assert!(wait(&a, 10), "the network has answered");
                a.recv_burst(64, &mut |_| ());
            }
            b = ends::try_open(&[("ip", ip), ("port", &port)], None).expect("the port is free again");
            acquaint(&mut a, &mut b, to_b, to_a);
        }
        drop(b);
        assert_eq!(a.send_burst(&[frame(to_b, b"is anybody there?")]), 1);
        assert!(wait(&a, 10) && !a.arm(None, false), "the network has answered");
        a.disarm();
        let mut got = Vec::new();
        assert_eq!(a.recv_burst(64, &mut |incoming| got.push(Got::from(incoming))), 1, "by the first call");
        let Got::Refused { to, quoted, .. } = &got[0] else { panic!("{got:?}") };
        assert_eq!((*to, &quoted[..]), (to_b, &b"is anybody there?"[..]));
        assert!(!has_connected(&a, to_b) && a.arm(None, false) && !wait(&a, 0));
        a.disarm();
        let mut b = ends::try_open(&[("ip", ip), ("port", &port)], None).expect("the port is free again");
        acquaint(&mut a, &mut b, to_b, to_a);
    }
}

#[test]
fn the_port_stays_the_endpoints_own() {
    let (mut a, mut b, to_b, to_a) = pair("127.0.0.1");
    acquaint(&mut a, &mut b, to_b, to_a);
    let name: SocketAddr = a.uri().strip_prefix("sock://").expect("a URI").parse().expect("a name");
    let other = socket(AddressFamily::INET, SocketType::DGRAM, None).expect("a socket");
    sockopt::set_socket_reuseport(&other, true).expect("an option");
    sockopt::set_socket_reuseaddr(&other, true).expect("an option");
    assert_eq!(bind(&other, &name), Err(rustix::io::Errno::ADDRINUSE));
}

#[test]
fn a_thread_in_another_network_does_without() {
    let (mut a, mut b, to_b, to_a) = pair("127.0.0.1");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // With a loop-back interface that is up: there the socket could be made, and would lead
            // nowhere.
            if !own_network() || !run(Command::new("ip").args(["link", "set", "lo", "up"])) {
                return;
            }
            for _ in 0..ENOUGH {
                pass(&mut a, &mut b, (to_b, to_a), b"there");
                pass(&mut b, &mut a, (to_a, to_b), b"back");
            }
            assert!(!has_connected(&a, to_b) && !has_connected(&b, to_a));
        });
    });
}
