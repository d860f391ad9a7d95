//! A hundred endpoints of another process send to one endpoint without pause: none gets much less
//! than another.

use cci::{Device, EventKind};
use cci_conformance::{LIMIT, Peer, alone, device_of, open, sm_device};
use std::io::Write;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");
const SENDERS: usize = 100;
const WINDOW: Duration = Duration::from_millis(100);
/// Windows that count, after those in which the senders begin.
const WINDOWS: usize = 21;
const WARM_UP: usize = 5;
/// Messages of a window that counts. A frame has up to a hundred of one sender, so that fewer show
/// only whose frames came first: the machine did something else.
const LEAST: u32 = 20 * SENDERS as u32;
/// A receiver off its processor for longer loses frames of some over `sock`, and the wait before
/// they come again lasts as long as it was off: that window and the next judge the machine.
const ABSENT: Duration = Duration::from_millis(30);

/// In the median window of 100 ms no sender gets less than half of its share.
fn nobody_gets_less_than_half(device: &Device) {
    let _alone = alone();
    // Before other tests, where that is permitted; the senders inherit it.
    let _ = rustix::process::setpriority_process(None, -20);
    let server = open(device);
    let mut many_peers = Peer::spawn(PROGRAM, "flood-by-many", &[&device.transport, server.uri(), "100"]);
    let mut counts = [0_u32; SENDERS];
    let take = |counts: &mut [u32; SENDERS]| {
        let Some(event) = server.get_event().expect("open") else { return };
        match event.kind() {
            EventKind::ConnectRequest => event.into_request().expect("a request").accept(0).expect("an accept"),
            EventKind::Recv => {
                let message = event.received().expect("a message").to_vec();
                let sender = u64::from_ne_bytes(message.try_into().expect("a number"));
                counts[usize::try_from(sender).expect("a number")] += 1;
            }
            _ => {}
        }
    };
    assert_eq!(many_peers.line_while(|| take(&mut counts)), "connected");
    let begun = Instant::now();
    let mut shares = Vec::new();
    let (mut dropped, mut was_absent) = (0, false);
    while shares.len() < WARM_UP + WINDOWS && begun.elapsed() < LIMIT {
        counts = [0; SENDERS];
        let begun = Instant::now();
        let (mut now, mut longest) = (Duration::ZERO, Duration::ZERO);
        while now < WINDOW {
            (0..100).for_each(|_| take(&mut counts));
            let gap = begun.elapsed() - now;
            (now, longest) = (now + gap, longest.max(gap));
        }
        let is_absent = longest > ABSENT;
        let (least, all) = (counts.iter().min().copied().unwrap_or(0), counts.iter().sum::<u32>());
        if all >= LEAST && !is_absent && !was_absent {
            shares.push(f64::from(least) * SENDERS as f64 / f64::from(all));
        } else {
            dropped += 1;
        }
        was_absent = is_absent;
    }
    let judged = shares.len();
    // Without a standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{}: {judged} windows judged, {dropped} dropped", device.transport);
    assert!(
        judged == WARM_UP + WINDOWS,
        "{judged} windows judged in {:?}; {dropped} dropped: too few messages, or too long off the processor",
        begun.elapsed()
    );
    let mut shares = shares.split_off(WARM_UP);
    shares.sort_by(f64::total_cmp);
    assert!(shares[WINDOWS / 2] >= 0.5, "the least of {SENDERS} senders gets these parts of its share: {shares:.2?}");
}

#[test]
fn nobody_of_a_hundred_senders_over_sm_gets_less_than_half_of_its_share() {
    nobody_gets_less_than_half(&sm_device());
}

#[test]
fn nobody_of_a_hundred_senders_over_tcp_gets_less_than_half_of_its_share() {
    nobody_gets_less_than_half(&device_of("tcp", &[("ip", "127.0.0.1")]));
}

#[test]
fn nobody_of_a_hundred_senders_over_sock_gets_less_than_half_of_its_share() {
    nobody_gets_less_than_half(&device_of("sock", &[("ip", "127.0.0.1")]));
}
