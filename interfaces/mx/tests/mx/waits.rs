//! Waits, wake-ups and threads.

use crate::world::{KEY, NIC, connect, device, end, post, refused, two, two_with, zeroes};
use cci_mx::{Code, Endpoint, Error, Match, Options, buffer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[test]
fn a_wait_ends_by_its_request_by_its_time_and_by_a_wake_up() {
    for transport in ["sm", "sim", "sock", "tcp"] {
        let sides = two_with(&device(transport), &Options::new());
        let [first, second] = &sides[..] else { panic!("two") };
        std::thread::scope(|scope| {
            // By what another side sends.
            let (receive, _) = post(second, 4, 1);
            let waiting = scope.spawn(move || second.wait(receive, None));
            let to = first.connect((NIC, 1), KEY, Some(cci_conformance::LIMIT)).expect("it answers");
            first.forget(first.send(zeroes(4), to, 1, 0).expect("room")).expect("a request");
            while !waiting.is_finished() {
                first.progress().expect("usable");
            }
            let status = waiting.join().expect("no panic").expect("usable");
            assert_eq!(status.map(|status| status.code), Some(Code::Success), "{transport}");
            // By the time.
            let (never, _) = post(second, 4, 2);
            for limit in [Duration::ZERO, Duration::from_millis(20)] {
                let begun = Instant::now();
                assert_eq!(second.wait(never, Some(limit)), Ok(None));
                assert!(begun.elapsed() >= limit);
            }
            // By a wake-up, all at once.
            let waits = [
                scope.spawn(move || second.wait(never, None).map(|found| found.is_none())),
                scope.spawn(move || second.wait_any(Match::ANY, None).map(|found| found.is_none())),
                scope.spawn(move || second.peek(None).map(|found| found.is_none())),
                scope.spawn(move || second.probe(Match::ANY, None).map(|found| found.is_none())),
            ];
            while waits.iter().any(|wait| !wait.is_finished()) {
                second.wake().expect("usable");
                std::thread::yield_now();
            }
            waits.into_iter().for_each(|wait| assert_eq!(wait.join().expect("no panic"), Ok(true)));
            // By the end of the endpoint.
            let wait = scope.spawn(move || second.wait(never, None));
            while second.close().is_ok() || !wait.is_finished() {
                std::thread::yield_now();
            }
            assert_eq!(refused(wait.join().expect("no panic")), Error::BadEndpoint);
        });
        crate::world::close(sides);
    }
}

/// Each thread has its own bits; each message ends at its thread, in order.
#[test]
fn threads_share_an_endpoint() {
    const THREADS: u64 = 3;
    const ROUNDS: u32 = 400;
    let sides = two("sm");
    let to = connect(&sides, 0, 1);
    let done = AtomicUsize::new(0);
    let run = |thread: u64, sides: &[Endpoint]| {
        for round in 0..ROUNDS {
            let (receive, memory) = post(&sides[1], 4, thread);
            let bytes = round.to_le_bytes().to_vec();
            let send = sides[0].send_sync(buffer(bytes.clone()), to, thread, 0).expect("room");
            let status = loop {
                if let Some(status) = sides[1].wait(receive, Some(Duration::from_millis(1))).expect("a request") {
                    break status;
                }
            };
            assert_eq!((status.code, crate::world::bytes(&memory)), (Code::Success, bytes));
            while sides[0].test(send).expect("a request").is_none() {
                sides[1].progress().expect("usable");
            }
        }
        done.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let (run, sides) = (&run, &sides[..]);
        (0..THREADS).for_each(|thread| drop(scope.spawn(move || run(thread, sides))));
    });
    assert_eq!(done.load(Ordering::Relaxed), THREADS as usize);
    assert_eq!(sides.iter().map(Endpoint::pending).collect::<Vec<_>>(), [(0, 0); 2]);
}

/// A connect of one thread is not what another one gets that waits for any request.
#[test]
fn a_connect_that_is_waited_for_is_nobody_elses() {
    let sides = two("sm");
    let [first, second] = &sides[..] else { panic!("two") };
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let others = scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(first.test_any(Match::ANY), Ok(None));
                assert_eq!(first.peek(Some(Duration::ZERO)), Ok(None));
                second.progress().expect("usable");
            }
        });
        for _ in 0..50 {
            assert_eq!(first.connect((NIC, 1), KEY, Some(cci_conformance::LIMIT)), Ok(second.address()));
            assert_eq!(first.connect((NIC, 0), KEY, Some(cci_conformance::LIMIT)), Ok(first.address()));
        }
        is_over.store(true, Ordering::Relaxed);
        others.join().expect("no panic");
    });
}

#[test]
fn a_context_is_found_while_a_request_is_there() {
    let sides = two("sm");
    let (receive, _) = post(&sides[0], 1, 7);
    assert_eq!(sides[0].context(receive), Ok(7));
    let to = connect(&sides, 1, 0);
    sides[1].send(zeroes(1), to, 7, 0).expect("room");
    end(&sides, 0, receive);
    assert_eq!(sides[0].context(receive), Err(Error::BadRequest));
}
