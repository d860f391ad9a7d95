//! Multicast on the loop-back interface.

use crate::ends::{self, Got, frame, open, take};
use cci_proto::ConnectError;
use cci_reliable::{Groups, Link, Wait};
use cci_sock::Sock;

/// Has these ends join groups, each under its number, at a port that no other test has, so that no
/// frame of theirs comes: the port. Another test may take the port before the ends do; then they
/// try with another port.
fn join_at_a_free_port(members: &mut [(&mut Sock, &str, u32)]) -> u16 {
    for _ in 0..20 {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = socket.local_addr().expect("a name").port();
        drop(socket);
        if members.iter_mut().all(|(end, ip, number)| end.join(&format!("sock://{ip}:{port}"), *number).is_ok()) {
            return port;
        }
        members.iter_mut().for_each(|(end, _, number)| end.leave(*number));
    }
    panic!("the ends cannot join at any port");
}

#[test]
fn one_sender_reaches_two_receivers() {
    let (mut a, mut b, mut c) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]), open("127.0.0.1", &[]));
    let port = join_at_a_free_port(&mut [(&mut b, "239.255.71.1", 7), (&mut c, "239.255.71.1", 8)]);
    let group = format!("sock://239.255.71.1:{port}");
    let to = a.address(&group).expect("a group");
    let bytes: Vec<Vec<u8>> = (0..10).map(|number| ends::with_length(vec![number; 100], 0)).collect();
    let frames: Vec<_> = bytes.iter().map(|bytes| frame(to, bytes)).collect();
    assert_eq!(a.send_burst(&frames), 10);
    for (end, number) in [(&mut b, 7), (&mut c, 8)] {
        let sender = end.resolve(a.uri()).expect("a URI");
        for (got, expected) in take(end, 10).into_iter().zip(&bytes) {
            assert_eq!(got, Got::Multicast { group: number, from: sender, bytes: expected.clone() });
        }
    }
    // A member hears itself too, and both senders are told apart.
    let to = b.address(&group).expect("a group");
    assert_eq!(b.send_burst(&[frame(to, b"from b")]), 1);
    let sender = c.resolve(b.uri()).expect("a URI");
    for (end, number) in [(&mut b, 7), (&mut c, 8)] {
        assert_eq!(take(end, 1), [Got::Multicast { group: number, from: sender, bytes: b"from b".to_vec() }]);
    }
}

#[test]
fn a_member_is_deaf_to_other_groups_of_the_same_port() {
    let (mut a, mut b, mut c) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]), open("127.0.0.1", &[]));
    let port = join_at_a_free_port(&mut [(&mut b, "239.255.71.2", 1), (&mut c, "239.255.71.3", 2)]);
    let [one, other] = ["239.255.71.2", "239.255.71.3"].map(|ip| format!("sock://{ip}:{port}"));
    let (to_one, to_other) = (a.address(&one).expect("a group"), a.address(&other).expect("a group"));
    assert_eq!(a.send_burst(&[frame(to_other, b"other"), frame(to_one, b"one")]), 2);
    assert!(matches!(&take(&mut b, 1)[..], [Got::Multicast { group: 1, bytes, .. }] if bytes == b"one"));
    assert!(matches!(&take(&mut c, 1)[..], [Got::Multicast { group: 2, bytes, .. }] if bytes == b"other"));
    // One endpoint in both tells them apart by number.
    b.join(&other, 3).expect("b joins the other");
    assert_eq!(a.send_burst(&[frame(to_other, b"again"), frame(to_one, b"again")]), 2);
    let mut groups: Vec<_> = take(&mut b, 2).iter().map(|got| matches!(got, Got::Multicast { group: 3, .. })).collect();
    groups.sort_unstable();
    assert_eq!(groups, [false, true]);
}

#[test]
fn who_has_left_hears_no_more() {
    let (mut a, mut b, mut c) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]), open("127.0.0.1", &[]));
    let port = join_at_a_free_port(&mut [(&mut b, "239.255.71.4", 1), (&mut c, "239.255.71.4", 2)]);
    let group = format!("sock://239.255.71.4:{port}");
    b.leave(1);
    b.leave(1);
    let to = a.address(&group).expect("a group");
    assert_eq!(a.send_burst(&[frame(to, b"x")]), 1);
    assert_eq!(take(&mut c, 1).len(), 1);
    assert!(b.arm(None, false), "nothing has come to b");
    assert!(!ends::wait(&b, 0));
    b.disarm();
    assert_eq!(b.recv_burst(8, &mut |incoming| panic!("{incoming:?}")), 0);
}

#[test]
fn frames_to_a_busy_endpoint_do_not_hide_its_groups() {
    let (mut a, mut b) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]));
    let group = format!("sock://239.255.71.5:{}", join_at_a_free_port(&mut [(&mut b, "239.255.71.5", 1)]));
    let (to, to_group) = (a.resolve(b.uri()).expect("a URI"), a.address(&group).expect("a group"));
    assert_eq!(a.send_burst(&[frame(to_group, b"to all")]), 1);
    let mut heard = false;
    for _ in 0..100 {
        assert_eq!(a.send_burst(&[frame(to, b"to b")]), 1);
        assert!(ends::wait(&b, 10));
        b.recv_burst(1, &mut |incoming| heard |= matches!(Got::from(incoming), Got::Multicast { .. }));
    }
    assert!(heard);
}

#[test]
fn a_group_on_ipv6() {
    // The loop-back has no route for groups of IPv6; an interface beside it has.
    let Some(mut a) = ends::on_link_local() else { return };
    let mut b = ends::on_link_local().expect("as before");
    let group = format!("sock://[ff15::71]:{}", join_at_a_free_port(&mut [(&mut b, "[ff15::71]", 5)]));
    let to = a.address(&group).expect("a group");
    assert_eq!(a.send_burst(&[frame(to, b"six")]), 1);
    let got = take(&mut b, 1);
    assert!(matches!(&got[..], [Got::Multicast { group: 5, bytes, .. }] if bytes == b"six"), "{got:?}");
}

#[test]
fn what_is_no_group_is_refused() {
    let mut a = open("127.0.0.1", &[]);
    for uri in [
        "sock://127.0.0.1:5000",
        "sock://[ff15::1]:5000",
        "sock://239.1.2.3",
        "sock://localhost:5000",
        "sock://239.1.2.3:5000?ttl=0",
        "sock://239.1.2.3:5000?interface=no-such",
        "sock://239.1.2.3:5000?interface=203.0.113.77",
    ] {
        assert_eq!(a.join(uri, 1), Err(ConnectError::BadUri), "{uri}");
        assert_eq!(a.address(uri), Err(ConnectError::BadUri), "{uri}");
    }
    assert!(a.address("sock://239.1.2.3:5000?interface=lo&ttl=3").is_ok());
    assert!(a.address("sock://239.1.2.3:5000?interface=127.0.0.1").is_ok());
    // A group is nothing to connect to.
    assert_eq!(a.resolve("sock://239.1.2.3:5000"), Err(ConnectError::BadUri));
}

#[test]
fn the_uri_says_how_far_frames_go() {
    let mut a = open("127.0.0.1", &[]);
    let mut b = open("127.0.0.1", &[]);
    for (more, ttl) in [("", 1), ("?ttl=1", 1), ("?ttl=9&interface=lo", 9)] {
        let (plain, port) = crate::sys::member("239.255.71.6");
        let to = a.address(&format!("sock://239.255.71.6:{port}{more}")).expect("a group");
        assert_eq!(a.send_burst(&[frame(to, b"far")]), 1);
        assert_eq!(crate::sys::receive_ttl(&plain), Some(ttl), "{more}");
    }
    // Frames to one are as far-reaching as ever.
    let to = a.resolve(b.uri()).expect("a URI");
    assert_eq!(a.send_burst(&[frame(to, b"near")]), 1);
    assert_eq!(take(&mut b, 1).len(), 1);
}
