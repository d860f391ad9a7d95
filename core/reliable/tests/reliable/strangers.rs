//! What those who have no connection may take: no slot that serves others, and little of what
//! serves them.

use crate::memory_link::{Hub, MTU, MemoryLink};
use crate::world::{End, How, LIMIT, join, message, next, opened, outcome, two, until, waiting};
use cci_mem::guarded::Threading;
use cci_proto::wire::{self, Accept, Confirm, Connect, Header, Kind, Offer, Retry, Share};
use cci_proto::{Address, Attribute, EventKind, Status};
use cci_reliable::{Incoming, Link, Outgoing};
use cci_transport::{CoreOptions, Posted};

const RO: Attribute = Attribute::ReliableOrdered;

/// A client that says only what the test wants: a port, and frames.
struct Stranger {
    link: MemoryLink,
    to: Address,
}

impl Stranger {
    fn new(hub: &Hub, host: u64, to: &End) -> Self {
        let mut link = hub.link_on(host);
        let to = link.resolve(&to.uri).expect("a URI of this hub");
        Self { link, to }
    }

    fn send(&mut self, frame: &mut [u8]) {
        wire::seal(frame, 0, |check| check);
        let outgoing = Outgoing { to: self.to, head: frame, piece: None, probe: false };
        assert_eq!(self.link.send_burst(&[outgoing]), 1);
    }

    /// The frames that have come.
    fn received(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        self.link.recv_burst(1 << 20, &mut |incoming| {
            if let Incoming::Frame { bytes, .. } = incoming {
                frames.push(bytes.to_vec());
            }
        });
        frames
    }

    fn connect(&mut self, own: u64, cookie: u64, cookie_time: u32) {
        let offer = Offer {
            features: 0,
            first_seq: 1,
            attribute: RO,
            mtu: MTU,
            max_send_size: 8192,
            recv_buffer: 1 << 20,
            credit: 64,
            host: 0,
        };
        let header = Header { kind: Kind::Connect, to: 0, from: own, number: 1, time: 0 };
        let mut frame = vec![0; 2048];
        let len =
            Connect { header, offer, token: 0, cookie, cookie_time, payload: b"", share: Share::None }.emit(&mut frame);
        self.send(&mut frame[..len]);
    }

    /// Asks under this identifier, and shows the cookie that it gets.
    fn ask(&mut self, end: &End, own: u64) {
        self.connect(own, 0, 0);
        keep(end);
        let retry = self.received().iter().find_map(|frame| Retry::parse(frame)).expect("a cookie");
        self.connect(own, retry.cookie, retry.cookie_time);
        keep(end);
    }

    /// Confirms the connection that the server has accepted.
    fn confirm(&mut self, own: u64) {
        let frames = self.received();
        let accept = frames.iter().find_map(|frame| Accept::parse(frame)).expect("accepted");
        let header = Header { kind: Kind::Confirm, to: accept.header.from, from: own, number: 2, time: 0 };
        let mut frame = [0; 32];
        Confirm { header }.emit(&mut frame);
        self.send(&mut frame);
    }
}

/// Lets an end take what has come; its events are kept.
fn keep(end: &End) {
    until(&[end], {
        let mut calls = 0;
        move || {
            calls += 1;
            calls > 3
        }
    });
}

/// Accepts every request that has come; how many there were.
fn accept_all(end: &End) -> usize {
    let count = waiting(end, EventKind::ConnectRequest);
    for _ in 0..count {
        let request = next(&[end], 0, EventKind::ConnectRequest);
        end.accept(request, 7);
        end.give_back(request);
    }
    count
}

#[test]
fn clients_that_never_confirm_take_no_send_slot() {
    let (hub, a, b) = two();
    let ends = [&a, &b];
    let (to_b, to_a) = join(&ends, RO);
    let (mut stranger, mut accepted) = (Stranger::new(&hub, 1000, &b), 0);
    for own in 1..=600 {
        stranger.ask(&b, own);
        accepted += accept_all(&b);
    }
    // All 256 send slots are there.
    for number in 0..254 {
        b.post(to_a, b"a slot", Posted::Event(number)).expect("a send");
    }
    b.connect(&a.uri, RO, LIMIT, b"");
    a.connect(&b.uri, RO, LIMIT, b"");
    let request = next(&ends, 1, EventKind::ConnectRequest);
    b.accept(request, 9);
    b.give_back(request);
    opened(&ends, 1, EventKind::Accept);
    for _ in 0..254 {
        assert_eq!(outcome(&ends, 1, EventKind::Send).0, Some(Status::Success));
    }
    a.send(to_b, b"and back", 1);
    assert_eq!(message(&ends, 1), b"and back");
    assert_eq!(accepted, 16, "a quarter of a quarter of 256");
}

#[test]
fn beyond_its_quarter_a_host_gets_cookies_and_others_are_let_in() {
    let hub = Hub::new();
    let b = End::open(&hub, How::default());
    let mut greedy = [Stranger::new(&hub, 1000, &b), Stranger::new(&hub, 1000, &b)];
    for own in 1..=200 {
        greedy[usize::try_from(own % 2).expect("small")].ask(&b, own);
    }
    assert_eq!(waiting(&b, EventKind::ConnectRequest), 16, "a quarter of a quarter of 256");
    let answers: Vec<_> = greedy.iter_mut().flat_map(Stranger::received).collect();
    assert!(answers.iter().all(|frame| Retry::parse(frame).is_some()), "somebody was refused");
    let mut modest = Stranger::new(&hub, 1001, &b);
    modest.ask(&b, 1);
    assert_eq!(waiting(&b, EventKind::ConnectRequest), 17);
    assert_eq!(accept_all(&b), 17);
    keep(&b);
    modest.confirm(1);
    opened(&[&b], 0, EventKind::Accept);
}

#[test]
fn a_client_that_confirms_while_every_send_slot_is_taken_is_told_of_later() {
    let (_, a, b) = two();
    let ends = [&a, &b];
    let (_, to_a) = join(&ends, RO);
    a.connect(&b.uri, RO, LIMIT, b"");
    let request = next(&ends, 1, EventKind::ConnectRequest);
    // Events that nobody returns.
    for number in 0..256 {
        b.send(to_a, b"a slot", number);
    }
    let sent: Vec<_> = (0..256).map(|_| next(&ends, 1, EventKind::Send)).collect();
    b.accept(request, 9);
    b.give_back(request);
    let to_b = opened(&ends, 0, EventKind::Connect);
    a.send(to_b, b"before the event", 1);
    for _ in 0..100 {
        keep(&a);
        keep(&b);
    }
    assert_eq!(waiting(&b, EventKind::Accept) + waiting(&b, EventKind::Recv), 0);
    sent.into_iter().for_each(|slot| b.give_back(slot));
    opened(&ends, 1, EventKind::Accept);
    assert_eq!(message(&ends, 1), b"before the event");
    assert_eq!(outcome(&ends, 0, EventKind::Send).0, Some(Status::Success));
}

#[test]
fn a_thousand_ranks_of_one_host_connect_at_once() {
    let hub = Hub::new();
    let core = CoreOptions {
        recv_count: 4096,
        send_count: 1024,
        rma_count: 16,
        disconnect_events: true,
        ..CoreOptions::default()
    };
    let how = How { core, ..How::default() };
    let (ranks, server) = (End::open(&hub, how), End::open(&hub, how));
    for _ in 0..1000 {
        ranks.connect(&server.uri, RO, LIMIT, b"");
    }
    let mut open = 0;
    while open < 1000 {
        until(&[&ranks, &server], || {
            waiting(&server, EventKind::ConnectRequest) + waiting(&ranks, EventKind::Connect) > 0
        });
        accept_all(&server);
        while waiting(&ranks, EventKind::Connect) > 0 {
            opened(&[&ranks], 0, EventKind::Connect);
            open += 1;
        }
    }
}

#[test]
fn requests_of_two_hundred_ports_leave_peers_their_slots() {
    let hub = Hub::new();
    let (a, b) = (End::open_over(hub.link_on(1000), How::default()), End::open(&hub, How::default()));
    let (to_b, _) = join(&[&a, &b], RO);
    let mut ports: Vec<_> = (0..200).map(|_| Stranger::new(&hub, 1000, &b)).collect();
    for (number, port) in ports.iter_mut().enumerate() {
        port.ask(&b, 1 + 2 * number as u64);
        port.ask(&b, 2 + 2 * number as u64);
    }
    let asked = waiting(&b, EventKind::ConnectRequest);
    assert!((1..=64).contains(&asked), "{asked} requests have slots");
    // All of them unanswered, and every message held.
    for number in 0..150 {
        a.send(to_b, b"through", number);
        until(&[&a, &b], || waiting(&b, EventKind::Recv) as u64 > number);
    }
}

#[test]
fn sixty_four_peers_of_one_network_get_through_one_as_well_as_the_other() {
    let hub = Hub::new();
    let few = CoreOptions { send_count: 16, recv_count: 16, rma_count: 16, ..CoreOptions::default() };
    let how = How { core: few, threading: Threading::One, secret: None };
    let b = End::open(&hub, How::default());
    let peers: Vec<End> = (0..64).map(|_| End::open_over(hub.link_on(1000), how)).collect();
    let cells: Vec<_> = peers.iter().map(|peer| join(&[peer, &b], RO).0).collect();
    // All but the last flood, and their events are held.
    for (peer, cell) in peers.iter().zip(&cells).take(63) {
        while peer.post(cell, b"flood", Posted::Silent(0)).is_ok() {}
        (0..3).for_each(|_| {
            keep(peer);
            keep(&b);
        });
    }
    let held = waiting(&b, EventKind::Recv);
    assert!((128..256).contains(&held), "{held} messages of the flood");
    let (last, cell) = (&peers[63], cells[63]);
    // As many hosts ask as may: they leave the last one its slot.
    for host in 2000..2064 {
        Stranger::new(&hub, host, &b).ask(&b, 1);
    }
    assert!((16..64).contains(&waiting(&b, EventKind::ConnectRequest)));
    assert_eq!(waiting(&b, EventKind::Recv), held);
    last.send(cell, b"modest", 1);
    until(&[last, &b], || waiting(&b, EventKind::Recv) > held);
    assert_eq!(outcome(&[last, &b], 0, EventKind::Send).0, Some(Status::Success));
}
