//! Processes that have one secret, over a network.

use crate::world::{bytes, published, seen, until};
use cci::Device;
use cci_conformance::sealed::{PAUSE, Serving, check};
use cci_conformance::{pattern, sealed_device_of};
use cci_sci::{Access, Host, Kind, Nodes, Options, SequenceStatus};
use std::net::UdpSocket;
use std::time::Duration;

/// Long enough for RMA.
const LEN: usize = 100_000;
/// The word behind those bytes: the client has stored them, the owner has seen them.
const STORED: u64 = 1;
const SEEN: u64 = 2;

fn host(device: &Device, own: u32) -> Host {
    let nodes = Nodes::parse("4 localhost\n8 localhost\n").and_then(|nodes| nodes.at(own)).expect("a table");
    Host::open(&Options::new().nodes(nodes).device(device.clone())).expect("a host")
}

fn serve(device: &Device, serving: &Serving) -> usize {
    let owner = host(device, 4);
    let segment = published(&owner, LEN + 8);
    let own = seen(&segment);
    serving.announce(&segment.id().to_string());
    let mut served = 0;
    while serving.goes_on(PAUSE) {
        owner.progress().expect("open");
        if own.load(LEN) == Ok(STORED) {
            assert!(bytes(&own)[..LEN] == pattern(3, LEN), "what was stored before is there");
            own.store(LEN, SEEN).expect("inside");
            served += 1;
        }
    }
    served
}

fn call(device: &Device, server: &str, limit: Duration) -> Result<(), String> {
    let other = host(device, 8);
    let id = server.parse().expect("a number");
    let connection = other.connect(4, id, Some(limit)).map_err(|why| why.to_string())?;
    let window = connection.map(0..LEN + 8, Access::ReadWrite).expect("mapped");
    assert_eq!(window.kind(), Kind::Mirror);
    window.write(0, &pattern(3, LEN)).and_then(|()| window.store(LEN, STORED)).expect("inside");
    let sequence = window.sequence();
    until("the owner confirms", || sequence.check() == SequenceStatus::Ok);
    until("the owner answers", || window.flush_reads().and_then(|()| window.load(LEN)) == Ok(SEEN));
    Ok(())
}

#[test]
fn members_of_a_group_share_sealed_mirrors_and_strangers_do_not() {
    check("sealed::members_of_a_group_share_sealed_mirrors_and_strangers_do_not", serve, call);
}

/// The directory of a machine is in clear, with a secret as without one.
#[test]
fn a_host_answers_no_other_host_unless_its_device_is_open_to_the_network() {
    for (keys, is_open) in [(&[][..], false), (&[("listen", "network")], true)] {
        let any = UdpSocket::bind("[::]:0").and_then(|socket| socket.local_addr());
        let port = any.expect("a port").port();
        let nodes = Nodes::parse(&format!("4 localhost:{port}\n8 192.0.2.1 # documentation\n")).expect("a table");
        let options = Options::new().nodes(nodes).device(sealed_device_of("sock", keys));
        let _host = Host::open(&options).expect("a host");
        assert_eq!(UdpSocket::bind(("::", port)).is_err(), is_open, "{keys:?}");
    }
}
