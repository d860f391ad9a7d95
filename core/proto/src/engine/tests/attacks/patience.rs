//! Peers that are silent for long: jobs that are stopped, and paths that are cut. A patient engine
//! waits for them, any other one gives them up after a minute.

use super::*;
use crate::engine::{Security, ToySealer};

/// Longer than any engine waits that is not patient, microseconds.
const TEN_MINUTES: u64 = 600_000_000;
const RO: Attribute = Attribute::ReliableOrdered;

/// A pair with a connection whose client is patient, or not.
fn pair(patient: bool) -> (Pair, [Index; 2]) {
    let mut pair = Pair::with(&Config { patient, ..CONFIG }, 0);
    let ends = pair.connect(RO);
    (pair, ends)
}

/// What the server owes when it falls silent.
#[derive(Clone, Copy, Debug)]
enum Owed {
    /// The acknowledgement of a message.
    Acknowledgement,
    /// A slot for a message.
    Slot,
}

impl Owed {
    const ALL: [Self; 2] = [Self::Acknowledgement, Self::Slot];

    /// Begins operation 1, and cuts the path in the moment that the peer owes this.
    fn begin(self, pair: &mut Pair, client: Index) {
        match self {
            Self::Acknowledgement => {}
            Self::Slot => {
                pair.hosts[1].slots = 0;
                let before = pair.engines[0].stats().not_ready;
                pair.engines[0].send(pair.now, client, &[b"waits"], Op(1), false).expect("send");
                pair.run(|pair| pair.engines[0].stats().not_ready > before);
            }
        }
        pair.filter = std::boxed::Box::new(|_, _| false);
        if matches!(self, Self::Acknowledgement) {
            pair.engines[0].send(pair.now, client, &[b"waits"], Op(1), false).expect("send");
        }
    }
}

#[test]
fn a_patient_engine_goes_on_after_ten_minutes_of_silence() {
    for owed in Owed::ALL {
        let (mut pair, [client, _]) = pair(true);
        owed.begin(&mut pair, client);
        let (begun, frames) = (pair.now, pair.count);
        pair.run_until(begun.plus_micros(TEN_MINUTES));
        assert!(pair.hosts[0].broken.is_empty() && pair.hosts[0].ended.is_empty(), "{owed:?}");
        // Each second at least, and not more often than a peer without slots is asked.
        let asked = pair.count - frames;
        assert!((600..15_000).contains(&asked), "{owed:?}: asked {asked} times");
        // The peer's program is continued.
        pair.hosts[1].slots = 9;
        pair.filter = std::boxed::Box::new(|_, _| true);
        let continued = pair.now;
        pair.run(|pair| pair.hosts[0].ended.contains_key(&1));
        assert_eq!(pair.hosts[0].ended[&1], Ok(()), "{owed:?}");
        assert!(pair.now.since(continued) < 1_100_000_000, "{owed:?}: {} ns", pair.now.since(continued));
    }
}

/// The twin.
#[test]
fn any_other_engine_gives_a_silent_peer_up_after_a_minute() {
    for owed in Owed::ALL {
        let (mut pair, [client, _]) = pair(false);
        owed.begin(&mut pair, client);
        let begun = pair.now;
        pair.run_until(begun.plus_micros(59_000_000));
        assert!(pair.hosts[0].broken.is_empty(), "{owed:?}");
        pair.run_until(begun.plus_micros(70_000_000));
        assert_eq!(pair.hosts[0].broken, [(client, Failure::TimedOut)], "{owed:?}");
    }
}

/// The peer has taken a read, and says nothing more.
#[test]
fn a_patient_engine_waits_for_the_end_of_a_read() {
    for (patient, broken) in [(true, 0), (false, 1)] {
        let mut raw = Raw::with(&Config { patient, ..CONFIG }, RO);
        raw.rma(1, true, 100, None);
        raw.poll();
        raw.accept_all();
        raw.wait(TEN_MINUTES);
        assert_eq!(raw.host.broken.len(), broken, "patient: {patient}");
    }
}

/// Its own program was stopped: timers that are due long since fire at once.
#[test]
fn an_engine_that_was_stopped_itself_goes_on_at_once() {
    let (mut pair, [client, _]) = pair(true);
    Owed::Acknowledgement.begin(&mut pair, client);
    pair.pump();
    pair.now = pair.now.plus_micros(TEN_MINUTES);
    pair.filter = std::boxed::Box::new(|_, _| true);
    let continued = pair.now;
    pair.run(|pair| pair.hosts[0].ended.contains_key(&1));
    assert_eq!(pair.hosts[0].ended[&1], Ok(()));
    assert!(pair.now.since(continued) < 1_000_000, "{} ns", pair.now.since(continued));
}

#[test]
fn a_patient_engine_keeps_the_timeouts_of_its_program() {
    let (mut pair, [client, _]) = pair(true);
    pair.engines[0].set_timeouts(pair.now, client, 2_000_000, 0);
    Owed::Acknowledgement.begin(&mut pair, client);
    pair.run_until(pair.now.plus_micros(2_100_000));
    assert_eq!(pair.hosts[0].broken, [(client, Failure::TimedOut)]);
}

#[test]
fn a_patient_engine_believes_a_peer_that_has_forgotten_it() {
    let (mut pair, [client, server]) = pair(true);
    Owed::Acknowledgement.begin(&mut pair, client);
    pair.run_until(pair.now.plus_micros(TEN_MINUTES));
    // The peer's host comes back without the connection; nobody hears its farewell.
    let Pair { engines: [_, engine], hosts: [_, host], now, .. } = &mut pair;
    engine.close(*now, server, host);
    pair.run_until(pair.now.plus_micros(TEN_MINUTES));
    assert!(pair.hosts[0].broken.is_empty());
    pair.filter = std::boxed::Box::new(|_, _| true);
    pair.run(|pair| !pair.hosts[0].broken.is_empty());
    assert_eq!(pair.hosts[0].broken, [(client, Failure::Disconnected)]);
}

/// Reports of the network about each frame that the client sends.
fn report_all(pair: &mut Pair, until: Time) {
    let sent = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let into = sent.clone();
    pair.filter = std::boxed::Box::new(move |side, frame| {
        if side == 0 {
            into.borrow_mut().push(frame.to_vec());
        }
        false
    });
    while pair.now < until && pair.hosts[0].broken.is_empty() {
        pair.run_until(pair.now.plus_micros(100_000));
        let now = pair.now;
        let Pair { engines: [engine, _], hosts: [host, _], .. } = pair;
        for frame in sent.borrow_mut().drain(..) {
            engine.handle_unreachable(now, &ADDRESSES[1], &frame, false, host);
        }
    }
}

#[test]
fn a_patient_engine_believes_a_network_that_says_nobody_is_there() {
    let (mut pair, [client, _]) = pair(true);
    Owed::Acknowledgement.begin(&mut pair, client);
    pair.run_until(pair.now.plus_micros(TEN_MINUTES));
    let told = pair.now;
    report_all(&mut pair, told.plus_micros(6_000_000));
    assert_eq!(pair.hosts[0].broken, [(client, Failure::Disconnected)]);
}

/// Anybody can say that the peer of a sealed connection is not there. So that counts only once the
/// peer has been silent for a minute.
#[test]
fn a_patient_engine_believes_it_of_a_sealed_peer_after_a_minute_of_silence() {
    let config = Config { patient: true, ..CONFIG };
    let mut pair = Pair::with(&config, 0);
    for side in 0..2 {
        pair.hosts[side].sealer = Some(ToySealer::new(Security::Sealed, 99, side as u64 + 1));
    }
    let [client, _] = pair.connect(RO);
    Owed::Acknowledgement.begin(&mut pair, client);
    let begun = pair.now;
    report_all(&mut pair, begun.plus_micros(58_000_000));
    assert!(pair.hosts[0].broken.is_empty(), "not by the word of anybody");
    pair.filter = std::boxed::Box::new(|_, _| false);
    pair.run_until(begun.plus_micros(TEN_MINUTES));
    assert!(pair.hosts[0].broken.is_empty(), "not by silence");
    report_all(&mut pair, begun.plus_micros(TEN_MINUTES + 2_000_000));
    assert_eq!(pair.hosts[0].broken, [(client, Failure::TimedOut)]);
}
