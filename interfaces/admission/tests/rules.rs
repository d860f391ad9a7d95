//! Each rule of the admission, and all of them against random arrivals.

use cci_admission::{Admission, Arrival, Failed, GRACE, GRACE_OF_BEGUN, Limits, Origin, PAUSE};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
const FIRST: Origin = Origin::V4(1);
const OTHER: Origin = Origin::V4(2);

fn admission(places: usize) -> Admission<u32> {
    Admission::new(Limits { places, patience: PATIENCE, bytes: 100 })
}

/// An admission whose places one origin has taken, each by the number of its arrival.
fn full(places: usize, origin: Origin) -> Admission<u32> {
    let mut admission = admission(places);
    for name in 0..places as u32 {
        assert_eq!(admission.handle_arrival(Duration::ZERO, name, origin), Arrival::Admitted);
    }
    admission
}

fn no_descriptor() -> Error {
    const EMFILE: i32 = 24;
    Error::from_raw_os_error(EMFILE)
}

#[test]
fn a_newcomer_has_the_place_of_the_oldest_once_its_grace_is_over() {
    let mut admission = full(4, Origin::Here);
    let just_before = GRACE - Duration::from_nanos(1);
    assert_eq!(admission.handle_arrival(just_before, 9, Origin::Here), Arrival::Refused);
    assert_eq!(admission.handle_arrival(GRACE, 9, Origin::Here), Arrival::Replaces(0));
    assert!(admission.has(&9) && !admission.has(&0));
    assert_eq!(admission.len(), 4);
}

#[test]
fn an_origin_that_has_more_puts_out_nobody_who_has_fewer() {
    for (loud, quiet) in [(FIRST, OTHER), (Origin::Local(1), Origin::Local(2)), (Origin::Here, OTHER)] {
        let mut admission = admission(3);
        assert_eq!(admission.handle_arrival(Duration::ZERO, 0, quiet), Arrival::Admitted);
        let later = GRACE / 2;
        assert_eq!(admission.handle_arrival(later, 1, loud), Arrival::Admitted);
        assert_eq!(admission.handle_arrival(later, 2, loud), Arrival::Admitted);
        assert_eq!(admission.handle_arrival(GRACE, 3, loud), Arrival::Refused, "only the quiet one's grace is over");
        assert_eq!(admission.handle_arrival(later + GRACE, 3, loud), Arrival::Replaces(1), "its own oldest");
        assert!(admission.has(&0));
    }
}

#[test]
fn a_stranger_that_has_begun_its_request_keeps_its_place_for_a_slow_round_trip() {
    let slow = Duration::from_millis(150);
    for origin in [Origin::Here, FIRST] {
        let mut admission = full(2, origin);
        assert!(admission.handle_bytes(&0, 1), "the oldest has begun");
        assert_eq!(admission.handle_arrival(slow, 8, origin), Arrival::Replaces(1), "the silent one goes first");
        assert!(admission.handle_bytes(&8, 1));
        let just_before = GRACE_OF_BEGUN - Duration::from_nanos(1);
        assert_eq!(admission.handle_arrival(just_before, 9, origin), Arrival::Replaces(8), "half of the places");
        assert!(admission.has(&0));
        assert_eq!(admission.handle_arrival(GRACE_OF_BEGUN, 10, origin), Arrival::Replaces(0), "not for ever");
    }
    let mut admission = full(3, FIRST);
    assert!((0..3).all(|name| admission.handle_bytes(&name, 1)));
    assert_eq!(admission.handle_arrival(slow, 9, OTHER), Arrival::Replaces(0), "above its share");
}

#[test]
fn strangers_that_send_a_byte_each_keep_newcomers_out_no_longer_than_silent_ones() {
    for origin in [Origin::Here, FIRST] {
        let mut admission = full(8, origin);
        assert!((0..8).all(|name| admission.handle_bytes(&name, 1)));
        // Each newcomer that finds no place comes again, and so do those that were put out.
        let mut longest = Duration::ZERO;
        let (mut since, mut now) = (Duration::ZERO, Duration::ZERO);
        for name in 8..200 {
            now += Duration::from_millis(20);
            match admission.handle_arrival(now, name, origin) {
                Arrival::Refused => {}
                Arrival::Admitted | Arrival::Replaces(_) => {
                    longest = longest.max(now - since);
                    since = now;
                    assert!(admission.handle_bytes(&name, 1));
                }
            }
        }
        assert!(longest <= GRACE, "{longest:?}");
    }
}

#[test]
fn an_address_above_its_share_makes_room_for_another_at_once() {
    let mut admission = full(4, FIRST);
    assert_eq!(admission.handle_arrival(Duration::ZERO, 9, FIRST), Arrival::Refused, "its own grace");
    assert_eq!(admission.handle_arrival(Duration::ZERO, 10, OTHER), Arrival::Replaces(0));
    assert_eq!(admission.handle_arrival(Duration::ZERO, 11, OTHER), Arrival::Replaces(1));
    assert_eq!(admission.handle_arrival(Duration::ZERO, 12, OTHER), Arrival::Refused, "both have two");
}

#[test]
fn clients_of_this_host_keep_their_grace_whoever_comes() {
    let mut admission = full(4, Origin::Here);
    assert_eq!(admission.handle_arrival(Duration::ZERO, 9, OTHER), Arrival::Refused);
    assert_eq!(admission.handle_arrival(GRACE, 9, OTHER), Arrival::Replaces(0));
}

#[test]
fn the_address_with_most_strangers_makes_room_before_an_older_one() {
    let mut admission = admission(3);
    for (name, origin) in [(0, FIRST), (1, OTHER), (2, OTHER)] {
        assert_eq!(admission.handle_arrival(Duration::ZERO, name, origin), Arrival::Admitted);
    }
    assert_eq!(admission.handle_arrival(GRACE, 3, Origin::V4(3)), Arrival::Replaces(1));
    assert_eq!(admission.handle_arrival(GRACE, 4, Origin::V4(4)), Arrival::Replaces(0), "then the oldest");
}

#[test]
fn time_ends_at_its_limit_and_not_before() {
    let mut admission = full(2, FIRST);
    assert_eq!(admission.poll_timeout(), Some(PATIENCE));
    assert_eq!(admission.poll_late(PATIENCE - Duration::from_nanos(1)), None);
    assert_eq!(admission.poll_late(PATIENCE), Some(0));
    admission.remove(&1);
    assert_eq!((admission.poll_late(PATIENCE), admission.poll_timeout()), (None, None));
}

#[test]
fn bytes_of_strangers_are_limited_and_those_of_others_are_not() {
    let mut admission = full(1, FIRST);
    assert!(admission.handle_bytes(&0, 100));
    assert!(!admission.handle_bytes(&0, 1) && !admission.handle_bytes(&0, usize::MAX));
    assert!(admission.handle_bytes(&7, usize::MAX), "no stranger");
}

#[test]
fn without_a_descriptor_strangers_make_room_and_then_accepting_pauses() {
    let mut admission = full(1, FIRST);
    assert_eq!(admission.handle_failed_accept(GRACE, &no_descriptor()), Failed::Close(0));
    assert!(admission.may_accept(GRACE));
    assert_eq!(admission.handle_failed_accept(GRACE, &no_descriptor()), Failed::Later);
    assert!(!admission.may_accept(GRACE) && !admission.may_accept(GRACE + PAUSE - Duration::from_nanos(1)));
    assert_eq!(admission.poll_timeout(), Some(GRACE + PAUSE));
    assert!(admission.may_accept(GRACE + PAUSE));
    assert_eq!(admission.poll_timeout(), None);
}

#[test]
fn an_accept_that_fails_otherwise_pauses_nothing() {
    let mut admission = full(1, FIRST);
    let mut failed = |kind: ErrorKind| admission.handle_failed_accept(GRACE, &kind.into());
    assert_eq!(failed(ErrorKind::WouldBlock), Failed::Later);
    assert_eq!(failed(ErrorKind::Interrupted), Failed::Again);
    assert_eq!(failed(ErrorKind::ConnectionAborted), Failed::Again);
    assert!(admission.may_accept(GRACE));
}

/// What the oracle keeps of a stranger.
type Known = (Origin, Duration);

/// Whether the rules allow that this stranger makes room for a newcomer of that origin.
fn may_go(of: &Known, newcomer: Origin, now: Duration, all: &BTreeMap<u32, Known>) -> bool {
    let count = |origin| all.values().filter(|(other, _)| *other == origin).count();
    let is_old = now >= of.1 + GRACE;
    count(of.0) >= count(newcomer) && (is_old || of.0 != Origin::Here && count(of.0) >= count(newcomer) + 2)
}

#[test]
fn random_arrivals_keep_the_rules() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let places = random.usize(1..12);
        let (mut admission, mut all, mut now) = (admission(places), BTreeMap::<u32, Known>::new(), Duration::ZERO);
        for name in 0..400_u32 {
            now += Duration::from_millis(random.u64(0..40));
            let origin = [Origin::Here, FIRST, OTHER, Origin::V6(3)][random.usize(0..4)];
            match admission.handle_arrival(now, name, origin) {
                Arrival::Admitted => assert!(all.len() < places, "seed {seed}"),
                Arrival::Replaces(out) => {
                    assert!(all.len() == places && may_go(&all[&out], origin, now, &all), "seed {seed}: {out}");
                    all.remove(&out);
                }
                Arrival::Refused => {
                    let nobody = all.values().all(|of| !may_go(of, origin, now, &all));
                    assert!(all.len() == places && nobody, "seed {seed}");
                    continue;
                }
            }
            all.insert(name, (origin, now));
            if random.bool() {
                let done = *all.keys().nth(random.usize(0..all.len())).expect("one of them");
                admission.remove(&done);
                all.remove(&done);
            }
            while let Some(late) = admission.poll_late(now) {
                assert!(now >= all.remove(&late).expect("a stranger").1 + PATIENCE, "seed {seed}");
            }
            assert!(admission.len() == all.len() && all.keys().all(|name| admission.has(name)), "seed {seed}");
        }
    }
}

/// Strangers take every place that they can get; the client comes among them, and again.
#[test]
fn a_client_that_answers_within_the_grace_gets_in_and_is_never_put_out() {
    for seed in 0..50 {
        let (mut random, mut admission, mut now) = (fastrand::Rng::with_seed(seed), admission(16), Duration::ZERO);
        let (client, mut came, mut is_served) = (u32::MAX, None, false);
        for round in 0..400 {
            now += GRACE / 8;
            is_served |= came.is_some_and(|since| now + GRACE / 8 >= since + GRACE);
            let turn = random.u32(0..100);
            for stranger in 0..100 {
                if stranger == turn && came.is_none() {
                    let arrival = admission.handle_arrival(now, client, Origin::Here);
                    came = (arrival != Arrival::Refused).then_some(now);
                }
                let arrival = admission.handle_arrival(now, round * 100 + stranger, Origin::Here);
                assert!(is_served || arrival != Arrival::Replaces(client), "seed {seed}");
            }
        }
        assert!(is_served, "seed {seed}");
    }
}
