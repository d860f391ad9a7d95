//! Models of a sleeper's schedule: whoever changes a task and requests a wake-up is seen, and no
//! request is lost.
#![cfg(loom)]

use cci_mem::schedule::{NEVER, Schedule};
use cci_mem::sync::{AtomicU32, AtomicU64, Ordering};
use loom::thread::{self, Thread};
use std::sync::Arc;

/// A time that does not come within the model: a sleeper whose timer is set to it sleeps for ever.
const LATE: u64 = 1000;

struct Shared {
    schedule: Schedule,
    timer: AtomicU64,
    tasks: [AtomicU32; 2],
}

impl Shared {
    fn set_timer(&self, at: u64, sleeper: &Thread) {
        self.timer.store(at, Ordering::SeqCst);
        sleeper.unpark();
    }

    /// Sleeps until the timer fires, which it does once.
    fn sleep(&self) {
        loop {
            let at = self.timer.load(Ordering::SeqCst);
            assert_ne!(at, NEVER, "a plan without its timer");
            if at < LATE && self.timer.compare_exchange(at, NEVER, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return;
            }
            thread::park();
        }
    }
}

/// How the sleeper plans, in the model or in a mutant of it.
type Plan = fn(&Schedule, u64, &mut dyn FnMut(u64));

fn plan(schedule: &Schedule, at: u64, set_timer: &mut dyn FnMut(u64)) {
    schedule.plan(at, set_timer);
}

/// One thread changes two tasks, each with a request; the sleeper runs rounds until it has seen
/// both.
fn run(plan: Plan, on_fired: fn(&Schedule)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let shared = Arc::new(Shared {
            schedule: Schedule::default(),
            timer: AtomicU64::new(NEVER),
            tasks: [AtomicU32::new(0), AtomicU32::new(0)],
        });
        let theirs = Arc::clone(&shared);
        let sleeper = thread::spawn(move || {
            loop {
                theirs.schedule.begin();
                if theirs.tasks.iter().all(|task| task.load(Ordering::Relaxed) == 1) {
                    return;
                }
                // The sleeper reads its own timer only, so it wakes nobody.
                plan(&theirs.schedule, LATE, &mut |at| theirs.timer.store(at, Ordering::SeqCst));
                theirs.sleep();
                on_fired(&theirs.schedule);
            }
        });
        for (task, at) in shared.tasks.iter().zip([7, 5]) {
            task.store(1, Ordering::Relaxed);
            shared.schedule.request(at, |at| shared.set_timer(at, sleeper.thread()));
        }
        sleeper.join().expect("the sleeper ends");
    });
}

#[test]
fn every_request_wakes_the_sleeper_or_was_seen() {
    run(plan, Schedule::on_fired);
}

/// The mutant: a plan that replaces requests.
#[test]
#[should_panic(expected = "deadlock")]
fn a_plan_without_a_second_look_is_caught() {
    let plan: Plan = |schedule, at, set_timer| {
        schedule.begin();
        schedule.plan(at, set_timer);
    };
    run(plan, Schedule::on_fired);
}

/// The mutant: a plan that leaves it to the request to set the timer.
#[test]
#[should_panic(expected = "deadlock")]
fn a_plan_that_relies_on_the_timer_of_a_request_is_caught() {
    let plan: Plan = |schedule, at, set_timer| {
        schedule.plan(at, |planned| {
            if planned == at {
                set_timer(at)
            }
        })
    };
    run(plan, Schedule::on_fired);
}

/// The mutant: a sleeper whose next plan takes the timer that has fired for one that is set.
#[test]
#[should_panic(expected = "a plan without its timer")]
fn a_sleeper_that_does_not_record_the_end_of_the_timer_is_caught() {
    run(plan, |_| {});
}
