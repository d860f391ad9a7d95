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

/// An event of a NIC wakes all of its threads that sleep on the descriptors, and one takes it. The
/// connect ends for the others too, and not when its time is over.
fn peers_connect_beside_another_wait(transport: &str, busy_listens: bool) {
    let (busy, quiet) = (core(transport), core(transport));
    let (mine, its) = (vi(&busy), vi(&quiet));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                busy.wait_change(busy.changes());
            }
        });
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
        is_over.store(true, Ordering::Relaxed);
        busy.nudge();
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
