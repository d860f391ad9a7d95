//! Values that the owner takes back: a mirror stores the same ones again, and they arrive.

use crate::owner::{Owner, SIZE};
use crate::world::{bytes, connect, host, published, seen, two, until, until_is};
use cci_conformance::LIMIT;
use cci_sci::{Access, SequenceStatus};
use rustix::process::{Signal, kill_process};
use std::time::{Duration, Instant};

/// Both sides store one value, poll for it and take it back, and nobody makes a call.
#[test]
fn a_ping_pong_of_one_value_ends() {
    for protect in [true, false] {
        let hosts = two(protect);
        let segments = [0, 1].map(|at| published(&hosts[at], 4096));
        let own = [0, 1].map(|at| seen(&segments[at]));
        let far = [0, 1].map(|at| connect(&hosts[at], &hosts[1 - at], &segments[1 - at]));
        for round in 0..2_000_u32 {
            // Words that share bytes with those before: one arrives whole.
            let value = if round % 2 == 0 { 0x154 } else { 0x1aa };
            for at in [0, 1] {
                far[at].1.store(64, value).expect("inside");
                until(&format!("round {round} at {at}, protect {protect}"), || own[1 - at].load(64) != Ok(0_u32));
                assert_eq!(own[1 - at].load(64), Ok(value), "round {round}");
                own[1 - at].store(64, 0_u32).expect("inside");
            }
        }
    }
}

/// Both sides run at once, as programs do.
#[test]
fn programs_that_play_ping_pong_end() {
    let hosts = two(true);
    let segments = [0, 1].map(|at| published(&hosts[at], 70_000));
    std::thread::scope(|scope| {
        for at in [0, 1] {
            let (hosts, segments) = (&hosts, &segments);
            scope.spawn(move || {
                let own = seen(&segments[at]);
                let (_connection, far) = connect(&hosts[at], &hosts[1 - at], &segments[1 - at]);
                let mut random = fastrand::Rng::with_seed(at as u64);
                for round in 0..3_000_u32 {
                    let place = round as usize % 3 * 4;
                    if at == 1 {
                        until(&format!("ping {round}"), || own.load(place) == Ok(7_u32));
                        own.store(place, 0_u32).expect("inside");
                    }
                    if random.u8(..50) == 0 {
                        // Until its pages are protected.
                        std::thread::sleep(Duration::from_micros(random.u64(500..3000)));
                    }
                    far.store(place, 7_u32).expect("inside");
                    if at == 0 {
                        until(&format!("pong {round}"), || own.load(place) == Ok(7_u32));
                        own.store(place, 0_u32).expect("inside");
                    }
                }
            });
        }
    });
}

/// Long enough for RMA, and for blocks that are asked for ahead: the owner clears all of it.
#[test]
fn a_message_that_the_owner_clears_arrives_again() {
    for (len, rounds) in [(100_000, 100), (1_000_000, 10)] {
        clear_again(len, rounds);
    }
}

fn clear_again(len: usize, rounds: u32) {
    for protect in [true, false] {
        let hosts = two(protect);
        let segments = [0, 1].map(|at| published(&hosts[at], len));
        let own = [0, 1].map(|at| seen(&segments[at]));
        let far = [0, 1].map(|at| connect(&hosts[at], &hosts[1 - at], &segments[1 - at]));
        let message: Vec<_> = (0..len).map(|at| (at % 251) as u8 | 1).collect();
        for round in 0..rounds {
            for at in [0, 1] {
                far[at].1.write(0, &message).expect("inside");
                // The last line arrives last.
                until(&format!("round {round}"), || own[1 - at].load(len - 1) == Ok(message[len - 1]));
                until(&format!("all of round {round}"), || bytes(&own[1 - at]) == message);
                own[1 - at].write(0, &vec![0; len]).expect("inside");
            }
        }
    }
}

/// A first store waits a second at most, and no later one waits while the owner is stopped.
#[test]
fn a_first_store_waits_a_second_for_an_owner_that_is_stopped() {
    let own = host(8);
    let (mut owner, _connection, window, sequence) = Owner::mapped(&own);
    window.store(0, 1_u64).expect("inside");
    assert_eq!(sequence.check(), SequenceStatus::Ok);
    std::thread::sleep(Duration::from_millis(5));
    owner.stop();
    let begun = Instant::now();
    (0..SIZE).step_by(4096).for_each(|at| window.store(at, 9_u64).expect("inside"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    kill_process(owner.pid, Signal::CONT).expect("a child");
    until_is(&sequence, SequenceStatus::Ok);
    assert_eq!(owner.tell("word"), "Some(9)");
}

/// A store that waits goes on once the owner is found to be gone.
#[test]
fn a_first_store_goes_on_though_the_owner_is_killed() {
    let own = host(8);
    let (mut owner, connection, window, sequence) = Owner::mapped(&own);
    std::thread::sleep(Duration::from_millis(5));
    owner.kill();
    let begun = Instant::now();
    (0..SIZE / 8).step_by(4096).for_each(|word| window.store(word * 8, 5_u64).expect("inside"));
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    until_is(&sequence, SequenceStatus::NotRetriable);
    assert!(connection.map(0..8, Access::Read).is_err());
}
