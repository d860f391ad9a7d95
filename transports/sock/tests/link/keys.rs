//! Keys, services and URIs, right and wrong.

use crate::ends::{self, open, try_open};
use cci_proto::{ConnectError, Status};
use cci_reliable::{Link, Names, Wait};
use cci_sock::DRIVER;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[test]
fn wrong_values_say_what_to_write() {
    for (key, value, want) in [
        ("ip", "nonsense", "write an IP address of this host"),
        ("ip", "0.0.0.0", "write one of this host's"),
        ("ip", "::", "write one of this host's"),
        ("ip", "239.1.2.3", "write one of this host's"),
        ("interface", "", "the name of an interface"),
        ("port", "65536", "from 0 to 65535"),
        ("port", "+5", "from 0 to 65535"),
        ("port", "", "from 0 to 65535"),
        ("mtu", "1279", "from 1280 to 65535"),
        ("mtu", "big", "from 1280 to 65535"),
        ("bufsize", "65535", "from 65536 to 1073741824"),
        ("bufsize", "4MB", "from 65536 to 1073741824"),
        ("check", "never", "always or remote"),
        ("colour", "red", "its keys are ip, interface, port, mtu, bufsize, check"),
    ] {
        let Err(error) = try_open(&[(key, value)], None) else { panic!("{key}={value} was taken") };
        assert_eq!(error.status, Status::Inval, "{error}");
        assert!(error.to_string().contains(want), "{error}");
    }
    for service in ["", "http", "65536", "-1", "1/2"] {
        let error = try_open(&[("ip", "127.0.0.1")], Some(service)).err().expect(service);
        assert!(error.status == Status::Inval && error.to_string().contains("is not PORT or ADDRESS:PORT"), "{error}");
    }
}

#[test]
fn addresses_that_this_host_has_not() {
    let error = try_open(&[("ip", "203.0.113.77")], None).err().expect("not ours");
    assert_eq!(error.status, Status::AddrNotAvail);
    assert!(error.to_string().contains("this host has no address 203.0.113.77"), "{error}");
    let error = try_open(&[("interface", "no-such")], None).err().expect("not ours");
    assert_eq!(error.status, Status::NoDev);
    assert!(
        error.to_string().contains("there is no interface no-such; this host has") && error.to_string().contains("lo")
    );
}

#[test]
fn a_port_in_use_is_said_to_be() {
    for ip in ends::homes() {
        let first = open(ip, &[]);
        let port = first.uri().rsplit_once(':').expect("a port").1.to_owned();
        for (keys, service) in
            [(vec![("ip", ip), ("port", port.as_str())], None), (vec![("ip", ip)], Some(port.as_str()))]
        {
            let error = try_open(&keys, service).err().expect("in use");
            assert_eq!(error.status, Status::AddrNotAvail);
            assert!(error.to_string().contains(&format!("port {port} of {ip} is in use; choose another")), "{error}");
        }
        drop(first);
        // Another test may take the port before it is bound again; then it is tried with another
        // port.
        let mut port = port;
        let is_free_again = (0..20).any(|_| match try_open(&[("ip", ip)], Some(&port)) {
            Ok(again) => again.uri().ends_with(&format!(":{port}")),
            Err(error) => {
                assert!(error.to_string().contains("is in use"), "{error}");
                port = open(ip, &[]).uri().rsplit_once(':').expect("a port").1.to_owned();
                false
            }
        });
        assert!(is_free_again, "a port of {ip} stays taken after its endpoint is closed");
    }
}

#[test]
fn the_service_stands_above_the_key() {
    let busy = open("127.0.0.1", &[]);
    let port = busy.uri().rsplit_once(':').expect("a port").1.to_owned();
    // With the key alone this would fail.
    let link = try_open(&[("ip", "127.0.0.1"), ("port", &port)], Some("0")).expect("a free port");
    assert_ne!(link.uri(), busy.uri());
}

#[test]
fn uris_name_what_others_reach() {
    assert!(open("127.0.0.1", &[]).uri().starts_with("sock://127.0.0.1:"));
    if ends::homes().contains(&"::1") {
        assert!(open("::1", &[]).uri().starts_with("sock://[::1]:"));
    }
    assert!(try_open(&[("interface", "lo")], None).expect("lo").uri().starts_with("sock://127."));
    let unnamed = try_open(&[], None).expect("some address");
    assert!(!unnamed.uri().contains("0.0.0.0"), "{}", unnamed.uri());
    // Every loop-back address is this host's.
    assert!(open("127.3.2.1", &[]).uri().starts_with("sock://127.3.2.1:"));
}

#[test]
fn names_are_looked_up_and_other_families_refused() {
    let mut a = open("127.0.0.1", &[]);
    let by_number = a.resolve("sock://127.0.0.1:5000");
    assert!(by_number.is_ok());
    // A name is never looked up where the caller waits for it.
    assert_eq!(a.resolve("sock://localhost:5000"), Err(ConnectError::BadUri));
    assert_eq!(a.begin("sock://127.0.0.1:5000", 1).map(|found| found.ok_or(ConnectError::BadUri)), Ok(by_number));
    assert_eq!(a.begin("sock://localhost:5000", 2), Ok(None));
    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&*a.waker(), PollFlags::IN)], Some(&limit)), Ok(1), "the waker is not written");
    assert_eq!(a.next(), Some((2, by_number.map(|to| vec![to]).map_err(|error| error.to_string()))));
    assert_eq!(a.next(), None);
    for uri in [
        "sock://[::1]:5000",
        "sock://no-such-host.invalid:5000",
        "sm://1/2",
        "sock://0.0.0.0:5000",
        "sock://127.0.0.1:0",
        "sock://127.0.0.1:5000?ttl=3",
    ] {
        assert_eq!(a.resolve(uri), Err(ConnectError::BadUri), "{uri}");
    }
}

#[test]
fn the_keys_are_honoured() {
    let link = open("127.0.0.1", &[("mtu", "9000"), ("bufsize", "65536"), ("check", "remote")]);
    assert_eq!((link.mtu(), link.base_mtu()), (8972, 8972));
    assert!((65_536..=131_072).contains(&link.recv_buffer()), "{}", link.recv_buffer());
    assert!(link.unchecked_on_host());
    let plain = open("127.0.0.1", &[("check", "always")]);
    assert!(!plain.unchecked_on_host() && !open("127.0.0.1", &[]).unchecked_on_host());
    assert!(plain.recv_buffer() > link.recv_buffer());
    // Three of them are not the link's: security, secret_file and secret.
    assert_eq!(DRIVER.keys.len(), 8 + 3);
    if ends::homes().contains(&"::1") {
        assert_eq!(open("::1", &[("mtu", "1280")]).mtu(), 1232);
    }
}
