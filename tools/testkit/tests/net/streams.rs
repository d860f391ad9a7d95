//! Several streams of a lane of `tcp`, where the network caps each flow, stops one, or resets one.

use crate::namespace::{Net, pair};
use crate::traffic::{Areas, everything as exchange};
use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connection, ConnectionOption, Endpoint, EndpointOptions, EventKind, Failure, Notify, Rma};
use cci_conformance::{LIMIT, World, device_of, open_with};
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// What the network gives each flow, and bytes that take a while at this rate.
const CAP: &str = "80mbit";
const LEN: usize = 12 << 20;
/// Four streams are at least so much quicker than one.
const GAIN: f64 = 2.5;
/// Send timeout of the connections that have one.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Without a timeout a lane ends after this silence of a stream, which is looked for a quarter of
/// this interval later at most.
const SILENCE: Duration = Duration::from_secs(30);
const ASKED_EVERY: Duration = Duration::from_secs(10);
/// How long the lane may live on after one of its streams has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// A loaded machine gets so much more.
const SLACK: Duration = Duration::from_secs(3);

/// Two name spaces, with an endpoint of so many streams in each.
fn at_the_first_of_two(streams: &str, test: impl FnOnce([&Net; 2], [&Endpoint; 2]) + Send) {
    let nets = pair(1500);
    // The one that every name space may have.
    nets.iter().for_each(|net| net.set("tcp_congestion_control", "reno"));
    let endpoint = |at: usize, interface: &str| {
        let device = || device_of("tcp", &[("interface", interface), ("streams", streams)]);
        nets[at].enter(|| open_with(&device(), |it: &mut EndpointOptions| it.disconnect_events = true))
    };
    let ends = [endpoint(0, "v0"), endpoint(1, "v1")];
    nets[0].enter(|| test(nets.each_ref(), ends.each_ref()));
}

/// A connection whose lane has so many streams, and the ports from which they were dialed, the
/// first stream's first.
fn connected(world: &World<'_>, streams: usize, attribute: Attribute) -> (Connection, Vec<u16>) {
    let (there, back) = world.connect(0, 1, attribute);
    let path = |at: usize, connection| world.endpoint(at).report(connection).expect("a report").path;
    if streams > 1 {
        let words = format!(", {streams} streams");
        world.until("all streams", || path(0, there).ends_with(&words) && path(1, back).ends_with(&words));
    }
    let server = world.endpoint(1).uri().rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
    let peer = path(1, back);
    let first = peer.split(',').next().and_then(|it| it.rsplit_once(':')?.1.parse().ok()).expect("a port");
    let mut all = dialed_to(server);
    assert!(all.remove(&first) && all.len() + 1 == streams, "{first} and {all:?}");
    (there, [first].into_iter().chain(all).collect())
}

/// The ports of this name space that are connected to this one.
fn dialed_to(server: u16) -> BTreeSet<u16> {
    let table = fs::read_to_string("/proc/thread-self/net/tcp").expect("the system's table");
    let port = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[3] == "01" && port(row[2]) == Some(server)).filter_map(|row| port(row[1])).collect()
}

/// Gives each of these flows a queue of its own with this rate, in both directions.
fn cap(nets: [&Net; 2], ports: &[u16]) {
    for (net, interface, side) in [(nets[0], "v0", "sport"), (nets[1], "v1", "dport")] {
        net.run(&[&format!("tc qdisc add dev {interface} root handle 1: htb default 1")]);
        let mut classes = Vec::new();
        for (class, port) in (10..).zip(ports) {
            let rate = format!("rate {CAP} ceil {CAP} burst 16k cburst 16k");
            net.run(&[&format!("tc class add dev {interface} parent 1: classid 1:{class} htb {rate}")]);
            classes.push(format!("{port} : 1:{class}"));
        }
        net.rules(&format!(
            "add table ip c; add chain ip c out {{ type filter hook output priority 0; }}; \
             add rule ip c out meta priority set tcp {side} map {{ {} }}",
            classes.join(", ")
        ));
    }
}

/// How long a write and a read take whose flows are capped.
fn time_of(streams: usize) -> [Duration; 2] {
    let mut took = [Duration::ZERO; 2];
    at_the_first_of_two(&streams.to_string(), |nets, ends| {
        let world = World::new(ends);
        let (connection, ports) = connected(&world, streams, Attribute::ReliableOrdered);
        cap(nets, &ports);
        let areas = Areas::new(ends, LEN);
        let [local, remote] = areas.handles();
        areas.fill(&cci_conformance::pattern(1, LEN));
        for (took, flags) in took.iter_mut().zip([Flags::WRITE, Flags::READ]) {
            let begun = Instant::now();
            ends[0].rma(connection, &Rma::new(local, remote, LEN as u64), 1, flags).expect("an RMA");
            assert_eq!(world.sent(0), 1);
            *took = begun.elapsed();
            assert!(areas.written() == cci_conformance::pattern(1, LEN), "{flags:?}");
        }
    });
    took
}

/// Where each flow is capped, four streams carry more than twice as much as one.
pub(crate) fn capped_flows() {
    let (one, four) = (time_of(1), time_of(4));
    for (what, (one, four)) in ["write", "read"].iter().zip(one.iter().zip(&four)) {
        let gain = one.as_secs_f64() / four.as_secs_f64();
        let rate = |took: &Duration| LEN as f64 / took.as_secs_f64() / 1e6;
        say!(
            "{what} where a flow has {CAP}: {:.1} MB/s by 1 stream, {:.1} MB/s by 4: {gain:.1}",
            rate(one),
            rate(four)
        );
        assert!(gain >= GAIN, "a {what} by four streams is {gain:.1} times as quick as by one");
    }
}

/// Messages and RMA of every byte on four streams, where one of fifty segments is lost each way.
pub(crate) fn loss() {
    at_the_first_of_two("4", |nets, ends| {
        for net in nets {
            net.rules(
                "add table ip t; add chain ip t in { type filter hook input priority 0; }; \
                 add rule ip t in ip protocol tcp numgen random mod 100 < 2 counter drop",
            );
        }
        exchange(ends, 200, 4 << 20, 3);
        for net in nets {
            assert!(net.counted("t", "in") > 0, "nothing was lost");
        }
    });
}

/// What the second host gets from this port is dropped, or rejected by these words.
fn block(nets: [&Net; 2], port: u16, verdict: &str) {
    nets[1].rules(&format!(
        "add table ip b; add chain ip b in {{ type filter hook input priority 0; }}; \
         add rule ip b in tcp sport {port} counter {verdict}"
    ));
}

/// A further stream carries nothing any more. Messages pass, the other streams carry the rest, and
/// a write that has a part on it ends by the send timeout. When it goes on, so does the lane.
pub(crate) fn stalled() {
    at_the_first_of_two("4", |nets, ends| {
        let world = World::new(ends);
        let (other, ports) = connected(&world, 4, Attribute::ReliableUnordered);
        let (timed, _) = world.connect(0, 1, Attribute::ReliableUnordered);
        ends[0].set_option(timed, ConnectionOption::SendTimeout, TIMEOUT).expect("an option");
        let areas = Areas::new(ends, LEN);
        let [local, remote] = areas.handles();
        block(nets, ports[2], "drop");
        let begun = Instant::now();
        ends[0].rma(timed, &Rma::new(local, remote, LEN as u64), 1, Flags::WRITE).expect("a write");
        ends[0].rma(other, &Rma::new(local, remote, LEN as u64), 2, Flags::WRITE).expect("a write");
        ends[0].send(other, b"passes", Notify::OnFailure(3)).expect("a send");
        assert_eq!(world.message(1), b"passes");
        // The other write may have a part there too; otherwise it ends on the other streams.
        let mut event = world.next(0, EventKind::Send);
        let mut has_ended = false;
        if event.context() == 2 {
            assert_eq!(event.outcome(), Ok(()));
            (event, has_ended) = (world.next(0, EventKind::Send), true);
        }
        assert_eq!((event.context(), event.outcome()), (1, Err(Failure::TimedOut)));
        let took = begun.elapsed();
        assert!(took >= TIMEOUT && took < TIMEOUT + SLACK, "{took:?}");
        assert_eq!(world.next(0, EventKind::Disconnect).connection(), Some(timed));
        nets[1].rules("delete table ip b");
        if !has_ended {
            assert_eq!(world.sent(0), 2);
        }
        areas.fill(&cci_conformance::pattern(2, LEN));
        ends[0].rma(other, &Rma::new(local, remote, LEN as u64), 4, Flags::WRITE).expect("a write");
        assert_eq!(world.sent(0), 4);
        assert!(areas.written() == cci_conformance::pattern(2, LEN), "a late part has touched memory");
    });
}

/// Without a send timeout a write whose part is on a stream that nobody acknowledges ends after
/// 30 s, and with it the lane, although the peer answers on the others.
pub(crate) fn silent() {
    at_the_first_of_two("4", |nets, ends| {
        let world = World::new(ends);
        let (connection, ports) = connected(&world, 4, Attribute::ReliableUnordered);
        let areas = Areas::new(ends, LEN);
        let [local, remote] = areas.handles();
        block(nets, ports[1], "drop");
        let begun = Instant::now();
        ends[0].rma(connection, &Rma::new(local, remote, LEN as u64), 1, Flags::WRITE).expect("a write");
        let longest = SILENCE + ASKED_EVERY / 4 + SLACK;
        let mut ended = None;
        while ended.is_none() {
            assert!(begun.elapsed() < longest, "no end within {longest:?}");
            world.step();
            ended = (world.waiting(0, EventKind::Send) > 0).then(|| world.next(0, EventKind::Send));
        }
        let event = ended.expect("just seen");
        assert_eq!((event.context(), event.outcome()), (1, Err(Failure::Disconnected)));
        let took = begun.elapsed();
        assert!(took > SILENCE - LAST_WORDS, "{took:?}");
        say!("noticed after {took:?}");
    });
}

/// A further stream is reset: each operation ends once, both sides learn it, and a new connection
/// has a new lane.
pub(crate) fn reset() {
    at_the_first_of_two("4", |nets, ends| {
        let world = World::new(ends);
        let (connection, ports) = connected(&world, 4, Attribute::ReliableOrdered);
        let areas = Areas::new(ends, LEN);
        let [local, remote] = areas.handles();
        block(nets, ports[3], "reject with tcp reset");
        let begun = Instant::now();
        ends[0].rma(connection, &Rma::new(local, remote, LEN as u64), 1, Flags::WRITE).expect("a write");
        ends[0].send(connection, b"behind it", 2).expect("a send");
        let mut ended: Vec<u64> = (0..2)
            .map(|_| {
                let event = world.next(0, EventKind::Send);
                assert_eq!(event.outcome(), Err(Failure::Disconnected), "{}", event.context());
                event.context()
            })
            .collect();
        ended.sort_unstable();
        assert_eq!(ended, [1, 2]);
        (0..2).for_each(|at| drop(world.next(at, EventKind::Disconnect)));
        let took = begun.elapsed();
        assert!(took < LAST_WORDS + SLACK, "{took:?}");
        nets[1].rules("delete table ip b");
        let (again, _) = connected(&world, 4, Attribute::ReliableOrdered);
        ends[0].rma(again, &Rma::new(local, remote, LEN as u64), 4, Flags::WRITE).expect("a write");
        assert_eq!(world.sent(0), 4);
        let idle = Instant::now();
        world.until("nothing more", || idle.elapsed() > LIMIT / 300);
        assert_eq!([0, 1].map(|at| world.waiting(at, EventKind::Send)), [0, 0]);
    });
}
