//! Models of sleepers with several rings, and of two that sleep for each other, as an engine of
//! Portals and its programs do: nobody sleeps while there is a line to take.
#![cfg(loom)]

use cci_mem::barrier::{Pairing, leave, while_blocked};
use cci_mem::ring::{Consumer, Entry, Header, Producer};
use cci_mem::sleep::{AWAKE, arm, disarm, must_wake};
use cci_mem::sync::AtomicU32;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;

const ENTRIES: usize = 4;

/// The socket of a wake-up. There is no time limit: a lost wake-up is a deadlock.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    rings: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().expect("no panic") = true;
        self.rings.notify_one();
    }

    fn wait(&self) {
        while_blocked(|| {
            let mut rung = self.rung.lock().expect("no panic");
            while !*rung {
                rung = self.rings.wait(rung).expect("no panic");
            }
            *rung = false;
        });
    }
}

/// A ring of one direction, and the word of its reader.
struct Lane {
    entries: [Entry; ENTRIES],
    head: AtomicU32,
    word: AtomicU32,
    pairing: Pairing,
}

impl Lane {
    fn new(pairing: Pairing) -> Self {
        let entries = std::array::from_fn(|_| Entry::default());
        Self { entries, head: AtomicU32::new(0), word: AtomicU32::new(AWAKE), pairing }
    }

    /// Writes a line, and wakes the reader if it must.
    fn write(&self, producer: &mut Producer<ENTRIES>, bell: &Bell) {
        // The kernel may interrupt before the line is published, too.
        self.pairing.light();
        producer.push_words(&self.entries, Header { kind: 1, len: 0, word: 7 }, []);
        if must_wake(&self.word, self.pairing) {
            bell.ring();
        }
    }

    fn take(&self, consumer: &mut Consumer<ENTRIES>) -> bool {
        let is_there = consumer.peek(&self.entries).is_some();
        if is_there {
            consumer.advance(&self.head);
        }
        is_there
    }

    fn is_empty(&self, consumer: &Consumer<ENTRIES>) -> bool {
        consumer.peek(&self.entries).is_none()
    }
}

/// One sleeper, and two rings to it.
struct Engine {
    lanes: [Lane; 2],
    bell: Bell,
}

/// What an engine does between its last line and its sleep. True: it may sleep.
type Doze = fn(&Engine, &[Consumer<ENTRIES>; 2]) -> bool;

impl Engine {
    fn new(pairings: [Pairing; 2]) -> Arc<Self> {
        Arc::new(Self { lanes: pairings.map(Lane::new), bell: Bell::default() })
    }

    fn arm(&self) {
        self.lanes.iter().for_each(|lane| arm(&lane.word));
    }

    /// One fence for all rings; a heavy one if it is due to one of them.
    fn fence(&self) {
        let is_asymmetric = self.lanes.iter().any(|lane| lane.pairing == Pairing::Asymmetric);
        (if is_asymmetric { Pairing::Asymmetric } else { Pairing::Symmetric }).heavy();
    }

    fn are_empty(&self, consumers: &[Consumer<ENTRIES>; 2]) -> bool {
        self.lanes.iter().zip(consumers).all(|(lane, consumer)| lane.is_empty(consumer))
    }

    fn doze(&self, consumers: &[Consumer<ENTRIES>; 2]) -> bool {
        self.arm();
        self.fence();
        self.are_empty(consumers)
    }

    /// Takes so many lines, and sleeps whenever there is none.
    fn serve(&self, count: u32, doze: Doze) {
        let mut consumers = [Consumer::new(), Consumer::new()];
        let mut taken = 0;
        while taken < count {
            let lanes = self.lanes.iter().zip(&mut consumers);
            let turn = lanes.fold(0, |turn, (lane, consumer)| turn + u32::from(lane.take(consumer)));
            taken += turn;
            if turn > 0 {
                continue;
            }
            if doze(self, &consumers) {
                self.bell.wait();
            }
            self.lanes.iter().for_each(|lane| disarm(&lane.word));
        }
        leave();
    }
}

fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// One thread writes a line into each ring, of which each has its own pairing.
fn two_rings(pairings: [Pairing; 2], doze: Doze) {
    model(2, move || {
        let engine = Engine::new(pairings);
        let writers = Arc::clone(&engine);
        let writer = thread::spawn(move || {
            for lane in &writers.lanes {
                lane.write(&mut Producer::new(), &writers.bell);
            }
            leave();
        });
        engine.serve(2, doze);
        writer.join().expect("the writer ends");
    });
}

#[test]
fn one_full_fence_serves_all_rings() {
    two_rings([Pairing::Symmetric; 2], Engine::doze);
}

#[test]
fn one_heavy_fence_serves_all_rings() {
    two_rings([Pairing::Asymmetric; 2], Engine::doze);
}

/// Each program agrees on its own pairing.
#[test]
fn one_heavy_fence_serves_rings_of_both_pairings() {
    two_rings([Pairing::Asymmetric, Pairing::Symmetric], Engine::doze);
    two_rings([Pairing::Symmetric, Pairing::Asymmetric], Engine::doze);
}

/// Two programs, each with a ring.
#[test]
fn two_writers_wake_one_sleeper() {
    model(2, || {
        let engine = Engine::new([Pairing::Symmetric; 2]);
        let writers = [0, 1].map(|number| {
            let engine = Arc::clone(&engine);
            thread::spawn(move || engine.lanes[number].write(&mut Producer::new(), &engine.bell))
        });
        engine.serve(2, Engine::doze);
        writers.into_iter().for_each(|writer| writer.join().expect("a writer ends"));
    });
}

/// A program sends a command and sleeps until the answer has come; the engine sleeps until the
/// command has.
fn each_sleeps_for_the_other(pairing: Pairing) {
    model(3, move || {
        let lanes = Arc::new([Lane::new(pairing), Lane::new(pairing)]);
        let bells = Arc::new([Bell::default(), Bell::default()]);
        let wait = |lane: &Lane, bell: &Bell| {
            let mut consumer = Consumer::new();
            while !lane.take(&mut consumer) {
                arm(&lane.word);
                lane.pairing.heavy();
                if lane.is_empty(&consumer) {
                    bell.wait();
                }
                disarm(&lane.word);
            }
        };
        let (engine_lanes, engine_bells) = (Arc::clone(&lanes), Arc::clone(&bells));
        let engine = thread::spawn(move || {
            wait(&engine_lanes[0], &engine_bells[0]);
            engine_lanes[1].write(&mut Producer::new(), &engine_bells[1]);
            leave();
        });
        lanes[0].write(&mut Producer::new(), &bells[0]);
        wait(&lanes[1], &bells[1]);
        leave();
        engine.join().expect("the engine ends");
    });
}

#[test]
fn each_of_two_sleepers_wakes_the_other_with_full_fences() {
    each_sleeps_for_the_other(Pairing::Symmetric);
}

#[test]
fn each_of_two_sleepers_wakes_the_other_with_the_sleeper_paying() {
    each_sleeps_for_the_other(Pairing::Asymmetric);
}

/// The mutant: the fence of the programs with full fences does not serve the others.
#[test]
#[should_panic(expected = "deadlock")]
fn a_full_fence_for_a_ring_with_light_ones_is_caught() {
    two_rings([Pairing::Symmetric, Pairing::Asymmetric], |engine, consumers| {
        engine.arm();
        Pairing::Symmetric.heavy();
        engine.are_empty(consumers)
    });
}

/// The mutant: a look without a fence before.
#[test]
#[should_panic(expected = "deadlock")]
fn a_sleep_without_the_fence_is_caught() {
    two_rings([Pairing::Symmetric; 2], |engine, consumers| {
        engine.arm();
        engine.are_empty(consumers)
    });
}

/// The mutant: a word that is armed behind the fence.
#[test]
#[should_panic(expected = "deadlock")]
fn a_word_that_is_armed_behind_the_fence_is_caught() {
    two_rings([Pairing::Symmetric; 2], |engine, consumers| {
        arm(&engine.lanes[0].word);
        engine.fence();
        arm(&engine.lanes[1].word);
        engine.are_empty(consumers)
    });
}

/// The mutant: a second look at one ring alone.
#[test]
#[should_panic(expected = "deadlock")]
fn a_second_look_at_one_ring_is_caught() {
    two_rings([Pairing::Symmetric; 2], |engine, consumers| {
        engine.arm();
        engine.fence();
        engine.lanes[0].is_empty(&consumers[0])
    });
}
