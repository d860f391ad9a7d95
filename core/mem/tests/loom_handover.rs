//! Models of the hand-over of an endpoint: nobody sleeps while there is an event and nobody drives.
#![cfg(loom)]

use cci_mem::handover::Handover;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;

/// A time that does not come within the model: a nap has no end of its own.
const LATE: u64 = 1000;

/// What the kernel and the lock of the endpoint order: descriptors, events, those who wait.
#[derive(Default)]
struct System {
    is_woken: bool,
    events: u32,
    taken: u32,
}

#[derive(Default)]
struct Host {
    handover: Handover,
    system: Mutex<System>,
    /// The kernel's sleep of the sleeper, and that of the call which waits.
    sleeper: Condvar,
    caller: Condvar,
}

type Leave = fn(&Handover) -> bool;
type Nap = fn(&Handover, fn(u64) -> Option<()>) -> Option<()>;

fn look(until: u64) -> Option<()> {
    (until == LATE).then_some(())
}

fn begin_nap(handover: &Handover, look: fn(u64) -> Option<()>) -> Option<()> {
    handover.begin_nap(look)
}

fn without_fence(handover: &Handover, look: fn(u64) -> Option<()>) -> Option<()> {
    handover.begin_nap_without_fence(look)
}

impl Host {
    /// The thread that takes the events which nobody else takes: sleeps, then takes what is there.
    fn run(&self, count: u32, begin_nap: Nap) {
        let mut taken = 0;
        while taken < count {
            let nap = begin_nap(&self.handover, look);
            let mut system = self.system.lock().expect("no panic");
            while !system.is_woken && (nap.is_some() || system.events == 0) {
                system = self.sleeper.wait(system).expect("no panic");
            }
            drop(system);
            self.handover.end_nap();
            let mut system = self.system.lock().expect("no panic");
            system.is_woken = false;
            system.taken += std::mem::take(&mut system.events);
            taken = system.taken;
            drop(system);
            self.caller.notify_one();
        }
    }

    fn come(&self) {
        self.system.lock().expect("no panic").events += 1;
        self.sleeper.notify_one();
    }

    /// A call that waits for as many events as have come.
    fn wait_for(&self, count: u32, leave: Leave) {
        if leave(&self.handover) {
            self.system.lock().expect("no panic").is_woken = true;
            self.sleeper.notify_one();
        }
        let mut system = self.system.lock().expect("no panic");
        while system.taken < count {
            system = self.caller.wait(system).expect("no panic");
        }
    }
}

/// A thread of the program drives, leaves an event to the sleeper, and waits for it; `count` times.
fn hand_over(count: u32, leave: Leave, begin_nap: Nap) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let host = Arc::new(Host::default());
        host.handover.drive_until(LATE);
        let theirs = Arc::clone(&host);
        let sleeper = thread::spawn(move || theirs.run(count, begin_nap));
        for number in 1..=count {
            host.handover.drive_until(LATE);
            host.come();
            host.wait_for(number, leave);
        }
        sleeper.join().expect("the sleeper ends");
    });
}

#[test]
fn an_event_that_is_left_is_taken_each_time() {
    hand_over(2, Handover::leave, begin_nap);
}

/// The mutant: the call may look before the sleeper can see that nobody drives.
#[test]
#[should_panic(expected = "deadlock")]
fn leaving_without_the_fence_is_caught() {
    hand_over(1, Handover::leave_without_fence, begin_nap);
}

/// The mutant: the sleeper may look before the call can see that it naps.
#[test]
#[should_panic(expected = "deadlock")]
fn a_nap_without_the_fence_is_caught() {
    hand_over(1, Handover::leave, without_fence);
}

/// The mutant: whoever leaves relies on a sleeper that sees it.
#[test]
#[should_panic(expected = "deadlock")]
fn leaving_without_a_wake_up_is_caught() {
    hand_over(1, |handover| handover.leave() && false, begin_nap);
}
