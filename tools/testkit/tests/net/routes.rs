//! Hosts with several addresses: frames leave from the address of which the route to the peer
//! says so, and answers from the one that was asked. And hosts without IPv4.

use crate::traffic::everything;
use cci::{Connect, Endpoint, EventKind, Failure};
use cci_conformance::namespace::{Net, pair};
use cci_conformance::{LIMIT, World, device_of, open};
use std::time::Duration;

/// A host on two networks, `v0` with 10.0.0.1 and `w0` with 10.0.1.1, and a host on each. The
/// second knows no route to the first network, or one by another interface, which `rp_filter`
/// looks at.
fn on_two_networks(is_filtered: bool) -> [Net; 3] {
    let [host, first] = pair(1500);
    let second = Net::new();
    host.join(("w0", "10.0.1.1/24"), &second, ("w1", "10.0.1.2/24"), 1500);
    if is_filtered {
        second.set("conf/all/rp_filter", "1");
        second.run(&[
            "ip link add d0 type veth peer name d1",
            "ip link set d1 up",
            "ip link set d0 up",
            "ip route add 10.0.0.0/24 dev d0",
        ]);
    }
    host.set("conf/all/rp_filter", "1");
    [host, first, second]
}

fn endpoint(net: &Net, transport: &str, keys: &[(&str, &str)]) -> Endpoint {
    net.enter(|| open(&device_of(transport, keys)))
}

/// A default client reaches a server on either network, and a client of each network reaches it.
pub(crate) fn two_networks() {
    for is_filtered in [false, true] {
        let nets = on_two_networks(is_filtered);
        let servers = [nets[1].endpoint("v1"), nets[2].endpoint("w1")];
        nets[0].enter(|| {
            let client = open(&device_of("sock", &[]));
            assert!(client.uri().starts_with("sock://10.0.0.1:"), "{}", client.uri());
            for (server, is_first) in servers.iter().zip([true, false]) {
                everything([&client, server], 100, 1 << 18, 1);
                let world = World::new([&client, server]);
                let (there, _) = world.connect(0, 1, cci::Attribute::ReliableOrdered);
                let path = client.report(there).expect("open").path;
                assert_eq!(path.contains("accepts no requests"), !is_first, "{path}");
            }
            nets[1].enter(|| everything([&servers[0], &client], 100, 1 << 18, 1));
        });
    }
}

/// How a connect ends to which nobody answers: its reason.
fn unanswered(client: &Endpoint, uri: &str) -> String {
    unreached(client, uri, Failure::TimedOut)
}

/// The reason of a connect that ends with this failure.
fn unreached(client: &Endpoint, uri: &str, failure: Failure) -> String {
    client.connect(&Connect::to(uri).context(1).timeout(Duration::from_secs(1))).expect("a connect");
    let ended = World::new([client]).next(0, EventKind::Connect);
    assert_eq!(ended.outcome(), Err(failure));
    ended.reason().expect("a reason")
}

/// An address that a key names is kept, and the reason names the one that the routes choose. Other
/// silence has a reason too.
pub(crate) fn named_address() {
    let nets = on_two_networks(false);
    let server = nets[2].endpoint("w1");
    nets[0].enter(|| {
        for keys in [("ip", "10.0.0.1"), ("interface", "v0")] {
            let reason = unanswered(&open(&device_of("sock", &[keys])), server.uri());
            let wanted = "frames leave from 10.0.0.1, but the routes lead to 10.0.1.2 from 10.0.1.1";
            assert!(reason.contains(wanted) && reason.contains("does not answer"), "{reason}");
        }
        // The system refuses each frame, so there is nothing to wait for.
        let at_home = open(&device_of("sock", &[("interface", "lo")]));
        let reason = unreached(&at_home, server.uri(), Failure::Refused);
        assert!(reason.contains("frames from 127.0.0.1 do not leave this host"), "{reason}");
        let client = open(&device_of("sock", &[]));
        let reason = unanswered(&client, "sock://10.0.1.9:5000");
        assert!(reason.contains("sock://10.0.1.9:5000 does not answer") && !reason.contains("routes"), "{reason}");
        let reason = unanswered(&client, "sock://10.9.9.9:5000");
        assert!(reason.contains("the system has no way to 10.9.9.9"), "{reason}");
    });
}

/// A server with two addresses, whose routes to its clients prefer the second, answers from the
/// first where it was asked there.
pub(crate) fn server_with_two_addresses() {
    let nets = pair(1500);
    nets[1].run(&["ip addr add 10.0.0.3/24 dev v1", "ip route replace 10.0.0.0/24 dev v1 src 10.0.0.3"]);
    for transport in ["sock", "tcp"] {
        for ip in ["10.0.0.2", "10.0.0.3"] {
            let server = endpoint(&nets[1], transport, &[("ip", ip)]);
            let client = endpoint(&nets[0], transport, &[("ip", "10.0.0.1")]);
            nets[0].enter(|| everything([&client, &server], 50, 1 << 16, 1));
        }
    }
    let server = endpoint(&nets[1], "auto", &[("listen", "network")]);
    let client = endpoint(&nets[0], "auto", &[]);
    nets[0].enter(|| everything([&client, &server], 50, 1 << 16, 1));
}

/// Where no interface but the loop-back has IPv4, a default endpoint has the address of IPv6 by
/// which others reach it, and connects to others.
pub(crate) fn without_ipv4() {
    let nets = [Net::new(), Net::new()];
    nets[0].join(("v0", ""), &nets[1], ("v1", ""), 1500);
    for (net, address, name) in [(&nets[0], "2001:db8::1/64", "v0"), (&nets[1], "2001:db8::2/64", "v1")] {
        net.run(&[&format!("ip addr add {address} dev {name} nodad")]);
    }
    let ends = [endpoint(&nets[0], "sock", &[]), endpoint(&nets[1], "sock", &[])];
    for (end, uri) in ends.iter().zip(["sock://[2001:db8::1]:", "sock://[2001:db8::2]:"]) {
        assert!(end.uri().starts_with(uri), "{}", end.uri());
    }
    nets[0].enter(|| everything([&ends[0], &ends[1]], 100, 1 << 18, 1));
    let ends = [endpoint(&nets[0], "auto", &[]), endpoint(&nets[1], "auto", &[("listen", "network")])];
    assert!(ends[1].uri().contains("[2001:db8::2]"), "{}", ends[1].uri());
    nets[0].enter(|| {
        let world = World::new([&ends[0], &ends[1]]);
        ends[0].connect(&Connect::to(ends[1].uri()).context(1).timeout(LIMIT)).expect("a connect");
        world.next(1, EventKind::ConnectRequest).into_request().expect("a request").accept(2).expect("an accept");
        let connected = world.next(0, EventKind::Connect);
        assert_eq!(connected.outcome(), Ok(()), "{:?}", connected.reason());
    });
}
