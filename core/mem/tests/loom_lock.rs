//! Models of the lock: one holder at a time, who sees what the last one wrote; nobody sleeps for ever.
#![cfg(loom)]
#![expect(clippy::arc_with_non_send_sync, reason = "loom watches the cells that threads share")]

use cci_mem::barrier::{Pairing, leave};
use cci_mem::lock::{Guarded, Lock, Threading};
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

/// The mutant: a waiter that does not make the holder's processor fence. The holder's look for waiters can pass its own
/// release, and nobody wakes the sleeper.
#[test]
#[should_panic(expected = "deadlock")]
fn a_waiter_without_the_heavy_fence_is_caught() {
    contend(2, 4, Pairing::Symmetric, Pairing::Asymmetric);
}

/// The guard's way in and out is the lock's.
#[test]
fn a_guarded_value_is_one_threads_at_a_time() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let value = Arc::new(Guarded::new(UnsafeCell::new(0), Pairing::Symmetric));
        let add = |value: &Guarded<UnsafeCell<u32>>| {
            let guard = value.enter().expect("for many threads");
            // SAFETY: the guard is the only one; loom checks it.
            guard.with_mut(|at| unsafe { *at += 1 });
        };
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || add(&other));
        add(&value);
        thread.join().expect("the other ends");
        let guard = value.enter().expect("for many threads");
        // SAFETY: as above.
        assert_eq!(guard.with(|at| unsafe { *at }), 2);
    });
}

/// A value handed over to one thread and back while others wait for the lock: never two guards, whoever gets it.
#[test]
fn a_value_handed_over_has_one_guard() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let value = Arc::new(Guarded::new(UnsafeCell::new(0), Pairing::Symmetric));
        let add = |value: &Guarded<UnsafeCell<u32>>, next: Option<Threading>| {
            let Ok(guard) = value.enter() else { return };
            // SAFETY: the guard is the only one; loom checks it.
            guard.with_mut(|at| unsafe { *at += 1 });
            if let Some(threading) = next {
                guard.hand_over(threading);
            }
        };
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || {
            add(&other, None);
            add(&other, Some(Threading::Many));
        });
        add(&value, Some(Threading::One));
        add(&value, None);
        add(&value, Some(Threading::Many));
        thread.join().expect("the other ends");
    });
}
