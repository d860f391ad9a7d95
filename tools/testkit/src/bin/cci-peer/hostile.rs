//! Roles that break the protocol.

use crate::say;
use cci_conformance::sm_raw::{self, Packet, RINGS, RawPeer, SLOTS, field, words};
use cci_conformance::{open, sm_device};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Enters the lane as an honest peer would; the sizes are learnt from an endpoint of this process,
/// which is closed again.
fn enter(uri: &str) -> RawPeer {
    let own = open(&sm_device());
    let hello: Packet = sm_raw::learn(&own, 90_000);
    let text = own.uri().to_owned();
    drop(own);
    RawPeer::enter(uri, &hello.with_text(&text), std::thread::yield_now)
}

/// Random packets, with and without descriptors.
fn throw_packet(peer: &RawPeer, random: &mut fastrand::Rng) {
    let mut bytes = vec![0; [1, 1, 2, 159, 160, 161, 4000][random.usize(0..7)]];
    random.fill(&mut bytes);
    if bytes.len() == sm_raw::PACKET && random.bool() {
        // A packet that looks right but for its contents.
        bytes[..8].copy_from_slice(&0x0031_6d73_2d69_6363u64.to_ne_bytes());
        bytes[field::KIND..field::KIND + 4].copy_from_slice(&random.u32(0..8).to_ne_bytes());
        bytes[field::VERSION..field::VERSION + 4].copy_from_slice(&sm_raw::VERSION.to_ne_bytes());
    }
    let descriptors = vec![peer.lane.as_fd(); [0, 0, 1, 2, 50][random.usize(0..5)]];
    // A closed or full socket is what a hostile peer must expect.
    let _ = sm_raw::send_packet(peer.socket.as_fd(), &bytes, &descriptors);
}

/// Writes random bytes all over the lane and random packets to the socket, for a while.
pub(crate) fn scribble(uri: &str, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut peer = enter(uri);
    say("entered");
    for number in 0..random.u32(0..3) {
        peer.request(number);
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(60) && !peer.is_closed() {
        // Most of it where the words and rings are: payload cannot do harm.
        let room = match random.u8(0..8) {
            0 => peer.len,
            1..4 => RINGS[0],
            _ => SLOTS,
        };
        let mut bytes = vec![0; random.usize(1..200)];
        random.fill(&mut bytes);
        let offset = random.u64(0..room - 200);
        peer.write(offset, &bytes);
        match random.u32(0..200) {
            0 if seed.is_multiple_of(2) => throw_packet(&peer, &mut random),
            1..20 => peer.wake(),
            _ => {}
        }
    }
    say("done");
}

/// Publishes frames that look right but for their contents: kinds, connections, slots, lengths,
/// handles at random.
pub(crate) fn forge(uri: &str, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut peer = enter(uri);
    say("entered");
    peer.request(0);
    let begun = Instant::now();
    let small = |random: &mut fastrand::Rng| match random.u8(0..6) {
        0 => u32::MAX,
        1 => random.u32(..),
        2 => random.u32(0..70_000),
        _ => random.u32(0..4),
    };
    let wise = seed.is_multiple_of(2);
    while begun.elapsed() < Duration::from_millis(60) && !peer.is_closed() {
        // Even seeds stay with what need not end the lane, and so get further.
        let kind = if wise { [1, 1, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13][random.usize(0..12)] } else { random.u8(0..16) };
        let len = if kind == 1 { random.u8(0..=56) } else { 0 };
        let len = if wise { len } else { len.wrapping_add(random.u8(..) & random.u8(..)) };
        let word = small(&mut random);
        let body = words(std::array::from_fn::<_, 14, _>(|_| small(&mut random)));
        peer.publish(kind, len, word, &body);
        while peer.next_frame().is_some() {}
        if random.u8(0..20) == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    say("done");
}
