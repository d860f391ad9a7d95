//! Models of the announcement of a sleep: a sleeper is woken, or its sleep needs a limit.
#![cfg(loom)]

use cci_mem::announcement::{announce, must_wake, needs_limit, withdraw};
use cci_mem::barrier::{Pairing, leave};
use cci_mem::sync::{AtomicU32, AtomicU64, Ordering, spin};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;

/// The endpoint that the sleeper sleeps in.
#[derive(Default)]
struct Endpoint {
    messages: Mutex<u32>,
    come: Condvar,
}

impl Endpoint {
    fn send(&self) {
        *self.messages.lock().expect("no panic") += 1;
        self.come.notify_one();
    }

    /// Sleeps until a message has come, for ever unless the sleep has a limit, and takes it.
    fn sleep(&self, has_limit: bool) {
        let mut messages = self.messages.lock().expect("no panic");
        while *messages == 0 && !has_limit {
            messages = self.come.wait(messages).expect("no panic");
        }
        *messages = 0;
        drop(messages);
        if has_limit {
            spin();
        }
    }
}

#[derive(Default)]
struct Rank {
    word: AtomicU64,
    /// What a wait waits for.
    flag: AtomicU32,
    endpoint: Endpoint,
}

impl Rank {
    fn store(&self, flag: u32, is_fenced: bool, pairing: Pairing) {
        // The kernel may interrupt an asymmetric waker anywhere.
        pairing_of(is_fenced, pairing).light();
        self.flag.store(flag, Ordering::Release);
        pairing_of(is_fenced, pairing).light();
        if must_wake(&self.word) {
            self.endpoint.send();
        }
    }

    /// Waits for each value in turn. It does not look before it sleeps for the first time.
    fn wait(&self, flags: u32, pairing: Pairing, sleep: fn(&Self, Pairing)) {
        let is_there = |flag| self.flag.load(Ordering::Acquire) >= flag;
        for flag in 1..=flags {
            while !is_there(flag) {
                announce(&self.word, pairing);
                if !is_there(flag) {
                    sleep(self, pairing);
                }
                withdraw(&self.word);
            }
        }
    }
}

/// A waker without a fence is interrupted by the sleeper's `membarrier` nevertheless.
fn pairing_of(is_fenced: bool, pairing: Pairing) -> Light {
    if is_fenced || pairing == Pairing::Asymmetric { Light(Some(pairing)) } else { Light(None) }
}

struct Light(Option<Pairing>);

impl Light {
    fn light(self) {
        if let Some(pairing) = self.0 {
            pairing.light();
        }
    }
}

fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// One waker, which stores so many values in turn.
fn one_wakes(flags: u32, is_fenced: bool, pairing: Pairing, sleep: fn(&Rank, Pairing)) {
    model(3, move || {
        let rank = Arc::new(Rank::default());
        let sleepers = Arc::clone(&rank);
        let sleeper = thread::spawn(move || sleepers.wait(flags, pairing, sleep));
        (1..=flags).for_each(|flag| rank.store(flag, is_fenced, pairing));
        leave();
        sleeper.join().expect("the sleeper ends");
    });
}

/// The sleep that a fenced waker ends: a lost wake-up is a deadlock unless it needs a limit.
fn of_fenced(rank: &Rank, pairing: Pairing) {
    rank.endpoint.sleep(needs_limit(true, pairing));
}

fn of_unfenced(rank: &Rank, pairing: Pairing) {
    rank.endpoint.sleep(needs_limit(false, pairing));
}

/// One value: loom does not order the exchange of the first value before the announcements that the
/// sleeper makes later, which no machine does otherwise.
#[test]
fn a_fenced_waker_ends_a_sleep_without_a_limit_with_full_fences() {
    one_wakes(1, true, Pairing::Symmetric, of_fenced);
}

#[test]
fn a_fenced_waker_ends_a_sleep_without_a_limit_with_the_sleeper_paying() {
    one_wakes(2, true, Pairing::Asymmetric, of_fenced);
}

/// The same instructions as above: the sleeper pays for programs that store in place, too.
#[test]
fn an_unfenced_waker_ends_a_sleep_without_a_limit_with_the_sleeper_paying() {
    one_wakes(2, false, Pairing::Asymmetric, of_unfenced);
}

/// The message may be missing; the limit ends the sleep.
#[test]
fn a_limit_ends_the_sleep_that_an_unfenced_waker_misses() {
    one_wakes(1, false, Pairing::Symmetric, of_unfenced);
}

/// Two wakers of one sleeper, each with a value of its own: one takes the announcement, and the
/// sleeper finds what the other one has stored.
#[test]
fn two_wakers_end_the_waits_for_both() {
    model(2, || {
        let (rank, other) = (Arc::new(Rank::default()), Arc::new(AtomicU32::new(0)));
        let wakers = [0, 1].map(|number| {
            let (rank, other) = (Arc::clone(&rank), Arc::clone(&other));
            thread::spawn(move || {
                let flag = if number == 0 { &rank.flag } else { &other };
                flag.store(1, Ordering::Release);
                Pairing::Symmetric.light();
                if must_wake(&rank.word) {
                    rank.endpoint.send();
                }
            })
        });
        for flag in [&rank.flag, &other] {
            while flag.load(Ordering::Acquire) == 0 {
                announce(&rank.word, Pairing::Symmetric);
                if flag.load(Ordering::Acquire) == 0 {
                    of_fenced(&rank, Pairing::Symmetric);
                }
                withdraw(&rank.word);
            }
        }
        wakers.into_iter().for_each(|waker| waker.join().expect("a waker ends"));
    });
}

/// The mutant: the sleep that needs a limit, without one.
#[test]
#[should_panic(expected = "deadlock")]
fn an_unfenced_waker_without_a_limit_is_caught() {
    one_wakes(1, false, Pairing::Symmetric, of_fenced);
}

/// The mutant: a sleeper that announces itself without the heavy fence.
#[test]
#[should_panic(expected = "deadlock")]
fn an_announcement_without_the_heavy_fence_is_caught() {
    model(3, || {
        cci_mem::barrier::break_heavy();
        let rank = Arc::new(Rank::default());
        let sleepers = Arc::clone(&rank);
        let sleeper = thread::spawn(move || sleepers.wait(1, Pairing::Asymmetric, of_fenced));
        rank.store(1, true, Pairing::Asymmetric);
        leave();
        sleeper.join().expect("the sleeper ends");
    });
}

/// The mutant: a sleeper that does not look once more.
#[test]
#[should_panic(expected = "deadlock")]
fn a_sleep_without_a_second_look_is_caught() {
    model(3, || {
        let rank = Arc::new(Rank::default());
        let sleepers = Arc::clone(&rank);
        let sleeper = thread::spawn(move || {
            announce(&sleepers.word, Pairing::Symmetric);
            of_fenced(&sleepers, Pairing::Symmetric);
        });
        rank.store(1, true, Pairing::Symmetric);
        sleeper.join().expect("the sleeper ends");
    });
}
