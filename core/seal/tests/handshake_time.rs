//! What a handshake costs. Builds without optimization have no such bar.

#![cfg(not(debug_assertions))]
#![forbid(unsafe_code)]

use cci_seal::Psk;
use cci_seal::noise::{Initiator, Responder};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Processor time of both sides, in microseconds.
const MOST: i64 = 250;

fn microseconds(since: Timespec) -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    (now.tv_sec - since.tv_sec) * 1_000_000 + (now.tv_nsec - since.tv_nsec) / 1_000
}

#[test]
fn both_sides_of_a_handshake_take_a_quarter_of_a_millisecond() {
    let psk = Psk::fresh().expect("a secret");
    let least = (0..100).map(|_| {
        let begun = clock_gettime(ClockId::ThreadCPUTime);
        let initiator = Initiator::begin(&psk, &[b"fields"], b"payload").expect("begun");
        let responder = Responder::read(&psk, &[b"fields"], initiator.message(), &mut [0; 7]).expect("read");
        let (answer, _) = responder.answer(&[b"fields"], b"").expect("answered");
        initiator.finish(&[b"fields"], &answer, &mut []).expect("finished");
        microseconds(begun)
    });
    let least = least.min().expect("some");
    assert!(least <= MOST, "{least} us");
}
