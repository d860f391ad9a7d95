//! A peer that goes wrong: it stops reading, disappears, or starts anew; and frames that are not
//! its own. In virtual time.

use cci_proto::engine::Index;
use cci_proto::wire::{Ack, Close, Data, Header, Kind, Reset, flags, seal};
use cci_proto::{Attribute, Failure};
use cci_sim::network::{Faults, Graph, LinkIndex, LinkSettings};
use cci_testkit::simulation::fixture::{Fixture, Sent, ample};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);
/// Keepalive and send timeouts of these tests, microseconds.
const TIMEOUT: u32 = 200_000;

fn link() -> LinkSettings {
    LinkSettings { delay: 100_000, bandwidth: 125_000_000, ..LinkSettings::default() }
}

fn fixture(slots: u32) -> Fixture {
    Fixture::new(5, Graph::mesh(3, &link()), 3, &ample(1500), slots)
}

fn send(fixture: &mut Fixture, index: Index, count: u32) {
    for number in 0..count {
        fixture.send(0, index, number, 1400).expect("room");
    }
    fixture.settle(0);
}

/// From now on nothing gets from or to this node.
fn cut_off(fixture: &mut Fixture, node: u32) {
    let down = LinkSettings { faults: Faults { loss: 1_000_000, ..Faults::default() }, ..link() };
    for link in (0..fixture.network.graph().links()).map(LinkIndex) {
        let (from, to) = fixture.network.graph().ends(link).expect("a link");
        if from.0 == node || to.0 == node {
            fixture.network.set_link(link, &down);
        }
    }
}

#[test]
fn a_peer_that_never_returns_an_event_is_reported_at_the_send_timeout() {
    let mut fixture = fixture(4);
    fixture.players[1].host.returns = false;
    let [client, _] = fixture.open(0, 1, Attribute::ReliableOrdered);
    let begun = fixture.now();
    fixture.players[0].engine.set_timeouts(begun, client, TIMEOUT, 0);
    send(&mut fixture, client, 10);
    assert!(fixture.run(LONG, |fixture| fixture.players[0].host.broken == [(client, Failure::NotReady)]));
    let waited = (fixture.now() - begun).as_micros();
    assert!((u128::from(TIMEOUT)..2 * u128::from(TIMEOUT)).contains(&waited), "{waited} us");
    assert_eq!(fixture.players[1].delivered.len(), 4);
    assert_eq!(fixture.players[0].failures, [Failure::NotReady; 6]);
}

#[test]
fn a_peer_that_returns_events_before_the_send_timeout_gets_everything() {
    let mut fixture = fixture(4);
    fixture.players[1].host.returns = false;
    let [client, _] = fixture.open(0, 1, Attribute::ReliableOrdered);
    let begun = fixture.now();
    fixture.players[0].engine.set_timeouts(begun, client, TIMEOUT, 0);
    send(&mut fixture, client, 10);
    fixture.run_for(Duration::from_micros(u64::from(TIMEOUT) / 2));
    assert_eq!(fixture.players[1].delivered.len(), 4);
    let resent = fixture.players[0].engine.stats().resent;
    assert!(resent < 100, "{resent} frames were sent again to a peer that has no room");
    let refilled = fixture.now();
    fixture.give_back(1, 10);
    assert!(fixture.run(LONG, |fixture| fixture.players[1].delivered.len() == 10));
    assert!(fixture.now() - refilled < Duration::from_millis(1), "the sender was not told that there is room");
    fixture.run_for(LONG);
    assert!(fixture.players[0].failures.is_empty() && fixture.players[0].host.broken.is_empty());
}

/// Sends messages that fill a frame until no more are taken.
fn fill(fixture: &mut Fixture, index: Index) -> u32 {
    let mut taken = 0;
    while fixture.send(0, index, taken, 1000).is_ok() {
        taken += 1;
    }
    fixture.settle(0);
    taken
}

#[test]
fn a_stuck_connection_leaves_buffers_to_a_live_one() {
    let mut fixture = fixture(64);
    let [stuck, _] = fixture.open(0, 1, Attribute::ReliableOrdered);
    let [live, _] = fixture.open(0, 2, Attribute::ReliableOrdered);
    cut_off(&mut fixture, 1);
    let all = u64::from(ample(1500).frames);
    let first = u64::from(fill(&mut fixture, stuck));
    assert!((all / 3..=all / 2).contains(&first), "{first} of {all}: no more than it leaves");
    let (mut sent, mut most) = (0, 0);
    while sent < 3 * all {
        let taken = u64::from(fill(&mut fixture, live));
        (sent, most) = (sent + taken, most.max(taken));
        // The stuck one wants more all the time.
        assert_eq!(fill(&mut fixture, stuck), 0, "it has a quarter and more, and another has some");
        let count = usize::try_from(sent).expect("few");
        assert!(fixture.run(LONG, |fixture| fixture.players[2].delivered.len() == count), "the live one starves");
    }
    assert!((all / 8..=all / 4).contains(&most), "the live one had {most} at once");
}

#[test]
fn any_number_of_stuck_connections_leaves_buffers_to_a_live_one() {
    let mut fixture = fixture(64);
    let stuck: Vec<Index> = (0..5).map(|_| fixture.open(0, 1, Attribute::ReliableUnordered)[0]).collect();
    let [live, _] = fixture.open(0, 2, Attribute::ReliableOrdered);
    cut_off(&mut fixture, 1);
    for index in stuck {
        assert!(fill(&mut fixture, index) > 0);
    }
    let taken = usize::try_from(fill(&mut fixture, live)).expect("few");
    assert!(taken > 0);
    assert!(fixture.run(LONG, |fixture| fixture.players[2].delivered.len() == taken));
}

#[test]
fn a_connection_that_is_alone_has_all_buffers() {
    // The twin.
    let mut fixture = fixture(64);
    let [only, _] = fixture.open(0, 1, Attribute::ReliableOrdered);
    cut_off(&mut fixture, 1);
    let (all, taken) = (ample(1500).frames, fill(&mut fixture, only));
    assert!(taken > all - 32, "{taken} of {all}");
}

#[test]
fn a_peer_that_disappears_is_reported_within_three_keepalive_intervals() {
    let mut fixture = fixture(64);
    let [client, _] = fixture.open(0, 1, Attribute::ReliableUnordered);
    let now = fixture.now();
    fixture.players[0].engine.set_timeouts(now, client, 0, TIMEOUT);
    // The twin: while it is there, nothing is reported, however long nothing is sent.
    fixture.run_for(Duration::from_micros(50 * u64::from(TIMEOUT)));
    assert!(fixture.players[0].host.silent == 0);
    cut_off(&mut fixture, 1);
    let gone = fixture.now();
    assert!(fixture.run(LONG, |fixture| fixture.players[0].host.silent > 0));
    let waited = (fixture.now() - gone).as_micros();
    assert!(waited <= 3 * u128::from(TIMEOUT), "{waited} us");
    assert!(waited >= u128::from(TIMEOUT) / 2, "{waited} us: it was heard a moment before");
}

#[test]
fn what_is_sent_to_a_peer_that_disappeared_fails_at_the_send_timeout() {
    let mut fixture = fixture(64);
    let [client, _] = fixture.open(0, 1, Attribute::ReliableUnordered);
    cut_off(&mut fixture, 1);
    let begun = fixture.now();
    fixture.players[0].engine.set_timeouts(begun, client, TIMEOUT, 0);
    send(&mut fixture, client, 3);
    assert!(fixture.run(LONG, |fixture| fixture.players[0].host.broken == [(client, Failure::TimedOut)]));
    let waited = (fixture.now() - begun).as_micros();
    assert!((u128::from(TIMEOUT)..2 * u128::from(TIMEOUT)).contains(&waited), "{waited} us");
    assert_eq!(fixture.players[0].failures, [Failure::TimedOut; 3]);
}

#[test]
fn nobody_at_the_address_is_a_timeout_at_its_time() {
    let mut fixture = fixture(64);
    cut_off(&mut fixture, 1);
    let begun = fixture.now();
    fixture.ask(0, 1, Attribute::ReliableOrdered, Some(Duration::from_micros(u64::from(TIMEOUT))));
    assert!(fixture.run(LONG, |fixture| fixture.players[0].host.refused == [Failure::TimedOut]));
    let waited = (fixture.now() - begun).as_micros();
    assert!((u128::from(TIMEOUT)..2 * u128::from(TIMEOUT)).contains(&waited), "{waited} us");
}

#[test]
fn a_peer_that_starts_anew_fails_old_connections_fast_and_takes_new_ones() {
    let mut fixture = fixture(64);
    let [old, _] = fixture.open(0, 1, Attribute::ReliableOrdered);
    send(&mut fixture, old, 5);
    fixture.run_for(LONG);
    assert_eq!(fixture.players[1].delivered.len(), 5);
    fixture.restart(1);
    let begun = fixture.now();
    send(&mut fixture, old, 1);
    assert!(fixture.run(LONG, |fixture| fixture.players[0].host.broken == [(old, Failure::Disconnected)]));
    assert!(fixture.now() - begun < Duration::from_millis(1), "a RESET takes one round trip");
    assert_eq!(fixture.players[0].failures, [Failure::Disconnected]);
    assert!(fixture.players[1].delivered.is_empty() && fixture.players[1].host.events == 0);
    let [new, _] = fixture.open(0, 1, Attribute::ReliableOrdered);
    send(&mut fixture, new, 5);
    assert!(fixture.run(LONG, |fixture| fixture.players[1].delivered.len() == 5));
}

/// Every frame that was sent.
type Record = Rc<RefCell<Vec<Sent>>>;

fn record(fixture: &mut Fixture) -> Record {
    let record = Record::default();
    let frames = record.clone();
    fixture.filter = Some(Box::new(move |sent| {
        frames.borrow_mut().push(sent.clone());
        true
    }));
    record
}

#[test]
fn replayed_frames_change_nothing() {
    for attribute in [Attribute::ReliableOrdered, Attribute::ReliableUnordered, Attribute::Unreliable] {
        let mut fixture = fixture(64);
        let record = record(&mut fixture);
        let [client, server] = fixture.open(0, 1, attribute);
        send(&mut fixture, client, 50);
        fixture.run_for(Duration::from_secs(1));
        assert_eq!(fixture.players[1].delivered.len(), 50);
        let replay = |fixture: &mut Fixture| {
            let frames = record.borrow().clone();
            for sent in frames.iter().chain(frames.iter().rev()) {
                fixture.inject(usize::try_from(sent.to).expect("small"), sent.from, &sent.bytes);
                fixture.run_for(Duration::from_micros(10));
            }
        };
        let seen = |fixture: &Fixture| {
            fixture.players.iter().map(|player| (player.delivered.len(), player.host.events)).collect::<Vec<_>>()
        };
        let before = seen(&fixture);
        replay(&mut fixture);
        assert_eq!(seen(&fixture), before, "{attribute:?}: while it is open");
        send(&mut fixture, client, 1);
        assert!(fixture.run(LONG, |fixture| fixture.players[1].delivered.len() == 51), "{attribute:?}: it goes on");
        fixture.close(0, client);
        fixture.run_for(Duration::from_secs(1));
        fixture.close(1, server);
        fixture.run_for(Duration::from_secs(1));
        let before = seen(&fixture);
        replay(&mut fixture);
        assert_eq!(seen(&fixture), before, "{attribute:?}: after its end");
    }
}

/// Frames of an attacker who knows the addresses but has seen nothing, and guesses some of the
/// numbers.
fn guesses(to: u64, from: u64, number: u32) -> Vec<Vec<u8>> {
    let header = |kind| Header { kind, to, from, number, time: 0 };
    let mut frames = Vec::new();
    let mut make = |emit: &dyn Fn(&mut [u8]) -> usize| {
        let mut frame = vec![0; 1500];
        let len = emit(&mut frame);
        frame.truncate(len);
        seal(&mut frame, 0, |check| check);
        frames.push(frame);
    };
    for is_answer in [false, true] {
        make(&|frame| Close { is_answer, ..Close::answer(header(Kind::Close)) }.emit(&[], frame));
    }
    make(&|frame| Reset { header: header(Kind::Reset), number }.emit(frame));
    for bits in [0, flags::SEQUENCED, flags::SEQUENCED | flags::PROMPT, flags::RNR] {
        let ack = Ack { credit: 0, ack: number, echo_number: number, echo_time: 0, delay: 0, congested: 9 };
        let data = Data { header: header(Kind::Data), seq: number, flags: bits, ack, sack_words: 0 };
        make(&|frame| {
            let at = data.emit(&[u64::MAX], frame);
            cci_proto::wire::emit_message(frame, at, false, &[b"forged"])
        });
    }
    frames
}

#[test]
fn forged_frames_change_nothing() {
    let mut fixture = fixture(64);
    let record = record(&mut fixture);
    let [client, server] = fixture.open(0, 1, Attribute::ReliableOrdered);
    send(&mut fixture, client, 5);
    fixture.run_for(Duration::from_secs(1));
    let sent = record.borrow().iter().rev().find(|sent| sent.from == 0).cloned().expect("frames were sent");
    let header = Header::parse(&sent.bytes).expect("a frame");
    let before = (fixture.players[0].host.events, fixture.players[1].host.events);
    let guess = 0x1234_5678_9abc_def0;
    // Both identifiers wrong, either wrong, and both right from another address.
    let forged = [(guess, guess ^ 1, 0), (header.to, guess, 0), (guess, header.from, 0), (header.to, header.from, 2)];
    for (to, from, source) in forged {
        for number in [0, header.number, header.number.wrapping_add(1), header.number.wrapping_add(1000)] {
            for frame in guesses(to, from, number) {
                fixture.inject(1, source, &frame);
            }
            for frame in guesses(from, to, number) {
                fixture.inject(0, if source == 0 { 1 } else { source }, &frame);
            }
        }
    }
    fixture.run_for(Duration::from_secs(1));
    let after = (fixture.players[0].host.events, fixture.players[1].host.events);
    assert_eq!((before, fixture.players[1].delivered.len()), (after, 5));
    send(&mut fixture, client, 5);
    assert!(fixture.run(LONG, |fixture| fixture.players[1].delivered.len() == 10), "the connection lives");
    assert!(fixture.players[0].failures.is_empty());
    // The twin: who has seen both identifiers and sends from the address can close it.
    let header = Header { kind: Kind::Close, number: header.number.wrapping_add(5000), ..header };
    let mut frame = vec![0; 64];
    let len = Close { is_answer: false, ..Close::answer(header) }.emit(&[], &mut frame);
    frame.truncate(len);
    seal(&mut frame, 0, |check| check);
    fixture.inject(1, 0, &frame);
    assert_eq!(fixture.players[1].host.broken, [(server, Failure::Disconnected)]);
}

#[test]
fn a_source_that_has_proven_nothing_gets_no_state_and_no_more_than_it_sent() {
    let mut fixture = fixture(64);
    let record = record(&mut fixture);
    fixture.open(0, 1, Attribute::ReliableOrdered);
    let first = record.borrow().iter().find(|sent| sent.from == 0).cloned().expect("a CONNECT");
    record.borrow_mut().clear();
    for _ in 0..1000 {
        // From an address whose owner asked for nothing.
        fixture.inject(1, 2, &first.bytes);
    }
    let sent: usize = record.borrow().iter().filter(|sent| sent.from == 1).map(|sent| sent.bytes.len()).sum();
    assert!(sent <= 3 * 1000 * first.bytes.len(), "{sent} bytes for {}", 1000 * first.bytes.len());
    assert_eq!(fixture.players[1].host.requests.len(), 1);
}
