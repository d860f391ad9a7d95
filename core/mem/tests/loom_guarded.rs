//! Models of guarded values: one guard at a time, whose holder reads what the last one wrote, with
//! the lock or the bias.
#![cfg(loom)]

use cci_mem::barrier::{Pairing, break_heavy, leave};
use cci_mem::guarded::{Guarded, Sleepers, Threading};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

type Value = Guarded<UnsafeCell<u32>>;

/// Runs a model of this thread and one other. `count`: what they add together, unless either may be
/// refused.
fn model(pairing: Pairing, preemptions: usize, here: fn(&Value), there: fn(&Value), count: Option<u32>) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let value = Arc::new(Guarded::new(UnsafeCell::new(0), pairing));
        let other = Arc::clone(&value);
        let thread = thread::spawn(move || {
            there(&other);
            leave();
        });
        here(&value);
        leave();
        thread.join().expect("the other ends");
        if let Some(count) = count {
            let guard = value.enter().expect("for many threads");
            // SAFETY: the guard is the only one; loom checks it.
            assert_eq!(guard.with(|at| unsafe { *at }), count);
        }
    });
}

/// Adds one, if the value can be entered here.
fn add(value: &Value, next: Option<Threading>) {
    let Ok(guard) = value.enter() else { return };
    // SAFETY: the guard is the only one; loom checks it.
    guard.with_mut(|at| unsafe { *at += 1 });
    if let Some(threading) = next {
        guard.hand_over(threading);
    }
}

/// Enters so often that it earns the bias and then once more, unless the other thread enters in
/// between.
fn enter_biased(value: &Value) {
    (0..3).for_each(|_| add(value, None));
}

fn enter_once(value: &Value) {
    add(value, None);
}

#[test]
fn a_guarded_value_is_one_threads_at_a_time() {
    model(Pairing::Symmetric, 3, enter_once, enter_once, Some(2));
}

#[test]
fn a_bias_is_revoked_before_another_thread_enters() {
    model(Pairing::Asymmetric, 2, enter_biased, enter_once, Some(4));
}

#[test]
fn a_bias_passes_from_thread_to_thread() {
    model(Pairing::Asymmetric, 2, enter_biased, enter_biased, Some(6));
}

/// The mutant: the owner's processor does not fence. Its load of the owner word can pass its own
/// store, and both threads enter. Or its load of `revoking` passes its store, and nobody wakes the
/// other thread.
#[test]
#[should_panic]
fn a_revocation_without_the_heavy_fence_is_caught() {
    let enter_unfenced = |value: &Value| {
        break_heavy();
        enter_biased(value);
    };
    model(Pairing::Asymmetric, 3, enter_unfenced, enter_once, None);
}

/// A value handed over to one thread and back while others wait for the lock: never two guards,
/// whoever gets it.
#[test]
fn a_value_handed_over_has_one_guard() {
    let here = |value: &Value| {
        add(value, Some(Threading::One));
        add(value, None);
        add(value, Some(Threading::Many));
    };
    let there = |value: &Value| {
        add(value, None);
        add(value, Some(Threading::Many));
    };
    model(Pairing::Symmetric, 3, here, there, None);
}

/// Ends the use of the value, whoever has it.
fn seize(value: &Value) {
    let Some(guard) = value.seize(|_| true) else { return };
    // SAFETY: the guard is the only one; loom checks it.
    guard.with_mut(|at| unsafe { *at += 1 });
    guard.hand_over(Threading::Many);
}

/// A value of one thread is seized while that thread uses it and hands it over: never two guards,
/// and nobody waits for ever.
#[test]
fn a_seized_value_has_one_guard() {
    let here = |value: &Value| {
        add(value, Some(Threading::One));
        (0..2).for_each(|_| add(value, None));
    };
    model(Pairing::Asymmetric, 2, here, seize, Some(4));
    let closes = |value: &Value| {
        add(value, Some(Threading::One));
        add(value, Some(Threading::Many));
    };
    model(Pairing::Asymmetric, 2, closes, seize, Some(3));
}

/// A value that is not the one meant stays its owner's.
#[test]
fn a_value_that_is_not_meant_stays_its_owners() {
    let here = |value: &Value| {
        add(value, Some(Threading::One));
        add(value, None);
        assert!(value.enter().is_ok(), "its own thread is refused");
    };
    model(Pairing::Asymmetric, 2, here, |value| assert!(value.seize(|_| false).is_none()), None);
}

/// The same by a biased owner, whose bias is revoked meanwhile.
#[test]
fn a_biased_value_handed_over_has_one_guard() {
    let here = |value: &Value| {
        (0..2).for_each(|_| add(value, None));
        add(value, Some(Threading::One));
    };
    model(Pairing::Asymmetric, 2, here, enter_once, None);
}

/// One thread sleeps until the other one has changed the value.
fn sleep_until_changed(pairing: Pairing, sleep: fn(&Value, &Sleepers)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let shared = Arc::new((Guarded::new(UnsafeCell::new(0), pairing), Sleepers::new()));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let guard = other.0.enter().expect("for many threads");
            // SAFETY: the guard is the only one; loom checks it.
            guard.with_mut(|at| unsafe { *at = 1 });
            other.1.wake_all();
            drop(guard);
            leave();
        });
        sleep(&shared.0, &shared.1);
        leave();
        thread.join().expect("the other ends");
    });
}

fn is_changed(guard: &UnsafeCell<u32>) -> bool {
    // SAFETY: the caller has the guard, which is the only one; loom checks it.
    guard.with(|at| unsafe { *at }) == 1
}

#[test]
fn no_sleeper_misses_a_change() {
    for pairing in [Pairing::Symmetric, Pairing::Asymmetric] {
        sleep_until_changed(pairing, |value, sleepers| {
            let mut guard = value.enter().expect("for many threads");
            while !is_changed(&guard) {
                sleepers.sleep(guard, None);
                guard = value.enter().expect("for many threads");
            }
        });
    }
}

/// The mutant: the count of wake-ups is read once the guard is dropped.
#[test]
#[should_panic(expected = "deadlock")]
fn a_sleep_that_begins_without_the_guard_is_caught() {
    sleep_until_changed(Pairing::Symmetric, |value, sleepers| {
        while !is_changed(&value.enter().expect("for many threads")) {
            sleepers.sleep((), None);
        }
    });
}
