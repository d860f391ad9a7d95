//! BLOCKING calls of `sm` sleep while they wait, also while events wait for a program that does not
//! take them meanwhile.

use cci::__binding::{Contract, Flags};
use cci::{Attribute, BlockingError, Connection, ConnectionOption, Endpoint, EventKind, Failure};
use cci_conformance::process::{descriptors, thread_time};
use cci_conformance::{LIMIT, World, alone, drain, open, pattern, sm_device};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// Sends with events until one has to wait, and leaves the events in the queue.
fn fill(endpoint: &Endpoint, connection: Connection) -> u64 {
    let mut sent = 0;
    while endpoint.report(connection).expect("open").open == 0 {
        endpoint.send(connection, &pattern(sent, 40), sent).expect("room to wait");
        sent += 1;
    }
    sent
}

/// Without the fix a call spins: the handle that it sleeps on stays readable for the events.
#[test]
fn blocking_send_sleeps_though_events_wait() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let timeout = Duration::from_millis(700);
    let sent = fill(&a, connection);
    a.set_option(connection, ConnectionOption::SendTimeout, Duration::from_millis(700)).expect("an option");
    let (begun, used) = (Instant::now(), thread_time());
    assert_eq!(
        a.send_flags(connection, b"blocked", 0, Flags::BLOCKING),
        Err(BlockingError::Failed(Failure::TimedOut)),
        "nobody polls B"
    );
    let (elapsed, used) = (begun.elapsed(), thread_time() - used);
    assert!(elapsed >= timeout, "early: {elapsed:?}");
    assert!(used < elapsed / 5, "{used:?} of processor time in {elapsed:?}");
    // The events were not touched meanwhile.
    let world = World::new([&a]);
    for context in 0..sent {
        assert_eq!(world.next(0, EventKind::Send).context(), context);
    }
    assert_eq!(drain(&a), 0);
}

/// Room wakes such a sleeper at once, in most rounds before a bare sleep that begins with the room
/// ends. The bare sleep is shorter than the 100 ms after which the sender looks by itself, and as
/// late as the sender on a loaded machine.
#[test]
fn room_wakes_a_blocking_send_though_events_wait() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let (mut quick, rounds) = (0, 20);
    let before = descriptors();
    let mut after_one = None;
    for _ in 0..rounds {
        let sent = fill(&a, connection);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let used = thread_time();
                let outcome = a.send_flags(connection, b"blocked", 0, Flags::BLOCKING);
                done.store(true, Ordering::Release);
                (outcome, thread_time() - used)
            });
            // Long enough for the sender to sleep; if it does not, the round proves nothing, and
            // fails nothing.
            std::thread::sleep(Duration::from_millis(20));
            let bare = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(60));
                done.load(Ordering::Acquire)
            });
            let begun = Instant::now();
            while !done.load(Ordering::Acquire) {
                assert!(begun.elapsed() < LIMIT, "the sender is not woken");
                drain(&b);
            }
            quick += u32::from(bare.join().expect("the bare sleeper"));
            assert_eq!(sender.join().expect("the sender").0, Ok(()));
        });
        let world = World::new([&a, &b]);
        for context in 0..sent {
            assert_eq!(world.next(0, EventKind::Send).context(), context);
        }
        drop(world);
        drain(&b);
        after_one.get_or_insert_with(descriptors);
    }
    assert!(quick * 2 > rounds, "woken by room in {quick} rounds of {rounds} only");
    // The endpoint keeps an epoll descriptor with an eventfd, and the sleeper's waker.
    assert!(descriptors() <= before + 3, "descriptors are left");
    assert!(after_one.is_some_and(|one| descriptors() <= one), "descriptors are left by every wait");
}

/// The death of the lane that the operation waits for wakes it as well.
#[test]
fn close_of_the_peer_ends_a_blocking_send_though_events_wait() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    fill(&a, connection);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| a.send_flags(connection, b"blocked", 0, Flags::BLOCKING));
        std::thread::sleep(Duration::from_millis(20));
        // A close takes what is published for delivered, and no more.
        b.close().expect("a close");
        assert_eq!(sender.join().expect("the sender"), Err(BlockingError::Failed(Failure::Disconnected)));
    });
}
