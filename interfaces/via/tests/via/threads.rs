//! Connects of peers that one thread waits for, while others use the same NIC.

use crate::world::{attributes, device, discriminator};
use cci_conformance::LIMIT;
use cci_via::engine::{Completion, Core, Token};
use cci_via::{Address, Error, Reliability, ViAttributes};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Nothing is posted.
struct Nothing;

impl Token for Nothing {
    fn complete(&mut self, _: &Completion) {}
}

const ROUNDS: usize = 200;
/// A side that asks goes on after a second without an event. A machine under load may be as slow
/// now and then.
const LATE: Duration = Duration::from_millis(900);
const MOST_LATE: usize = ROUNDS / 50;

fn core(transport: &str) -> Core<Nothing> {
    Core::open(&device(transport)).expect("a NIC")
}

fn vi(core: &Core<Nothing>) -> u32 {
    let tag = core.create_tag().expect("a tag");
    core.create_vi(&ViAttributes { tag, ..attributes(Reliability::Delivery) }, None, None).expect("a VI")
}

/// A thread that takes the events of a NIC. A panic beside it ends it too.
struct Waiter<'a> {
    core: &'a Core<Nothing>,
    is_over: AtomicBool,
}

impl<'a> Waiter<'a> {
    fn new(core: &'a Core<Nothing>) -> Self {
        Self { core, is_over: AtomicBool::new(false) }
    }

    fn run(&self) {
        loop {
            let seen = self.core.changes();
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            self.core.wait_change(seen);
        }
    }
}

/// Ends a waiter when it is dropped.
struct EndsWaiter<'a>(&'a Waiter<'a>);

impl Drop for EndsWaiter<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
        self.0.core.nudge();
    }
}

/// An event of a NIC wakes all of its threads that sleep on the descriptors, and one takes it. The
/// connect ends for the others too, and not when its time is over.
fn peers_connect_beside_another_wait(transport: &str, busy_listens: bool) {
    let (busy, quiet) = (core(transport), core(transport));
    let (mine, its) = (vi(&busy), vi(&quiet));
    let waiter = Waiter::new(&busy);
    std::thread::scope(|scope| {
        scope.spawn(|| waiter.run());
        let _ends = EndsWaiter(&waiter);
        let (mut slowest, mut late) = (Duration::ZERO, 0);
        for _ in 0..ROUNDS {
            // The smaller discriminator listens.
            let (small, great) = (discriminator("a"), discriminator("z"));
            let (own, other) = if busy_listens { (small, great) } else { (great, small) };
            let (own, other) = (Address::new(busy.host(), &own), Address::new(quiet.host(), &other));
            let begun = Instant::now();
            busy.peer_request(mine, &own, &other, Some(LIMIT)).expect("addresses");
            quiet.peer_request(its, &other, &own, Some(LIMIT)).expect("addresses");
            std::thread::scope(|scope| {
                scope.spawn(|| quiet.peer_wait(its).expect("a peer"));
                busy.peer_wait(mine).expect("a peer");
            });
            let taken = begun.elapsed();
            slowest = slowest.max(taken);
            late += usize::from(taken > LATE);
            if slowest > LIMIT / 2 {
                break;
            }
            busy.disconnect(mine).expect("a VI");
            quiet.disconnect(its).expect("a VI");
        }
        assert!(slowest < LIMIT / 2 && late <= MOST_LATE, "{transport}: {late} connects were found late, {slowest:?}");
    });
}

#[test]
fn a_peer_that_listens_finds_its_connect_whoever_takes_the_event() {
    for transport in ["sm", "sock"] {
        peers_connect_beside_another_wait(transport, true);
    }
}

#[test]
fn a_peer_that_asks_finds_its_connect_whoever_takes_the_event() {
    for transport in ["sm", "sock"] {
        peers_connect_beside_another_wait(transport, false);
    }
}

#[test]
fn the_wait_of_a_peer_ends_when_another_thread_disconnects() {
    let (server, client) = (core("sm"), core("sm"));
    let own = Address::new(client.host(), b"client");
    for round in 0..10 {
        let (mine, its) = (vi(&server), vi(&client));
        let (at, peer) = (Address::new(server.host(), &discriminator("a")), Address::new(client.host(), b"z"));
        server.peer_request(mine, &at, &peer, Some(LIMIT)).expect("a port");
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| server.peer_wait(mine));
            // The thread that waits refuses a client of the other model, and sleeps again then.
            assert_eq!(client.request(its, &own, &at, Some(LIMIT)).err(), Some(Error::NoMatch));
            server.disconnect(mine).expect("a VI");
            if round % 2 == 1 {
                server.destroy_vi(mine).expect("an idle VI");
            }
            let ended = waiting.join().expect("a thread");
            assert!(matches!(ended, Err(Error::State(_) | Error::Parameter(_))), "{ended:?}");
        });
        assert!(begun.elapsed() < LIMIT / 2, "{:?} until the wait has ended", begun.elapsed());
    }
}

#[test]
#[should_panic(expected = "a scoped thread panicked")]
fn a_panic_ends_the_waiter_beside_it() {
    let core = core("sm");
    let waiter = Waiter::new(&core);
    std::thread::scope(|scope| {
        scope.spawn(|| waiter.run());
        scope.spawn(|| {
            let _ends = EndsWaiter(&waiter);
            std::panic::resume_unwind(Box::new("on purpose"));
        });
    });
}

/// Two threads wait for one VI, and a third one asks whether it is connected.
#[test]
fn several_threads_wait_for_one_connect_of_peers() {
    for listens in [true, false] {
        let (one, other) = (core("sm"), core("sm"));
        let (small, great) = (discriminator("a"), discriminator("z"));
        let (own, remote) = if listens { (small, great) } else { (great, small) };
        let (own, remote) = (Address::new(one.host(), &own), Address::new(other.host(), &remote));
        let (mine, its) = (vi(&one), vi(&other));
        one.peer_request(mine, &own, &remote, Some(LIMIT)).expect("addresses");
        std::thread::scope(|scope| {
            let waiting = [(); 2].map(|()| scope.spawn(|| one.peer_wait(mine)));
            for _ in 0..1_000 {
                assert_eq!(one.peer_done(mine), Ok(None));
            }
            other.peer_request(its, &remote, &own, Some(LIMIT)).expect("addresses");
            let begun = Instant::now();
            other.peer_wait(its).expect("a peer");
            for waits in waiting {
                waits.join().expect("a thread").expect("a peer");
            }
            assert!(begun.elapsed() < LIMIT / 2, "{:?}", begun.elapsed());
        });
    }
}

#[test]
fn the_end_of_one_wait_for_peers_is_that_of_the_other() {
    const SHORT: Duration = Duration::from_millis(200);
    let core = core("sm");
    let (own, remote) = (Address::new(core.host(), &discriminator("a")), Address::new(core.host(), b"z"));
    let mine = vi(&core);
    core.peer_request(mine, &own, &remote, Some(SHORT)).expect("a port");
    std::thread::scope(|scope| {
        let waiting = [(); 2].map(|()| scope.spawn(|| core.peer_wait(mine)));
        assert_eq!(waiting.map(|waits| waits.join().expect("a thread").err()), [Some(Error::Timeout); 2]);
    });
}
