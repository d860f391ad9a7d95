//! Waits, wake-ups and threads.

use crate::world::{KEY, NIC, connect, device, end, post, refused, two, two_with, zeroes};
use cci_mx::{Answer, Code, Endpoint, Error, Match, Options, Unexpected, buffer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
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

/// The partner is there, and stopped: it answers nothing.
#[test]
fn a_wake_up_ends_a_connect_that_waits() {
    for transport in ["sm", "sock", "tcp"] {
        let sides = two(transport);
        let [first, _] = &sides[..] else { panic!("two") };
        std::thread::scope(|scope| {
            let limits = [None, Some(cci_conformance::LIMIT)];
            let asked = limits.map(|limit| scope.spawn(move || first.connect((NIC, 1), KEY, limit)));
            let begun = Instant::now();
            while asked.iter().any(|wait| !wait.is_finished()) && begun.elapsed() < cci_conformance::LIMIT / 4 {
                first.wake().expect("usable");
                std::thread::sleep(Duration::from_millis(1));
            }
            let is_early = asked.iter().all(|wait| wait.is_finished());
            let ends = asked.map(|wait| wait.join().expect("no panic"));
            assert_eq!(ends.map(refused), [Error::Timeout; 2], "{transport}");
            assert!(is_early, "{transport}: woken late");
        });
        assert_eq!(first.pending(), (0, 0));
        // It may be asked again.
        assert_eq!(connect(&sides, 0, 1), sides[1].address());
        crate::world::close(sides);
    }
}

/// Of a thread that another one sees asleep in the system.
fn is_asleep(thread: &std::path::Path) -> bool {
    let stat = std::fs::read_to_string(std::path::Path::new("/proc").join(thread).join("stat")).expect("Linux");
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}

#[test]
fn a_time_out_that_another_thread_sets_ends_a_wait() {
    let sides = two("sm");
    let (receive, _) = post(&sides[0], 4, 1);
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let begun = Instant::now();
        let wait = scope.spawn(|| {
            tell.send(std::fs::read_link("/proc/thread-self").expect("Linux")).expect("a listener");
            sides[0].wait(receive, Some(cci_conformance::LIMIT))
        });
        let thread = told.recv().expect("a name");
        while !is_asleep(&thread) {
            std::thread::yield_now();
        }
        sides[0].set_timeout(receive, Some(Duration::from_millis(1))).expect("a request");
        let status = wait.join().expect("no panic").expect("a request");
        assert_eq!(status.map(|status| status.code), Some(Code::Timeout));
        assert!(begun.elapsed() < cci_conformance::LIMIT / 2, "it has slept on");
    });
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

/// How long a call may take whose limit is a fraction of a second, on a busy machine.
const NO_LONGER: Duration = Duration::from_secs(8);

/// The handler of a program that takes its time for each message.
fn slow(pause: Duration) -> impl Fn(&Unexpected<'_>) -> Answer + Send + Sync + 'static {
    move |_| {
        std::thread::sleep(pause);
        Answer::Finished
    }
}

#[test]
fn a_wait_ends_at_its_limit_though_the_handler_always_has_a_message() {
    const COUNT: u32 = 100;
    let sides = two("sm");
    let to = connect(&sides, 0, 1);
    sides[1].on_unexpected(Some(slow(Duration::from_millis(200)))).expect("usable");
    for _ in 0..COUNT {
        sides[0].forget(sides[0].send(zeroes(4), to, 9, 0).expect("room")).expect("a request");
    }
    let (never, _) = post(&sides[1], 4, 1);
    let begun = Instant::now();
    assert_eq!(sides[1].wait(never, Some(Duration::from_millis(300))), Ok(None));
    assert!(begun.elapsed() < NO_LONGER, "{:?}", begun.elapsed());
    assert!(sides[1].counts().handled < u64::from(COUNT), "nothing is left to flood it");
    sides[1].on_unexpected::<fn(&Unexpected<'_>) -> Answer>(None).expect("usable");
    crate::world::close(sides);
}

#[test]
fn a_wait_ends_at_its_limit_though_the_handler_sends_to_its_own_endpoint() {
    let sides = two("sm");
    let own = connect(&sides, 0, 0);
    let sides: Vec<_> = sides.into_iter().map(Arc::new).collect();
    let endpoint = Arc::downgrade(&sides[0]);
    let handler = move |_: &Unexpected<'_>| {
        std::thread::sleep(Duration::from_millis(1));
        let Some(endpoint) = endpoint.upgrade() else { return Answer::Finished };
        // Not for ever, so that a test that fails ends.
        if endpoint.counts().handled < 20_000 {
            let send = endpoint.send(zeroes(4), own, 9, 0).expect("room");
            endpoint.forget(send).expect("a request");
        }
        Answer::Finished
    };
    sides[0].on_unexpected(Some(handler)).expect("usable");
    let (never, _) = post(&sides[0], 4, 1);
    let begun = Instant::now();
    sides[0].forget(sides[0].send(zeroes(4), own, 9, 0).expect("room")).expect("a request");
    assert_eq!(sides[0].wait(never, Some(Duration::from_millis(300))), Ok(None));
    assert!(begun.elapsed() < NO_LONGER, "{:?}", begun.elapsed());
    sides[0].on_unexpected::<fn(&Unexpected<'_>) -> Answer>(None).expect("usable");
}

/// The thread that makes progress is in the handler, and no other one may make any.
#[test]
fn a_connect_ends_at_its_limit_though_another_thread_is_in_the_handler() {
    let sides = two("sm");
    let to = connect(&sides, 0, 1);
    let (end, ended) = channel::<()>();
    let ended = Mutex::new(ended);
    let handler = move |_: &Unexpected<'_>| {
        let _ = ended.lock().expect("no panic").recv_timeout(2 * NO_LONGER);
        Answer::Finished
    };
    sides[1].on_unexpected(Some(handler)).expect("usable");
    sides[0].forget(sides[0].send(zeroes(4), to, 9, 0).expect("room")).expect("a request");
    std::thread::scope(|scope| {
        let handling = scope.spawn(|| {
            while sides[1].counts().handled == 0 {
                sides[1].progress().expect("usable");
            }
        });
        while !sides[1].is_handling() {
            sides[0].progress().expect("usable");
        }
        let begun = Instant::now();
        assert_eq!(refused(sides[1].connect((NIC, 0), KEY, Some(Duration::from_millis(300)))), Error::Timeout);
        assert!(begun.elapsed() < NO_LONGER, "{:?}", begun.elapsed());
        end.send(()).expect("a handler");
        handling.join().expect("no panic");
    });
    assert_eq!(sides[1].pending(), (0, 0));
    crate::world::close(sides);
}

#[test]
fn a_connect_in_the_handler_ends_without_a_wait() {
    let sides = two("sm");
    let to = connect(&sides, 0, 1);
    let sides: Vec<_> = sides.into_iter().map(Arc::new).collect();
    let (own, (end, ended)) = (Arc::downgrade(&sides[1]), channel());
    let handler = move |_: &Unexpected<'_>| {
        if let Some(own) = own.upgrade() {
            end.send(own.connect((NIC, 0), KEY, None).err()).expect("a test that listens");
        }
        Answer::Finished
    };
    sides[1].on_unexpected(Some(handler)).expect("usable");
    sides[0].forget(sides[0].send(zeroes(4), to, 9, 0).expect("room")).expect("a request");
    let side = Arc::clone(&sides[1]);
    // Not waited for where it hangs.
    std::thread::spawn(move || {
        while side.counts().handled == 0 {
            side.progress().expect("usable");
        }
    });
    assert_eq!(ended.recv_timeout(NO_LONGER), Ok(Some(Error::Timeout)));
}
