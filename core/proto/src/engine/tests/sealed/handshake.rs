//! Handshakes of sealed connections.

use super::*;
use crate::wire::{Accept, Connect, Reason, Redirect, Reject, Retry, Share, features};

fn open(payload: &[u8]) -> Open<'_> {
    let attribute = Attribute::ReliableOrdered;
    Open { to: ADDRESSES[1], attribute, payload, host_cookie: 0, timeout: None, token: 0 }
}

#[test]
fn a_connection_opens_sealed_under_loss_and_only_its_handshake_is_in_clear() {
    for loss in [0, 5, 2] {
        let mut pair = pair_of([Security::Sealed; 2], loss);
        let frames = [capture(&mut pair, 0), std::rc::Rc::default()];
        let [client, server] = pair.connect(Attribute::ReliableOrdered);
        assert_eq!(pair.hosts[1].payloads, [b"hello"], "the payload comes out of the share");
        pair.deliver(0, client, 1, b"a secret of some length");
        pair.deliver(1, server, 2, b"another");
        assert_eq!(pair.hosts[1].received, [b"a secret of some length"]);
        let shows = |word: &[u8], frame: &Vec<u8>| frame.windows(word.len()).any(|bytes| bytes == word);
        for frame in frames[0].borrow().iter() {
            assert!(!shows(b"hello", frame) && !shows(b"secret", frame), "{frame:02x?}");
            assert!(frame[1] == Kind::Connect as u8 || wire::is_sealed(frame), "{frame:02x?}");
        }
        assert!((0..2).all(|side| pair.is_sealed(side, [client, server][side])));
        for side in 0..2 {
            let stats = pair.engines[side].stats();
            assert_eq!((stats.forged, stats.replayed, stats.malformed), (0, 0, 0), "loss {loss}");
            let now = pair.now;
            pair.engines[side].close(now, [client, server][side], &mut pair.hosts[side]);
        }
        pair.run(|pair| pair.engines.iter().all(|engine| engine.table.len() == 0));
        assert!(pair.hosts.iter().all(|host| host.sealer.as_ref().is_some_and(ToySealer::is_empty)), "keys are left");
    }
}

/// A repeated CONNECT or ACCEPT carries the same share.
#[test]
fn what_is_sent_again_carries_the_same_bytes() {
    let mut pair = pair_of([Security::Sealed; 2], 0);
    let frames = [0, 1].map(|_| std::rc::Rc::new(std::cell::RefCell::new(Vec::new())));
    let kept = frames.clone();
    pair.filter = std::boxed::Box::new(move |side, frame: &[u8]| {
        kept[side].borrow_mut().push(frame.to_vec());
        // Each answer of the server but RETRY is lost three times.
        frame[1] != Kind::Accept as u8 || kept[side].borrow().iter().filter(|old| old[1] == frame[1]).count() > 3
    });
    pair.connect(Attribute::ReliableOrdered);
    let shares = |side: usize, share: fn(&[u8]) -> Option<Vec<u8>>| -> Vec<Vec<u8>> {
        frames[side].borrow().iter().filter_map(|frame| share(frame)).collect()
    };
    let connects = shares(0, |frame| match Connect::parse(frame)?.share {
        Share::Inside(share) => Some(share.to_vec()),
        _ => None,
    });
    let accepts = shares(1, |frame| Some(Accept::parse(frame)?.share.to_vec()));
    for shares in [connects, accepts] {
        assert!(shares.len() > 2 && shares.iter().all(|share| *share == shares[0]), "{}", shares.len());
    }
}

#[test]
fn a_field_that_is_changed_on_the_way_opens_nothing() {
    // Of CONNECT: features, first sequence number, attribute, MTU, largest message, buffer, credit,
    // host, token, share. Of ACCEPT the same, and its sender.
    for (side, kind, offsets) in [
        (0, Kind::Connect, &[33, 36, 40, 43, 47, 48, 52, 56, 64, 90][..]),
        (1, Kind::Accept, &[16, 36, 43, 47, 48, 52, 56, 75][..]),
    ] {
        for at in offsets {
            let mut pair = pair_of([Security::Sealed; 2], 0);
            let index = pair.engines[0].connect(pair.now, &open(b"hello")).expect("connect");
            let until = pair.now.plus_micros(31_000_000);
            let changed = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
            let kept = changed.clone();
            pair.filter = std::boxed::Box::new(move |from, frame: &[u8]| {
                let is_first = || kind == Kind::Connect && frame[72..80] == [0; 8];
                if from != side || frame[1] != kind as u8 || is_first() {
                    return true;
                }
                let mut frame = frame.to_vec();
                frame[*at] ^= 1;
                wire::seal(&mut frame, 0, |check| check);
                kept.borrow_mut().push(frame);
                false
            });
            while pair.now < until && pair.step() {
                for frame in changed.take() {
                    let _ = pair.inject(1 - side, &frame);
                }
                if let Some(request) = pair.hosts[1].requests.pop() {
                    pair.engines[1].accept(pair.now, request, 0).expect("accept");
                }
            }
            assert!(pair.hosts[0].opened.is_empty() && pair.hosts[1].opened.is_empty(), "{kind:?}, byte {at}");
            assert_eq!(pair.hosts[0].refused, [Failure::TimedOut], "{kind:?}, byte {at}");
            assert!(pair.engines[0].address(index).is_none());
        }
    }
}

/// The features are stripped on the way there, or on the way back.
#[test]
fn a_stripped_handshake_connects_nothing() {
    for strips_answer in [false, true] {
        let mut pair = pair_of([Security::Sealed, if strips_answer { Security::Plain } else { Security::Prefer }], 0);
        let stripped = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let kept = stripped.clone();
        pair.filter = std::boxed::Box::new(move |side, frame: &[u8]| {
            let Some(connect) = Connect::parse(frame).filter(|_| side == 0) else { return true };
            let offer = wire::Offer { features: 0, ..connect.offer };
            let mut bytes = vec![0; 1400];
            let len = Connect { offer, payload: b"", share: Share::None, ..connect }.emit(&mut bytes);
            bytes.truncate(len);
            wire::seal(&mut bytes, 0, |check| check);
            kept.borrow_mut().push(bytes);
            false
        });
        pair.engines[0].connect(pair.now, &open(b"hello")).expect("connect");
        let until = pair.now.plus_micros(31_000_000);
        while pair.now < until && pair.step() {
            for frame in stripped.take() {
                pair.inject(1, &frame).expect("a sound frame");
            }
            if let Some(request) = pair.hosts[1].requests.pop() {
                let now = pair.now;
                pair.engines[1].accept(now, request, 0).expect("accept");
            }
        }
        assert!(pair.hosts.iter().all(|host| host.opened.is_empty()));
        assert_eq!((&pair.hosts[0].refused[..], &pair.hosts[0].security[..]), (&[Failure::TimedOut][..], &[true][..]));
        assert!(pair.engines[0].stats().clear > 0, "the answer in clear was seen and not believed");
    }
}

/// A client in the middle of a sealed connect: its engine, host, and the frames that it sends.
struct Client {
    pair: Pair,
    index: Index,
    connect: Vec<u8>,
}

/// A client that has sent its share, which has not arrived.
fn asking() -> Client {
    let mut pair = pair_of([Security::Sealed; 2], 0);
    let index = pair.engines[0].connect(pair.now, &open(b"hello")).expect("connect");
    let connects = capture(&mut pair, 0);
    let kept = connects.clone();
    pair.filter = std::boxed::Box::new(move |side, frame: &[u8]| {
        if side == 0 {
            kept.borrow_mut().push(frame.to_vec());
        }
        side == 1 || frame[72..80] == [0; 8]
    });
    pair.run(|_| connects.borrow().iter().any(|frame| frame[72..80] != [0; 8]));
    let connect = connects.borrow().last().expect("asked").clone();
    Client { pair, index, connect }
}

impl Client {
    fn cookie(&self) -> u64 {
        Connect::parse(&self.connect).expect("CONNECT").cookie
    }

    fn is_asking(&mut self) -> bool {
        let host = &self.pair.hosts[0];
        host.refused.is_empty() && host.opened.is_empty() && self.pair.engines[0].address(self.index).is_some()
    }
}

#[test]
fn answers_in_clear_and_forged_ones_are_ignored_by_a_sealed_request() {
    let mut client = asking();
    let id = client.pair.engines[0].identifier(client.index).expect("asking");
    let cookie = client.cookie();
    let header = |kind| Header { kind, to: id, from: 99, number: 7, time: 0 };
    let offer = Connect::parse(&client.connect).expect("CONNECT").offer;
    let tags = [None, Some([0; TAG]), Some([7; TAG])];
    let mut frames = Vec::new();
    let mut add = |emit: &dyn Fn(&mut [u8]) -> usize| {
        let mut frame = vec![0; 1400];
        let len = emit(&mut frame);
        frame.truncate(len);
        wire::seal(&mut frame, 0, |check| check);
        frames.push(frame);
    };
    for tag in tags {
        for reason in [Reason::Program, Reason::Version, Reason::Resources, Reason::Attribute, Reason::Security] {
            add(&|f| Reject { header: header(Kind::Reject), reason, cookie, tag }.emit(f));
        }
        add(&|f| Redirect { header: header(Kind::Redirect), cookie, token: 1, uri: b"elsewhere", tag }.emit(f));
    }
    let plain = wire::Offer { features: 0, ..offer };
    add(&|f| Accept { header: header(Kind::Accept), offer: plain, cookie, share: &[] }.emit(f));
    add(&|f| Accept { header: header(Kind::Accept), offer, cookie, share: &[3; 64] }.emit(f));
    let events = client.pair.hosts[0].events;
    for frame in &frames {
        client.pair.inject(0, frame).expect("a sound frame");
        assert!(client.is_asking(), "{frame:02x?}");
    }
    assert_eq!(client.pair.hosts[0].events, events);
    // And opens all the same when the true answer comes.
    client.pair.filter = std::boxed::Box::new(|_, _| true);
    client.pair.run(|pair| !pair.hosts[1].requests.is_empty());
    let request = client.pair.hosts[1].requests.remove(0);
    client.pair.engines[1].accept(client.pair.now, request, 0).expect("accept");
    client.pair.run(|pair| !pair.hosts[0].opened.is_empty());
}

#[test]
fn a_flood_of_forged_acceptances_costs_a_few_examinations() {
    let mut client = asking();
    let id = client.pair.engines[0].identifier(client.index).expect("asking");
    let offer = Connect::parse(&client.connect).expect("CONNECT").offer;
    let mut frame = vec![0; 200];
    let header = Header { kind: Kind::Accept, to: id, from: 99, number: 7, time: 0 };
    let len = Accept { header, offer, cookie: client.cookie(), share: &[3; 64] }.emit(&mut frame);
    frame.truncate(len);
    wire::seal(&mut frame, 0, |check| check);
    for _ in 0..1000 {
        client.pair.inject(0, &frame).expect("a sound frame");
    }
    let exchange = &client.pair.engines[0].exchanges[&client.index.0];
    assert_eq!(exchange.examined, 1000);
    assert_eq!(client.pair.engines[0].stats().forged, 1000);
    assert!(client.is_asking());
}

#[test]
fn rejections_and_redirections_of_the_server_are_believed_however_often_they_are_lost() {
    for redirects in [false, true] {
        for loss in [0, 2] {
            let mut pair = pair_of([Security::Sealed; 2], loss);
            pair.engines[0].connect(pair.now, &open(b"hello")).expect("connect");
            pair.run(|pair| !pair.hosts[1].requests.is_empty());
            let request = pair.hosts[1].requests.remove(0);
            let (now, events) = (pair.now, pair.hosts[0].events);
            let host = &mut pair.hosts[1];
            if redirects {
                pair.engines[1].redirect(now, request, b"sim://elsewhere", 5, host).expect("redirect");
                pair.run(|pair| pair.hosts[0].events > events);
                assert!(pair.hosts[0].refused.is_empty());
            } else {
                pair.engines[1].reject(now, request, host).expect("reject");
                pair.run(|pair| !pair.hosts[0].refused.is_empty());
                assert_eq!(pair.hosts[0].refused, [Failure::Refused]);
            }
            assert_eq!(pair.engines[0].stats().forged + pair.engines[0].stats().clear, 0);
            assert!(pair.hosts[1].sealer.as_ref().is_some_and(ToySealer::is_empty), "nothing is kept");
        }
    }
}

/// A redirected client makes a new share for the other server.
#[test]
fn a_redirected_client_opens_a_sealed_connection() {
    let mut pair = pair_of([Security::Sealed; 2], 0);
    let index = pair.engines[0].connect(pair.now, &open(b"hello")).expect("connect");
    pair.run(|pair| !pair.hosts[1].requests.is_empty());
    let request = pair.hosts[1].requests.remove(0);
    let (now, events) = (pair.now, pair.hosts[0].events);
    pair.engines[1].expect(5);
    pair.engines[1].redirect(now, request, b"sim://here", 5, &mut pair.hosts[1]).expect("redirect");
    pair.run(|pair| pair.hosts[0].events > events);
    let now = pair.now;
    pair.engines[0].follow(now, index, ADDRESSES[1], 5);
    pair.run(|pair| !pair.hosts[1].requests.is_empty());
    let request = pair.hosts[1].requests.remove(0);
    let now = pair.now;
    pair.engines[1].accept(now, request, 0).expect("accept");
    pair.run(|pair| pair.hosts.iter().all(|host| !host.opened.is_empty()));
    assert!(pair.is_sealed(0, index));
}

/// Whoever has recorded a connection sends its frames to a restarted server, with cookies of that
/// server: its program sees the request again, and nothing else.
#[test]
fn a_recorded_connection_at_a_restarted_server_never_opens() {
    let (mut pair, [client, _]) = {
        let mut pair = pair_of([Security::Sealed; 2], 0);
        let frames = capture(&mut pair, 0);
        let ends = pair.connect(Attribute::ReliableOrdered);
        pair.deliver(0, ends[0], 1, b"pay 100");
        pair.hosts[0].payloads = frames.take();
        (pair, ends)
    };
    let _ = client;
    let recorded = core::mem::take(&mut pair.hosts[0].payloads);
    let mut engine = Engine::new(&CONFIG, [77, 1, 8, 3, 4, 5, 6, 7]);
    let mut host = recording_host(100);
    let mut restarted = sealer(1, Security::Sealed);
    restarted.drawn += 1 << 20;
    host.sealer = Some(restarted);
    let (mut now, mut buffer, mut cookie) = (pair.now, vec![0; 1400], (0, 0));
    for round in 0..3 {
        for frame in &recorded {
            let mut frame = frame.clone();
            if let Some(connect) = Connect::parse(&frame) {
                Connect { cookie: cookie.0, cookie_time: cookie.1, ..connect }.emit(&mut buffer);
                let len = frame.len();
                frame.copy_from_slice(&buffer[..len]);
                wire::seal(&mut frame, 0, |check| check);
            }
            let _ = engine.handle_frame(now, &ADDRESSES[0], &frame, false, &mut host);
            if let Some(request) = host.requests.pop() {
                engine.accept(now, request, 0).expect("accept");
            }
            while let Some(out) = engine.poll_transmit(now, true, &mut buffer, &mut host) {
                let frame = whole_frame(&out, &buffer, &[], &mut host).expect("sealed or in clear");
                if let Some(retry) = Retry::parse(&frame) {
                    cookie = (retry.cookie, retry.cookie_time);
                }
            }
        }
        now = now.plus_micros(1000);
        engine.handle_timeout(now, &mut host);
        assert!(
            host.opened.is_empty() && host.received.is_empty(),
            "round {round}: {:?} {:?}",
            host.opened,
            host.received
        );
    }
    assert_eq!(host.payloads, [b"hello"], "the program has seen the request once");
    let end = now.plus_micros(20_000_000);
    while let Some(due) = engine.poll_timeout().filter(|due| *due <= end) {
        now = due.max(now);
        engine.handle_timeout(now, &mut host);
        while engine.poll_transmit(now, true, &mut buffer, &mut host).is_some() {}
    }
    assert_eq!((host.refused.as_slice(), engine.table.len()), (&[Failure::TimedOut][..], 0));
    assert!(host.sealer.as_ref().is_some_and(ToySealer::is_empty));
}

/// A client of a network whose others flood the server with shares of another secret.
#[test]
fn a_flood_of_wrong_shares_costs_a_bounded_number_and_others_connect() {
    let mut pair = pair_of([Security::Sealed; 2], 0);
    let mut client = asking();
    client.pair.hosts[0].sealer = Some(ToySealer::new(Security::Sealed, 1, 1));
    let mut buffer = vec![0; 1400];
    let mut examined = 0;
    let started = pair.now;
    let mut cookies = std::collections::BTreeMap::new();
    for round in 0..20_000_u64 {
        // A new client of the flooding network each time, which returns its cookie.
        let mut frame = client.connect.clone();
        let id = 1 + round / 2;
        frame[16..24].copy_from_slice(&id.to_be_bytes());
        let from = Address([9; 24]);
        let (cookie, time) = cookies.remove(&id).unwrap_or((0_u64, 0_u32));
        frame[72..80].copy_from_slice(&cookie.to_be_bytes());
        frame[80..84].copy_from_slice(&time.to_be_bytes());
        wire::seal(&mut frame, 0, |check| check);
        let before = pair.engines[1].stats().forged;
        let now = pair.now;
        pair.engines[1].handle_frame(now, &from, &frame, false, &mut pair.hosts[1]).expect("sound");
        examined += pair.engines[1].stats().forged - before;
        while let Some(out) = pair.engines[1].poll_transmit(now, true, &mut buffer, &mut pair.hosts[1]) {
            let frame = whole_frame(&out, &buffer, &[], &mut pair.hosts[1]).expect("in clear");
            if let Some(retry) = Retry::parse(&frame) {
                cookies.insert(retry.header.to, (retry.cookie, retry.cookie_time));
            }
        }
        pair.now = pair.now.plus_micros(50);
    }
    assert_eq!(pair.now.since(started), 1_000_000_000, "a second");
    assert!((100..200).contains(&examined), "{examined} shares were examined");
    assert!(pair.hosts[1].requests.is_empty());
    let began = pair.now;
    pair.connect(Attribute::ReliableOrdered);
    assert!(pair.now.since(began) < 1_000_000_000);
}

#[test]
fn a_client_offers_what_it_is_asked_for() {
    for (security, expected) in
        [(Security::Plain, 0), (Security::Prefer, features::SEALED), (Security::Sealed, features::SEALED)]
    {
        let mut pair = pair_of([security, Security::Prefer], 0);
        let frames = capture(&mut pair, 0);
        pair.connect(Attribute::ReliableOrdered);
        let connects: Vec<_> = frames.borrow().iter().filter(|frame| frame[1] == 1).cloned().collect();
        assert_eq!(connects.len(), 2);
        assert!(connects.iter().all(|frame| Connect::parse(frame).is_some_and(|c| c.offer.features == expected)));
    }
}
