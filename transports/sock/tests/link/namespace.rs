//! What a host's own network does to an endpoint: in a name space of its own, where this user may
//! make one.

use crate::connected::{acquaint, has_connected};
use crate::ends::{Got, frame, open, take, try_open, wait, with_length};
use crate::sys::{self, own_network};
use cci_proto::Status;
use cci_reliable::{Link, Wait};
use std::process::Command;

/// Runs `test` in a network name space of its own, set up by these commands. Without the right or
/// the commands nothing is tested.
pub(crate) fn in_own_network(commands: &[&str], test: impl FnOnce() + Send + 'static) {
    let commands: Vec<String> = commands.iter().map(|command| (*command).to_owned()).collect();
    let thread = std::thread::spawn(move || {
        let run = |command: &String| {
            let mut words = command.split(' ');
            sys::run(Command::new(words.next().unwrap_or("")).args(words))
        };
        if own_network() && commands.iter().all(run) {
            test();
        }
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn an_interface_that_is_down_is_said_to_be() {
    in_own_network(&["ip link set lo down"], || {
        let error = try_open(&[("interface", "lo")], None).err().expect("down");
        assert_eq!(error.status, Status::NoDev);
        assert!(error.to_string().contains("interface lo is down; bring it up"), "{error}");
        let error = try_open(&[], None).err().expect("nothing is up");
        assert!(error.to_string().contains("no interface that is up has an IP address"), "{error}");
    });
    in_own_network(&["ip link set lo up", "ip link add v0 type veth peer name v1", "ip link set v0 up"], || {
        // Up, with a link-local IPv6 address at most.
        match try_open(&[("interface", "v0")], None) {
            Ok(link) => assert!(link.uri().starts_with("sock://[fe80:"), "{}", link.uri()),
            Err(error) => assert!(error.to_string().contains("interface v0 has no IP address"), "{error}"),
        }
    });
}

#[test]
fn the_address_is_the_first_that_others_reach() {
    let commands = [
        "ip link set lo up",
        "ip link add v0 type veth peer name v1",
        "ip addr add 192.0.2.9/24 dev v0",
        "ip link set v0 mtu 3000 up",
        "ip link set v1 up",
    ];
    in_own_network(&commands, || {
        let link = try_open(&[], None).expect("v0");
        assert!(link.uri().starts_with("sock://192.0.2.9:"), "{}", link.uri());
        assert_eq!((link.mtu(), link.base_mtu()), (2972, 1200));
        let error = try_open(&[("ip", "192.0.2.9"), ("interface", "lo")], None).err().expect("not there");
        assert!(error.to_string().contains("is on interface v0, not on lo"), "{error}");
        let error = try_open(&[("mtu", "9000")], None).err().expect("too long");
        assert!(error.to_string().contains("interface v0 carries 3000"), "{error}");
        let named = try_open(&[("mtu", "2000")], None).expect("as the key says");
        assert_eq!((named.mtu(), named.base_mtu()), (1972, 1972));
    });
    in_own_network(&commands[..3], || {
        let error = try_open(&[("ip", "192.0.2.9")], None).err().expect("down");
        assert!(error.to_string().contains("on interface v0, which is down; bring it up"), "{error}");
    });
}

#[test]
fn a_frame_above_the_mtu_is_told_of_and_others_pass() {
    in_own_network(&["ip link set lo mtu 2000 up"], || {
        let (mut a, mut b) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]));
        assert_eq!((a.mtu(), a.base_mtu()), (1972, 1972));
        let to = a.resolve(b.uri()).expect("a URI");
        let long: Vec<u8> = (0..3000).map(|at| u8::try_from(at % 251).expect("small")).collect();
        // Alone; and several, whose pieces do not fit either.
        assert_eq!(a.send_burst(&[frame(to, &long), frame(to, b"short")]), 2);
        assert_eq!(take(&mut b, 1).remove(0).bytes(), b"short");
        let expected = Got::TooBig { to, quoted: long[..64].to_vec(), mtu: 1972 };
        assert_eq!(take(&mut a, 1)[0], expected);
        assert_eq!(a.send_burst(&[frame(to, &long), frame(to, &long), frame(to, b"short")]), 3);
        assert_eq!(take(&mut b, 1).remove(0).bytes(), b"short");
        assert_eq!(take(&mut a, 2), [expected.clone(), expected]);
        assert_eq!(a.counters().tx_lost, 3);
        assert!(a.path(&to).0.contains("segmentation offload on"), "the frames were at fault: {:?}", a.path(&to));
        assert!(a.arm(None, false), "the queue of errors is empty");
        a.disarm();
        // What fits still leaves together.
        let fits = with_length(long[..1972].to_vec(), 0);
        assert_eq!(a.send_burst(&[frame(to, &fits); 5]), 5);
        assert_eq!(take(&mut b, 5).len(), 5);
        assert_eq!(a.counters().tx_segmented, 5);
    });
}

#[test]
fn a_refused_call_is_the_reason_unless_the_routes_lead_elsewhere() {
    let commands = [
        "ip link set lo up",
        "ip link add v0 type veth peer name v1",
        "ip addr add 192.0.2.9/24 dev v0",
        "ip link set v0 up",
        "ip route add prohibit 198.51.100.0/24",
    ];
    in_own_network(&commands, || {
        let mut link = open("192.0.2.9", &[]);
        let [forbidden, nowhere] =
            ["sock://198.51.100.1:5000", "sock://203.0.113.1:5000"].map(|uri| link.resolve(uri).expect("an address"));
        let before = link.silence(&forbidden).expect("the route tells");
        assert!(before.contains("the system has no way to 198.51.100.1 ("), "{before}");
        assert_eq!(link.send_burst(&[frame(forbidden, b"lost"), frame(nowhere, b"lost")]), 2);
        for reason in [link.refusal(&forbidden), link.silence(&forbidden)] {
            let reason = reason.expect("a reason");
            assert!(reason.contains("the system refuses send"), "{reason}");
        }
        for reason in [link.refusal(&nowhere), link.silence(&nowhere)] {
            let reason = reason.expect("a reason");
            assert!(reason.contains("the system has no way to 203.0.113.1 ("), "{reason}");
        }
    });
}

#[test]
fn a_full_buffer_ends_a_burst_and_room_is_told_of() {
    let commands = ["ip link set lo up", "tc qdisc add dev lo root tbf rate 1mbit burst 70000 limit 100000000"];
    in_own_network(&commands, || {
        let (mut a, mut b) = (open("127.0.0.1", &[("bufsize", "65536")]), open("127.0.0.1", &[]));
        let to = a.resolve(b.uri()).expect("a URI");
        let bytes = with_length(vec![7; 30_000], 0);
        let frames = [frame(to, &bytes); 64];
        let taken = a.send_burst(&frames);
        assert!((1..64).contains(&taken), "{taken}");
        assert!(!a.is_writable());
        // The error that ended the call might have been another's: that is looked into first.
        assert_eq!(a.recv_burst(8, &mut |incoming| panic!("{incoming:?}")), 0);
        assert!(a.arm(None, true), "no room yet");
        assert!(wait(&a, 20), "room");
        a.disarm();
        assert!(a.is_writable() && a.send_burst(&frames[taken..]) > 0);
        assert_eq!(take(&mut b, taken).len(), taken);
        assert_eq!(a.counters().tx_lost, 0);
    });
}

#[test]
fn a_full_connected_socket_ends_a_burst_and_nothing_overtakes() {
    let commands = ["ip link set lo up", "tc qdisc add dev lo root tbf rate 16mbit burst 200000 limit 100000000"];
    in_own_network(&commands, || {
        let (mut a, mut b) = (open("127.0.0.1", &[("bufsize", "65536")]), open("127.0.0.1", &[]));
        let (to_b, to_a) = (a.resolve(b.uri()).expect("a URI"), b.resolve(a.uri()).expect("a URI"));
        acquaint(&mut a, &mut b, to_b, to_a);
        // More than the interface takes at once, and the socket holds.
        let bytes: Vec<_> = (0..64).map(|number| with_length(vec![number; 30_000], 0)).collect();
        let frames: Vec<_> = bytes.iter().map(|bytes| frame(to_b, bytes)).collect();
        let before = a.counters();
        let (mut taken, mut arrived, mut pauses) = (0, 0, 0);
        while taken < frames.len() {
            let count = a.send_burst(&frames[taken..]);
            taken += count;
            if taken < frames.len() {
                pauses += 1;
                // What cut the call short might have been an earlier frame's error: that is looked
                // into first.
                assert_eq!(a.recv_burst(8, &mut |incoming| panic!("{incoming:?}")), 0);
                assert!(!a.arm(None, true) || wait(&a, 20), "it is time to try again");
                a.disarm();
            }
            b.recv_burst(64, &mut |incoming| {
                assert_eq!(Got::from(incoming).bytes(), bytes[arrived]);
                arrived += 1;
            });
        }
        let rest: Vec<_> = take(&mut b, bytes.len() - arrived).into_iter().map(Got::bytes).collect();
        assert_eq!(rest, bytes[arrived..]);
        let after = a.counters();
        assert_eq!((after.tx_connected - before.tx_connected, after.tx_lost - before.tx_lost), (64, 0));
        assert!(pauses > 0 && has_connected(&a, to_b));
    });
}

#[test]
fn a_full_queue_ends_a_burst_and_the_timer_tells() {
    let commands = ["ip link set lo up", "tc qdisc add dev lo root tbf rate 1mbit burst 10000 limit 20000"];
    in_own_network(&commands, || {
        let (mut a, b) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]));
        let to = a.resolve(b.uri()).expect("a URI");
        let (bytes, probe) = ([7; 5000], true);
        // Probes, so that each is a datagram of its own.
        let frames = [cci_reliable::Outgoing { probe, ..frame(to, &bytes) }; 32];
        let taken = a.send_burst(&frames);
        assert!((1..32).contains(&taken), "{taken}");
        // The socket has room; only time tells, and the handle says when.
        assert_eq!(a.recv_burst(8, &mut |incoming| panic!("{incoming:?}")), 0);
        a.arm(None, true);
        assert!(wait(&a, 10));
        a.disarm();
        assert!(a.is_writable());
        assert_eq!(a.counters().tx_lost, 0);
    });
}

#[test]
fn a_mark_of_congestion_is_shown_but_not_on_the_loop_back_interface() {
    let commands =
        ["ip link set lo up", "ip link add d0 type dummy", "ip addr add 192.0.2.9/24 dev d0", "ip link set d0 up"];
    in_own_network(&commands, || {
        for (ip, marks) in [("192.0.2.9", true), ("127.0.0.1", false)] {
            let mut b = open(ip, &[]);
            let plain = std::net::UdpSocket::bind((ip, 0)).expect("a socket");
            let name = b.uri().strip_prefix("sock://").expect("a URI").to_owned();
            // Congestion experienced, ECT(0), none.
            for mark in [3, 2, 0] {
                rustix::net::sockopt::set_ip_tos(&plain, mark).expect("a mark");
                plain.send_to(b"marked", &name).expect("a datagram");
                let got = take(&mut b, 1).remove(0);
                let expected = marks && mark == 3;
                assert!(matches!(got, Got::Frame { congested, .. } if congested == expected), "{ip} {mark}: {got:?}");
            }
        }
    });
}
