//! Groups on a bridge that four hosts hang on.

use crate::namespace::Net;
use crate::traffic::take;
use cci::{Attribute, Connect, Connection, Endpoint, EventKind};
use cci_conformance::LIMIT;
use std::collections::VecDeque;
use std::process::Command;
use std::time::Instant;

const GROUP: &str = "sock://239.1.2.3:7300";
const OTHER_GROUP: &str = "sock://239.1.2.4:7300";

/// A bridge, and hosts with `v0` on it.
struct Segment {
    hosts: Vec<Net>,
    _bridge: Net,
}

impl Segment {
    fn new(count: usize) -> Self {
        let bridge = Net::new();
        bridge.run(&["ip link add br0 type bridge mcast_snooping 0", "ip link set br0 up"]);
        let hosts: Vec<_> = (0..count).map(|_| Net::new()).collect();
        for (at, host) in hosts.iter().enumerate() {
            let port = format!("p{at}");
            host.join(("v0", &format!("10.0.0.{}/24", at + 1)), &bridge, (&port, ""), 1500);
            bridge.run(&[&format!("ip link set {port} master br0")]);
        }
        // The system notes that a link is up some time later, a second and more under load. Until
        // then a port forwards nothing, and a host's interface drops what it is to send.
        for (at, host) in hosts.iter().enumerate() {
            until_shown(&bridge, &format!("p{at}"), "state forwarding");
            until_shown(host, "v0", "state UP");
        }
        Self { hosts, _bridge: bridge }
    }
}

/// Waits until the system states this of an interface.
fn until_shown(net: &Net, interface: &str, stated: &str) {
    let deadline = Instant::now() + LIMIT;
    let show = || Command::new("ip").args(["-d", "link", "show", interface]).output().expect("ip").stdout;
    while !String::from_utf8_lossy(&net.enter(show)).contains(stated) {
        assert!(Instant::now() < deadline, "{interface} does not become '{stated}'");
    }
}

/// Connects an endpoint to a group; in its own name space, since a socket is opened.
fn connect(host: &Net, endpoint: &Endpoint, group: &str, attribute: Attribute) -> Connection {
    host.enter(|| endpoint.connect(&Connect::to(group).attribute(attribute).context(5)).expect("a connect"));
    let deadline = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < deadline, "no answer to the connect to {group}");
        let Some(event) = endpoint.get_event().expect("an endpoint") else { continue };
        assert_eq!((event.kind(), event.context(), event.outcome()), (EventKind::Connect, 5, Ok(())));
        return event.connection().expect("a connection");
    }
}

/// Sends numbered messages from each sender until each receiver has heard each of them, which it
/// does unless the network loses it; a bridge of one host does not.
fn play(senders: usize) {
    const COUNT: u8 = 20;
    let segment = Segment::new(senders + 3);
    let ends: Vec<Endpoint> = segment.hosts.iter().map(|host| host.endpoint("v0")).collect();
    let all = || segment.hosts.iter().zip(&ends);
    for (at, (host, end)) in all().skip(senders).enumerate() {
        connect(host, end, GROUP, Attribute::MulticastReceive);
        if at == 0 {
            // Hears another group as well, with which nothing may be mixed up.
            connect(host, end, OTHER_GROUP, Attribute::MulticastReceive);
        }
    }
    let connections: Vec<_> =
        all().take(senders).map(|(host, end)| connect(host, end, GROUP, Attribute::MulticastSend)).collect();
    let mut heard = vec![VecDeque::new(); 3];
    for number in 0..COUNT {
        for (sender, (end, connection)) in ends.iter().zip(&connections).enumerate() {
            let message = [u8::try_from(sender).expect("few"), number, 7, 7];
            end.send(*connection, &message, 0).expect("a send");
        }
        let deadline = Instant::now() + LIMIT;
        let want = senders * (usize::from(number) + 1);
        while heard.iter().any(|heard| heard.len() < want) {
            assert!(
                Instant::now() < deadline,
                "heard {:?} of {want}",
                heard.iter().map(VecDeque::len).collect::<Vec<_>>()
            );
            ends.iter().take(senders).for_each(|end| take(end, &mut VecDeque::new()));
            ends.iter().skip(senders).zip(&mut heard).for_each(|(end, heard)| take(end, heard));
        }
    }
    for heard in &heard {
        for sender in 0..senders {
            let of_sender: Vec<u8> =
                heard.iter().filter(|message| usize::from(message[0]) == sender).map(|message| message[1]).collect();
            assert_eq!(of_sender, (0..COUNT).collect::<Vec<_>>(), "sender {sender}");
        }
    }
}

pub(crate) fn one_sender() {
    play(1);
}

pub(crate) fn two_senders() {
    play(2);
}
