//! Addresses and URIs there and back.

use super::{Name, Uri, Way, ip, is_v4, of_group, of_socket, port, shown, way};
use cci_transport::HostAndPort;
use std::net::SocketAddr;

#[test]
fn an_address_survives_its_name() {
    for text in ["192.0.2.1:5000", "[2001:db8::1]:5000", "[fe80::1%7]:65535", "[::1]:1"] {
        let socket: SocketAddr = text.parse().expect(text);
        let address = of_socket(&socket);
        let name = Name::of(&address);
        assert_eq!(name.address(name.len.into()), address, "{text}");
        assert_eq!((ip(&address), port(&address)), (socket.ip(), socket.port()));
        assert_eq!((is_v4(&address), shown(&address).as_str()), (socket.is_ipv4(), text));
        assert_eq!(way(&address), None);
    }
}

#[test]
fn a_name_that_is_cut_short_or_of_another_family_is_no_address() {
    let name = Name::of(&of_socket(&SocketAddr::from(([192, 0, 2, 1], 5000))));
    assert_eq!(name.address(8), Default::default());
    let mut other = name;
    other.bytes[..2].copy_from_slice(&1_u16.to_ne_bytes());
    assert_eq!(other.address(16), Default::default());
}

#[test]
fn a_group_says_how_frames_leave() {
    let how = Way { interface: 3, ttl: 9 };
    let address = of_group("239.1.2.3".parse().expect("an IP"), 5000, how);
    assert_eq!(way(&address), Some(how));
    assert_eq!((shown(&address).as_str(), Name::of(&address).len), ("239.1.2.3:5000", 16));
    let address = of_group("ff15::1".parse().expect("an IP"), 5000, how);
    assert_eq!((way(&address), &Name::of(&address).bytes[24..]), (Some(how), &3_u32.to_ne_bytes()[..]));
}

#[test]
fn uris_that_are_understood() {
    let plain = |host, port| Uri { at: HostAndPort { host, port }, interface: None, ttl: None };
    for (text, expected) in [
        ("sock://192.0.2.1:5000", plain("192.0.2.1", 5000)),
        ("sock://[2001:db8::1]:1", plain("2001:db8::1", 1)),
        ("sock://[fe80::1%eth0]:65535", plain("fe80::1%eth0", 65535)),
        ("sock://node-7.example:80", plain("node-7.example", 80)),
        ("sock://239.1.2.3:5?ttl=4", Uri { ttl: Some(4), ..plain("239.1.2.3", 5) }),
        (
            "sock://239.1.2.3:5?interface=eth0&ttl=255",
            Uri { ttl: Some(255), interface: Some("eth0"), ..plain("239.1.2.3", 5) },
        ),
    ] {
        assert_eq!(Uri::parse(text), Some(expected), "{text}");
    }
}

#[test]
fn uris_that_are_not() {
    for text in [
        "",
        "sock://",
        "sm://1/2",
        "192.0.2.1:5000",
        "sock://192.0.2.1",
        "sock://:5000",
        "sock://192.0.2.1:",
        "sock://[::1:5000",
        "sock://::1:5000",
        "sock://192.0.2.1:0",
        "sock://192.0.2.1:65536",
        "sock://192.0.2.1:+5",
        "sock://192.0.2.1:5 ",
        "sock://[]:5",
        "sock://239.1.2.3:5?ttl=0",
        "sock://239.1.2.3:5?ttl=256",
        "sock://239.1.2.3:5?ttl=",
        "sock://239.1.2.3:5?interface=",
        "sock://239.1.2.3:5?color=red",
        "sock://239.1.2.3:5?ttl",
    ] {
        assert_eq!(Uri::parse(text), None, "{text}");
    }
}
