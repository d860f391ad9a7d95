//! Connects to a host of which several addresses are known.

use super::*;
use crate::wire::seal;
use core::time::Duration;

/// Addresses of the host that is asked, and one that nobody names.
const ASKED: [Address; 3] = [Address([11; 24]), Address([12; 24]), Address([13; 24])];
const STRANGER: Address = Address([14; 24]);
const SERVER_SEES: Address = ADDRESSES[0];

/// A client that asks at these addresses, which have paths of their own.
struct Asking {
    engine: Engine,
    host: RecordingHost,
    now: Time,
    index: Index,
}

fn path(number: usize) -> PathMtu {
    let base = 1200 - u16::try_from(number).expect("small");
    PathMtu { base, largest: base + 50 }
}

impl Asking {
    fn new(addresses: &[Address], timeout: Duration) -> Self {
        let (mut engine, now) = (Engine::new(&CONFIG, [5; 8]), Time(1_000_000));
        let attribute = Attribute::ReliableOrdered;
        let open = Open { to: addresses[0], attribute, payload: b"", host_cookie: 0, timeout: Some(timeout), token: 0 };
        let index = engine.connect(now, &open).expect("connect");
        engine.set_path(index, path(0));
        for (number, address) in addresses.iter().enumerate() {
            // What is there already is not added.
            engine.add_address(index, *address, path(number));
        }
        Self { engine, host: recording_host(4), now, index }
    }

    /// What it sends now.
    fn sent(&mut self) -> Vec<(Address, Vec<u8>)> {
        let (mut buffer, mut sent) = (vec![0; 1400], Vec::new());
        while let Some(out) = self.engine.poll_transmit(self.now, true, &mut buffer, &mut self.host) {
            let mut frame = buffer[..out.len].to_vec();
            seal(&mut frame, 0, |crc| crc);
            sent.push((out.to, frame));
        }
        sent
    }

    /// Lets time pass until it sends, at the latest until `limit`: how long, microseconds, and
    /// where to.
    fn next(&mut self) -> Option<(u64, Address)> {
        let begun = self.now;
        loop {
            if let Some((to, _)) = self.sent().pop() {
                return Some((self.now.since(begun) / 1000, to));
            }
            self.now = self.engine.poll_timeout()?.max(self.now);
            self.engine.handle_timeout(self.now, &mut self.host);
        }
    }

    /// A RETRY with this cookie comes from an address.
    fn retry(&mut self, from: &Address, cookie: u64) {
        let id = self.engine.identifier(self.index).expect("asking");
        let header = Header { kind: Kind::Retry, to: id, from: 0, number: 0, time: 0 };
        let mut frame = vec![0; 100];
        let len = Retry { header, cookie, cookie_time: 1 }.emit(&mut frame);
        self.engine.handle_verified(self.now, from, &frame[..len], false, &mut self.host);
    }

    /// The network reports this address as unreachable.
    fn unreachable(&mut self, to: &Address, quoted: &[u8]) {
        self.engine.handle_unreachable(self.now, to, quoted, false, &mut self.host);
    }

    fn asks(&self) -> Option<Address> {
        self.engine.address(self.index)
    }

    fn path(&self) -> PathMtu {
        let conn = self.engine.table.get(self.index.0).expect("asking");
        PathMtu { base: conn.base_mtu, largest: conn.peer_mtu }
    }
}

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn each_address_is_asked_in_turn_and_as_often_as_a_single_one() {
    let mut single = Asking::new(&ASKED[..1], LIMIT);
    let alone: Vec<_> = (0..5).filter_map(|_| single.next()).collect();
    assert_eq!(alone, [0, 20_000, 40_000, 80_000, 160_000].map(|after| (after, ASKED[0])));
    let mut client = Asking::new(&ASKED, LIMIT);
    let turns: Vec<_> = (0..9).filter_map(|_| client.next()).collect();
    let rounds = [0, 20_000, 20_000, 20_000, 40_000, 40_000, 40_000, 80_000, 80_000];
    let expected: Vec<_> = rounds.into_iter().zip(ASKED.into_iter().cycle()).collect();
    assert_eq!(turns[..4], expected[..4]);
    assert_eq!(
        turns.iter().map(|turn| turn.1).collect::<Vec<_>>(),
        expected.iter().map(|turn| turn.1).collect::<Vec<_>>()
    );
    assert!(turns.iter().skip(4).all(|(after, _)| (20_000..=80_000).contains(after)), "{turns:?}");
}

#[test]
fn the_address_that_answers_is_kept_with_its_path() {
    let mut client = Asking::new(&ASKED, LIMIT);
    assert_eq!((client.next(), client.path()), (Some((0, ASKED[0])), path(0)));
    assert_eq!((client.next(), client.path()), (Some((20_000, ASKED[1])), path(1)));
    // The first one is slow, and answers nevertheless.
    client.retry(&ASKED[0], 77);
    assert_eq!((client.asks(), client.path()), (Some(ASKED[0]), path(0)));
    let strays = client.engine.stats.strays;
    client.retry(&ASKED[1], 78);
    assert_eq!((client.engine.stats.strays, client.asks()), (strays + 1, Some(ASKED[0])));
    for _ in 0..5 {
        let (to, frame) = loop {
            if let Some(sent) = client.sent().pop() {
                break sent;
            }
            client.now = client.engine.poll_timeout().expect("it asks again");
            client.engine.handle_timeout(client.now, &mut client.host);
        };
        let connect = Connect::parse(&frame).expect("a CONNECT");
        assert_eq!((to, connect.cookie), (ASKED[0], 77));
    }
}

#[test]
fn a_server_at_the_second_address_accepts_and_the_first_is_dead() {
    let mut client = Asking::new(&ASKED[..2], LIMIT);
    let (mut server, mut accepted) = (Engine::new(&CONFIG, [6; 8]), recording_host(4));
    let mut buffer = vec![0; 1400];
    while client.host.opened.is_empty() {
        for (_, frame) in client.sent().into_iter().filter(|(to, _)| *to == ASKED[1]) {
            server.handle_verified(client.now, &SERVER_SEES, &frame, false, &mut accepted);
        }
        if let Some(index) = accepted.requests.pop() {
            server.accept(client.now, index, 1).expect("a request");
        }
        while let Some(out) = server.poll_transmit(client.now, true, &mut buffer, &mut accepted) {
            client.engine.handle_verified(client.now, &ASKED[1], &buffer[..out.len], false, &mut client.host);
        }
        if client.engine.has_output() {
            continue;
        }
        client.now = client.engine.poll_timeout().expect("it asks").max(client.now);
        client.engine.handle_timeout(client.now, &mut client.host);
    }
    assert_eq!((client.asks(), client.path().base), (Some(ASKED[1]), path(1).base));
    for (to, frame) in client.sent() {
        assert_eq!(to, ASKED[1]);
        server.handle_verified(client.now, &SERVER_SEES, &frame, false, &mut accepted);
    }
    assert_eq!((accepted.events, accepted.opened.len()), (2, 1), "one request, one connection");
}

#[test]
fn where_no_address_answers_one_event_comes_in_time() {
    let mut client = Asking::new(&ASKED, Duration::from_secs(2));
    let begun = client.now;
    while client.next().is_some() {}
    assert_eq!((client.host.refused.as_slice(), client.host.events), (&[Failure::TimedOut][..], 1));
    assert_eq!(client.now.since(begun), 2_000_000_000);
    assert!(client.engine.is_quiet());
}

#[test]
fn strangers_and_addresses_that_were_not_asked_do_not_answer() {
    let mut client = Asking::new(&ASKED, LIMIT);
    assert_eq!(client.next(), Some((0, ASKED[0])));
    for from in [STRANGER, ASKED[1], ASKED[2]] {
        client.retry(&from, 77);
        assert_eq!(client.asks(), Some(ASKED[0]));
    }
    assert_eq!(client.engine.stats.strays, 3);
    assert!(client.sent().is_empty());
    assert_eq!(client.next(), Some((20_000, ASKED[1])));
    // By a socket at which nobody may ask, too.
    let id = client.engine.identifier(client.index).expect("asking");
    let header = Header { kind: Kind::Retry, to: id, from: 0, number: 0, time: 0 };
    let mut frame = vec![0; 100];
    let len = Retry { header, cookie: 5, cookie_time: 1 }.emit(&mut frame);
    seal(&mut frame[..len], 0, |crc| crc);
    let known = [ASKED[0], ASKED[1], ASKED[2], STRANGER].map(|from| client.engine.is_for_peer(&from, &frame[..len]));
    assert_eq!(known, [true, true, false, false]);
}

#[test]
fn an_unreachable_address_is_left_at_once_and_the_last_refuses() {
    let mut client = Asking::new(&ASKED, LIMIT);
    let (first, quoted) = client.sent().pop().expect("a CONNECT");
    client.unreachable(&STRANGER, &quoted);
    client.unreachable(&ASKED[2], &quoted);
    assert!(client.sent().is_empty(), "neither was asked");
    client.unreachable(&first, &quoted);
    assert_eq!(client.next(), Some((0, ASKED[1])));
    assert_eq!(client.next().map(|turn| turn.1), Some(ASKED[2]));
    // One that was asked before, and is not asked now.
    client.unreachable(&ASKED[1], &quoted);
    assert_eq!(client.next().map(|turn| turn.1), Some(ASKED[2]), "it is the only one");
    assert!(client.host.refused.is_empty());
    client.unreachable(&ASKED[2], &quoted);
    assert_eq!(client.host.refused, [Failure::Refused]);
    assert!(client.next().is_none() && client.engine.is_quiet());
}

#[test]
fn an_address_that_is_added_after_the_answer_is_not_asked() {
    let mut client = Asking::new(&ASKED[..1], LIMIT);
    client.next();
    client.retry(&ASKED[0], 77);
    client.engine.add_address(client.index, ASKED[1], path(1));
    assert!((0..4).all(|_| client.next().is_some_and(|turn| turn.1 == ASKED[0])));
}
