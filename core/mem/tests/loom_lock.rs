//! Models of the lock: one holder at a time, who sees what the last one wrote; nobody sleeps for
//! ever.
#![cfg(loom)]
#![expect(clippy::arc_with_non_send_sync, reason = "loom watches the cells that threads share")]

use cci_mem::barrier::{Pairing, leave};
use cci_mem::lock::Lock;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

struct Counter {
    lock: Lock,
    value: UnsafeCell<u32>,
}

impl Counter {
    /// Adds one under the lock. The two pairings are the same but in mutants.
    fn add(&self, acquire: Pairing, release: Pairing) {
        self.lock.acquire(acquire);
        // SAFETY: the lock is held; loom checks that this excludes everybody else.
        self.value.with_mut(|at| unsafe { *at += 1 });
        self.lock.release(release);
    }
}

fn contend(threads: u32, preemptions: usize, acquire: Pairing, release: Pairing) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let counter = Arc::new(Counter { lock: Lock::new(), value: UnsafeCell::new(0) });
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let counter = Arc::clone(&counter);
                thread::spawn(move || {
                    counter.add(acquire, release);
                    leave();
                })
            })
            .collect();
        counter.add(acquire, release);
        leave();
        for other in others {
            other.join().expect("the other ends");
        }
        // SAFETY: the other threads have ended.
        assert_eq!(counter.value.with(|at| unsafe { *at }), threads);
    });
}

#[test]
fn two_threads_with_full_fences() {
    contend(2, 4, Pairing::Symmetric, Pairing::Symmetric);
}

#[test]
fn two_threads_with_the_waiter_paying() {
    contend(2, 4, Pairing::Asymmetric, Pairing::Asymmetric);
}

/// One wake-up per release reaches both sleepers in the end.
#[test]
fn three_threads_with_full_fences() {
    contend(3, 2, Pairing::Symmetric, Pairing::Symmetric);
}

/// One thread acquires the lock again at once, and hands it off when the other asks for it.
#[test]
fn one_that_comes_again_at_once() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let counter = Arc::new(Counter { lock: Lock::new(), value: UnsafeCell::new(0) });
        let add = |counter: &Counter| counter.add(Pairing::Symmetric, Pairing::Symmetric);
        let other = Arc::clone(&counter);
        let other = thread::spawn(move || {
            add(&other);
            leave();
        });
        (0..3).for_each(|_| add(&counter));
        leave();
        other.join().expect("the other ends");
        // SAFETY: the other thread has ended.
        assert_eq!(counter.value.with(|at| unsafe { *at }), 4);
    });
}

/// The mutant: a waiter that does not make the holder's processor fence. The holder's check for
/// waiters can pass its own release, and nobody wakes the sleeper.
#[test]
#[should_panic(expected = "deadlock")]
fn a_waiter_without_the_heavy_fence_is_caught() {
    contend(2, 4, Pairing::Symmetric, Pairing::Asymmetric);
}
