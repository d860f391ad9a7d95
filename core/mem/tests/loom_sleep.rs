//! Models of the sleep protocol: a receiver that has gone to sleep is woken, or there was nothing
//! to sleep through.
#![cfg(loom)]

use cci_mem::barrier::{Pairing, leave};
use cci_mem::ring::{Consumer, Entry, Header, Producer};
use cci_mem::sleep::{ASLEEP, AWAKE, SLEEPY, disarm, doze, must_wake};
use cci_mem::sync::{AtomicU32, Ordering};
use loom::thread::{self, Thread};
use std::sync::Arc;

const ENTRIES: usize = 4;

/// The byte on the lane's socket that wakes. There is no time limit: a lost wake-up is a deadlock.
struct Bell(AtomicU32);

impl Bell {
    fn ring(&self, receiver: &Thread) {
        self.0.store(1, Ordering::Release);
        receiver.unpark();
    }

    fn wait(&self) {
        while self.0.compare_exchange(1, 0, Ordering::Acquire, Ordering::Relaxed).is_err() {
            thread::park();
        }
    }
}

struct Lane {
    entries: [Entry; ENTRIES],
    head: AtomicU32,
    word: AtomicU32,
    bell: Bell,
}

impl Lane {
    fn new(word: u32) -> Arc<Self> {
        Arc::new(Self {
            entries: std::array::from_fn(|_| Entry::default()),
            head: AtomicU32::new(0),
            word: AtomicU32::new(word),
            bell: Bell(AtomicU32::new(0)),
        })
    }

    fn send(&self, producer: &mut Producer<ENTRIES>, number: u32) {
        producer.push_words(&self.entries, Header { kind: 1, len: 0, word: number }, []);
    }
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

/// What a sender does between publishing and ringing; true: it rings.
type Look = fn(&AtomicU32) -> bool;

/// One receiver in state `word`, one sender of `frames`. `claims_awake` is what the receiver tells
/// `doze` the first time.
fn exchange(word: u32, claims_awake: bool, pairing: Pairing, frames: u32, look: Look) {
    model(move || {
        let lane = Lane::new(word);
        let to = Arc::clone(&lane);
        let receiver = thread::spawn(move || receive(&to, claims_awake, pairing, frames));
        let mut producer = Producer::<ENTRIES>::new();
        for number in 0..frames {
            // The kernel may interrupt before the frame is published, too.
            pairing.light();
            lane.send(&mut producer, number);
            if look(&lane.word) {
                lane.bell.ring(receiver.thread());
            }
        }
        leave();
        receiver.join().expect("the receiver ends");
    });
}

/// Takes every frame, sleeping whenever there is none. The last round rouses, so that all three
/// states are met.
fn receive(lane: &Lane, mut awake: bool, pairing: Pairing, frames: u32) {
    let mut consumer = Consumer::<ENTRIES>::new();
    for number in 0..frames {
        while consumer.peek(&lane.entries).is_none() {
            doze(&lane.word, awake, pairing);
            awake = false;
            if consumer.peek(&lane.entries).is_none() {
                lane.bell.wait();
            }
        }
        assert_eq!(consumer.peek(&lane.entries).map(|header| header.word), Some(number));
        consumer.advance(&lane.head);
        if number % 2 == 1 {
            disarm(&lane.word);
            awake = true;
        }
    }
}

fn symmetric(word: &AtomicU32) -> bool {
    must_wake(word, Pairing::Symmetric)
}

fn asymmetric(word: &AtomicU32) -> bool {
    must_wake(word, Pairing::Asymmetric)
}

#[test]
fn awake_to_asleep_with_full_fences() {
    exchange(AWAKE, true, Pairing::Symmetric, 2, symmetric);
}

/// The fence needed: `heavy` in `doze`, which the sender's processor runs for it.
#[test]
fn awake_to_asleep_with_the_sleeper_paying() {
    exchange(AWAKE, true, Pairing::Asymmetric, 2, asymmetric);
}

#[test]
fn asleep_again_after_being_roused() {
    exchange(AWAKE, true, Pairing::Asymmetric, 3, asymmetric);
}

#[test]
fn sleepy_to_asleep_with_full_fences() {
    exchange(SLEEPY, false, Pairing::Symmetric, 2, symmetric);
}

/// The fence needed: the sender's own, in `must_wake`, since the receiver spares itself the heavy
/// one.
#[test]
fn sleepy_to_asleep_without_a_heavy_fence() {
    exchange(SLEEPY, false, Pairing::Asymmetric, 2, asymmetric);
}

/// The mutant of `doze`: from AWAKE with an ordinary fence, the sender's look can pass its own
/// frame.
#[test]
#[should_panic(expected = "deadlock")]
fn awake_to_asleep_without_the_heavy_fence_is_caught() {
    exchange(AWAKE, false, Pairing::Asymmetric, 1, asymmetric);
}

/// The mutant of `must_wake`: in SLEEPY without the sender's fence.
#[test]
#[should_panic(expected = "deadlock")]
fn sleepy_without_the_senders_fence_is_caught() {
    exchange(SLEEPY, false, Pairing::Asymmetric, 1, |word| {
        word.load(Ordering::Relaxed) == ASLEEP && word.swap(SLEEPY, Ordering::Relaxed) == ASLEEP
    });
}

/// The mutant of the receiver: without its second look a frame that came just before is slept
/// through.
#[test]
#[should_panic(expected = "deadlock")]
fn sleeping_without_a_second_look_is_caught() {
    model(|| {
        let lane = Lane::new(AWAKE);
        let to = Arc::clone(&lane);
        let receiver = thread::spawn(move || {
            let consumer = Consumer::<ENTRIES>::new();
            if consumer.peek(&to.entries).is_none() {
                doze(&to.word, true, Pairing::Symmetric);
                to.bell.wait();
            }
        });
        lane.send(&mut Producer::<ENTRIES>::new(), 0);
        if symmetric(&lane.word) {
            lane.bell.ring(receiver.thread());
        }
        receiver.join().expect("the receiver ends");
    });
}
