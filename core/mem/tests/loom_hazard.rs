//! Models of the hazard word: bytes are not given up while the peer copies them, and who comes
//! later does not copy.
#![cfg(loom)]
#![expect(clippy::arc_with_non_send_sync, reason = "loom watches the cells that threads share")]

use cci_mem::hazard::{is_protected, protect, release, retire};
use cci_mem::sync::{AtomicU64, Ordering};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

/// The registration as its handle names it, and its generations.
const WORD: u64 = 7;
const LIVING: u64 = 1;
const DEAD: u64 = 2;

struct Shared {
    hazard: AtomicU64,
    generation: AtomicU64,
    bytes: UnsafeCell<u32>,
}

type Protect = fn(&AtomicU64, u64, &dyn Fn() -> bool) -> bool;
type Retire = fn(&AtomicU64, u64);

/// A peer copies twice; the owner ends the registration, waits for the copy that it sees, and
/// writes the bytes.
fn copy_and_retire(protect: Protect, retire: Retire) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let shared = Arc::new(Shared {
            hazard: AtomicU64::new(0),
            generation: AtomicU64::new(LIVING),
            bytes: UnsafeCell::new(5),
        });
        let peers = Arc::clone(&shared);
        let peer = thread::spawn(move || {
            for _ in 0..2 {
                let is_living = || peers.generation.load(Ordering::Relaxed) == LIVING;
                if protect(&peers.hazard, WORD, &is_living) {
                    // SAFETY: protected; loom checks that the owner does not write meanwhile.
                    assert_eq!(peers.bytes.with(|bytes| unsafe { *bytes }), 5, "bytes that were given up");
                    release(&peers.hazard);
                }
            }
        });
        retire(&shared.generation, DEAD);
        while is_protected(&shared.hazard, WORD) {
            thread::yield_now();
        }
        // SAFETY: dead, and nobody protects it; loom checks that nobody reads meanwhile.
        shared.bytes.with_mut(|bytes| unsafe { *bytes = 9 });
        peer.join().expect("the peer ends");
    });
}

fn right(hazard: &AtomicU64, word: u64, is_living: &dyn Fn() -> bool) -> bool {
    protect(hazard, word, is_living)
}

#[test]
fn bytes_are_not_given_up_while_a_peer_copies() {
    copy_and_retire(right, retire);
}

/// The mutant: a peer whose look can pass its hazard word.
#[test]
#[should_panic(expected = "Concurrent read and write")]
fn a_peer_without_the_fence_is_caught() {
    let protect = |hazard: &AtomicU64, word, is_living: &dyn Fn() -> bool| {
        hazard.store(word, Ordering::Relaxed);
        let living = is_living();
        if !living {
            release(hazard);
        }
        living
    };
    copy_and_retire(protect, retire);
}

/// The mutant: an owner whose look can pass its mark.
#[test]
#[should_panic(expected = "Concurrent read and write")]
fn an_owner_without_the_fence_is_caught() {
    copy_and_retire(right, |generation, dead| generation.store(dead, Ordering::Relaxed));
}
