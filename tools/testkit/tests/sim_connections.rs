//! Very many connections of one engine: what they take, and what polling costs then. In virtual
//! time; the clients are frames.

use cci_instruments::{CountingAllocator, bytes_in_use};
use cci_testkit::simulation::many_peers::{FORGOTTEN, ManyPeers};
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Memory is counted for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Connections of the large engine, and with them as many as a debug build opens in reasonable
/// time.
const MANY: u32 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
/// What they may take, bytes for each: 256 MiB for a million.
const SHARE: usize = 268;

#[test]
fn many_connections_take_little() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = bytes_in_use();
    let mut many_peers = ManyPeers::new();
    let empty = bytes_in_use() - before;
    many_peers.admit(0..MANY).expect("every client is let in");
    assert_eq!(many_peers.open(), MANY);
    let full = bytes_in_use() - before;
    many_peers.pass(FORGOTTEN);
    let idle = bytes_in_use() - before;
    let share = |bytes: usize| (bytes - empty) / MANY as usize;
    assert!(
        share(idle) <= SHARE,
        "{} bytes for each of {MANY} connections, {} while they came",
        share(idle),
        share(full)
    );
    assert!(share(full) <= SHARE, "{} bytes for each of {MANY} connections while they came", share(full));
    assert!(share(idle) >= 64, "{} bytes cannot be a connection: nothing was counted", share(idle));
}

/// The shortest of many blocks of polls, and which of two engines it is measured on in turn.
fn polls(many_peers: &mut ManyPeers) -> Duration {
    let begun = Instant::now();
    for _ in 0..2000 {
        black_box(many_peers.poll());
    }
    begun.elapsed()
}

#[test]
fn polling_costs_the_same_whatever_the_number_of_idle_connections() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut one, mut many) = (ManyPeers::new(), ManyPeers::new());
    one.admit(0..1).expect("every client is let in");
    many.admit(0..100_000).expect("every client is let in");
    one.pass(FORGOTTEN);
    many.pass(FORGOTTEN);
    let (mut least, mut most) = (Duration::MAX, Duration::MAX);
    for _ in 0..200 {
        least = least.min(polls(&mut one));
        most = most.min(polls(&mut many));
    }
    // A cost that grew with connections would show as a factor of thousands.
    assert!(most < 3 * least, "{most:?} with 100,000 connections, {least:?} with one");
}
