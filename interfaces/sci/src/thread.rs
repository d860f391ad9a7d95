//! The thread of a host.

use crate::driving::Looks;
use crate::shared::{EndByPanic, Shared};
use crate::types::Then;
use cci_ground::{readable, sleep_until_ready};
use cci_mem::quiet_thread;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause before what had no room is tried again.
const PAUSE: Duration = Duration::from_millis(1);
/// The pause of the thread between two looks at the state while a thread of the program drives the
/// endpoint: peers that it has come to know are to be probed.
const LOOK: Duration = Duration::from_millis(100);

impl Shared {
    /// The thread of the host.
    pub(crate) fn run(&self) {
        let _ = self.thread.set(std::thread::current().id());
        let mut looks = Looks::default();
        let mut state = self.enter();
        while !state.is_closed {
            let is_quiet = self.progress(&mut state);
            if let Some((source, call, posting)) = state.next_call(self.endpoint()) {
                state.callbacks.running = Some(source);
                drop(state);
                let then = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
                    // Its destructor could panic in turn.
                    std::mem::forget(payload);
                    Then::Cancel
                });
                state = self.enter();
                state.callbacks.running = None;
                if then == Then::Cancel {
                    state.cancel_call(source, posting);
                }
                self.driven.wake(&state);
                continue;
            }
            if !is_quiet {
                continue;
            }
            let has_room = state.links.pump(self.endpoint()) & state.advance_all(self.endpoint());
            if !state.callbacks.ready.is_empty() {
                continue;
            }
            let timer = state.links.peers.poll_timeout().map(|at| at.saturating_duration_since(Instant::now()));
            let probe = state.probe(self.endpoint()).map(|at| at.saturating_duration_since(Instant::now()));
            let left = [timer, probe, (!has_room).then_some(PAUSE)].into_iter().flatten().min();
            self.tell(&mut state);
            let has_failed = state.has_failed;
            let retired = std::mem::take(&mut state.callbacks.retired);
            drop(state);
            if !retired.is_empty() {
                drop(retired);
                state = self.enter();
                continue;
            }
            self.sleep(left, has_failed, &mut looks);
            state = self.enter();
        }
    }

    /// Sleeps until there is something to do. While a thread of the program drives the endpoint
    /// this one neither locks nor calls it: who would have to wait for the other one takes its
    /// processor. Behind that it looks at all: what the program has taken may have set timers.
    fn sleep(&self, left: Option<Duration>, has_failed: bool, looks: &mut Looks) {
        let left = [left, self.driven_for().map(|_| LOOK)].into_iter().flatten().min();
        let until = left.map(|left| Instant::now() + left);
        let mut was_driven = false;
        loop {
            let driven = self.handover.begin_nap(|until| self.next_look_until(until, looks));
            if driven.is_none() && was_driven {
                break;
            }
            was_driven = driven.is_some();
            // An endpoint that has failed would be ready for ever. Its descriptor is armed for this
            // sleep alone: a thread of the program that polls then pays for no sleeper.
            let is_armed = !has_failed && driven.is_none();
            let sleeper = is_armed.then(|| self.endpoint().sleeper().ok()).flatten();
            let (wake, deaf) = (self.driven.waker(), self.deaf_for());
            let events = sleeper.as_ref().map_or(wake, AsFd::as_fd);
            let names = if deaf.is_some() { wake } else { self.asked.as_fd() };
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let pause = [left, driven, deaf].into_iter().flatten().min();
            // A signal ends it early, and the thread looks again.
            let is_ready = sleep_until_ready(&mut [wake, names, events].map(readable), pause);
            if is_ready || driven.is_none() || left.is_some_and(|left| left.is_zero()) {
                break;
            }
        }
        self.handover.end_nap();
        let _ = rustix::io::read(self.driven.waker(), &mut [0; 8]);
    }
}

/// Starts the thread of a host.
pub(crate) fn start(shared: &Arc<Shared>) -> std::io::Result<std::thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    quiet_thread::spawn("cci-sci", quiet_thread::STACK, move || {
        let _end = EndByPanic(&shared);
        shared.run();
    })
}
