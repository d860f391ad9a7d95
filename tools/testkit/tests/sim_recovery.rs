//! What a loss costs, in virtual time: one frame is lost, and the message is there within three round trips. The twins lose
//! more, or nothing, so that the threshold tells.

use cci_proto::Attribute;
use cci_proto::engine::Index;
use cci_sim::network::{Graph, LinkSettings, Time};
use cci_testkit::simulation::lab::{Lab, Sent, ample};
use std::time::Duration;

/// Half a round trip, nanoseconds.
const HALF: u64 = 5_000_000;
const ROUND_TRIP: u64 = 2 * HALF;
const LONG: Duration = Duration::from_secs(60);

/// Two nodes 10 ms apart and a connection that knows its round-trip time.
fn pair() -> (Lab, Index) {
    let link = LinkSettings { delay: HALF, bandwidth: 125_000_000, ..LinkSettings::default() };
    let mut lab = Lab::new(1, Graph::mesh(2, &link), 2, &ample(1500), 1024);
    let [client, _] = lab.open(0, 1, Attribute::ReliableOrdered);
    for number in 0..20 {
        lab.send(0, client, number, 100).expect("room");
        lab.settle(0);
        let count = lab.players[1].notes.delivered.len() + 1;
        assert!(lab.run(LONG, |lab| lab.players[1].notes.delivered.len() == count));
    }
    lab.run_for(Duration::from_millis(100));
    (lab, client)
}

/// Sends `count` messages that fill a frame each, of which those frames are lost that `is_lost` names by how many sequenced
/// frames and copies of it came before; says how long after the first was sent the last was delivered.
fn deliver(count: usize, is_lost: impl Fn(usize, usize) -> bool + 'static) -> u64 {
    let (mut lab, client) = pair();
    let mut seen: Vec<(u32, usize)> = Vec::new();
    lab.filter = Some(Box::new(move |sent: &Sent| {
        let Some(seq) = sent.seq().filter(|_| sent.from == 0) else { return true };
        let at = seen.iter().position(|(known, _)| *known == seq).unwrap_or_else(|| {
            seen.push((seq, 0));
            seen.len() - 1
        });
        seen[at].1 += 1;
        !is_lost(at, seen[at].1 - 1)
    }));
    let before = lab.players[1].notes.delivered.len();
    let begun = lab.now();
    for number in 0..count {
        lab.send(0, client, u32::try_from(number).expect("few"), 1400).expect("room");
    }
    lab.settle(0);
    assert!(lab.run(LONG, |lab| lab.players[1].notes.delivered.len() == before + count), "never delivered");
    let Time(end) = lab.now();
    end - begun.0
}

#[test]
fn without_loss_messages_take_half_a_round_trip() {
    let time = deliver(20, |_, _| false);
    assert!((HALF..ROUND_TRIP).contains(&time), "{time} ns");
}

#[test]
fn a_single_loss_is_recovered_within_three_round_trips() {
    let time = deliver(20, |frame, copy| frame == 5 && copy == 0);
    assert!(time > ROUND_TRIP, "{time} ns: nothing was lost");
    assert!(time < 3 * ROUND_TRIP, "{time} ns");
}

#[test]
fn the_loss_of_the_last_frame_is_recovered_within_three_round_trips() {
    let time = deliver(20, |frame, copy| frame == 19 && copy == 0);
    assert!(time > ROUND_TRIP, "{time} ns: nothing was lost");
    assert!(time < 3 * ROUND_TRIP, "{time} ns");
}

#[test]
fn the_loss_of_the_only_frame_is_recovered_within_three_round_trips() {
    let time = deliver(1, |_, copy| copy == 0);
    assert!((ROUND_TRIP..3 * ROUND_TRIP).contains(&time), "{time} ns");
}

#[test]
fn what_is_lost_three_times_takes_longer() {
    let time = deliver(1, |_, copy| copy < 3);
    assert!(time > 3 * ROUND_TRIP, "{time} ns");
}
