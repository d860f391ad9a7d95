//! Threads of the program that drive the endpoint in place of the thread of the host.

use crate::errors::Error;
use crate::shared::Shared;
use crate::state::State;
use cci_ground::Entered;
use std::time::{Duration, Instant};

/// How long a call waits while nothing ends.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most that counts between two looks. A process that was stopped has not waited meanwhile:
/// what came is looked at first.
const MOST_BETWEEN: Duration = Duration::from_millis(50);
/// How long the thread of the host leaves the endpoint to the program after a call that drives it.
const DRIVEN: Duration = Duration::from_micros(200);
/// The longest pause between two looks whether the program still drives it.
const RARELY: Duration = Duration::from_millis(2);
/// How long a call polls before it sleeps, and the longest sleep before it looks again.
const SPIN: Duration = Duration::from_micros(100);
const NAP: Duration = Duration::from_millis(5);
/// How long nothing comes before a wait for long transfers sleeps.
const STILL: Duration = Duration::from_millis(2);
/// Polls in vain after which other threads may have the processor.
const PATIENT: u32 = 8;

/// The looks of a thread of the host whether the program still drives the endpoint. A wake-up takes
/// its processor for as long as a message takes; so who has driven for long is looked at rarely.
#[derive(Default)]
pub(crate) struct Looks {
    /// Since when it has been found to drive.
    since: Option<Instant>,
}

impl Looks {
    /// The pause before the next look.
    fn pause(&mut self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.since.get_or_insert(now)).clamp(DRIVEN, RARELY)
    }
}

impl Shared {
    /// Takes what has come, on the thread of the program.
    pub(crate) fn drive_once(&self) -> Result<(), Error> {
        let mut state = self.lock()?;
        let now = Instant::now();
        self.set_driven(Some(now));
        self.take_events(&mut state);
        self.serve_timers(&mut state, now);
        state.advance_all(self.endpoint());
        state.compare_due(self.endpoint(), now);
        self.finish_driving(state);
        Ok(())
    }

    /// A thread of the program drives the endpoint for a while from now on, or no more.
    pub(crate) fn set_driven(&self, now: Option<Instant>) {
        let until = now.map_or(0, |now| (now.saturating_duration_since(self.begun) + DRIVEN).as_nanos() as u64);
        self.handover.drive_until(until);
    }

    /// How long a thread of the program drives the endpoint.
    pub(crate) fn driven_for(&self) -> Option<Duration> {
        self.time_until(self.handover.until())
    }

    /// How long it is until a time of the hand-over. `None`: it is past.
    fn time_until(&self, until: u64) -> Option<Duration> {
        Duration::from_nanos(until).checked_sub(self.begun.elapsed()).filter(|left| !left.is_zero())
    }

    /// How long a thread of the host leaves the endpoint to the program before it looks again.
    /// `None`: nobody drives it.
    pub(crate) fn next_look(&self, looks: &mut Looks) -> Option<Duration> {
        self.next_look_until(self.handover.until(), looks)
    }

    /// As [`Shared::next_look`], for a thread that drives until this time.
    pub(crate) fn next_look_until(&self, until: u64, looks: &mut Looks) -> Option<Duration> {
        if self.time_until(until).is_none() {
            looks.since = None;
            return None;
        }
        Some(looks.pause(Instant::now()))
    }

    /// Leaves to the thread of the host what is its own: callbacks, and what waits for room.
    pub(crate) fn finish_driving(&self, mut state: Entered<'_, State>) {
        let is_waiting = state.links.is_backlogged() || state.has_starved_queue();
        let is_left = !state.callbacks.ready.is_empty() || !state.links.to_self.is_empty() || is_waiting;
        self.tell(&mut state);
        let retired = std::mem::take(&mut state.callbacks.retired);
        drop(state);
        drop(retired);
        if is_left {
            self.wake();
        }
    }

    /// Drives the endpoint until `ready` gives something. `None`: nothing has ended for a second,
    /// or the host has ended.
    pub(crate) fn drive<R>(&self, mut ready: impl FnMut(&mut State) -> Option<R>) -> Option<R> {
        let mut state = self.lock().ok()?;
        let (mut waited, mut ended, mut polls) = (Duration::ZERO, state.mirrors.ended, 0_u32);
        let mut looked = None;
        loop {
            let found = ready(&mut state);
            if found.is_some() || state.is_closed || state.has_failed {
                self.finish_driving(state);
                return found;
            }
            let now = Instant::now();
            waited += now.saturating_duration_since(looked.replace(now).unwrap_or(now)).min(MOST_BETWEEN);
            if state.mirrors.ended != ended {
                (waited, ended) = (Duration::ZERO, state.mirrors.ended);
            }
            if waited > PATIENCE {
                // The thread goes on with what has begun.
                state.mirrors.wake();
                self.finish_driving(state);
                return None;
            }
            if waited < SPIN || self.is_own_thread() {
                self.set_driven(Some(now));
                let is_quiet = self.take_events(&mut state);
                self.serve_timers(&mut state, now);
                state.advance_all(self.endpoint());
                if is_quiet {
                    polls += 1;
                    state.links.pump(self.endpoint());
                    drop(state);
                    if polls % PATIENT == 0 {
                        std::thread::yield_now();
                    }
                    state = self.lock().ok()?;
                }
                continue;
            }
            self.set_driven(None);
            self.tell(&mut state);
            self.wake();
            state = self.driven.sleep_beside(state, Some(NAP), || self.enter());
        }
    }

    /// Drives the endpoint until `ready` gives something, as long as events come: who waits for
    /// long transfers polls for them, and no thread hands over to another one. `None`: none has
    /// come for a while, though calls before this one are counted, it is past the deadline, a
    /// callback is due, or this is the thread of the host.
    pub(crate) fn poll_while_it_moves<R>(
        &self,
        deadline: Option<Instant>,
        mut ready: impl FnMut(&mut State) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let (mut state, mut polls) = (self.lock()?, 0_u32);
        loop {
            let (found, now) = (ready(&mut state), Instant::now());
            let is_still = now >= state.waits.last_move(now) + STILL;
            let is_over = is_still || deadline.is_some_and(|at| at <= now) || state.has_failed;
            // Callbacks are the thread's.
            let is_left = !state.callbacks.ready.is_empty() || !state.links.to_self.is_empty();
            if found.is_some() || is_over || is_left || self.is_own_thread() {
                self.finish_driving(state);
                return Ok(found);
            }
            self.set_driven(Some(now));
            let is_quiet = self.take_events(&mut state);
            self.serve_timers(&mut state, now);
            state.compare_due(self.endpoint(), now);
            state.links.pump(self.endpoint());
            state.advance_all(self.endpoint());
            self.tell(&mut state);
            // Others may have the lock, and the processor.
            drop(state);
            polls += u32::from(is_quiet);
            if is_quiet && polls % PATIENT == 0 {
                std::thread::yield_now();
            }
            // It was closed meanwhile.
            state = self.lock().map_err(|_| Error::Cancelled)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DRIVEN, Looks, PATIENCE, RARELY};
    use crate::mirror::connected;
    use crate::{Access, Error, Host, Nodes, Options};
    use cci_conformance::{LIMIT, sm_device};
    use std::time::{Duration, Instant};

    /// Each look takes the processor of the program that drives.
    #[test]
    fn who_has_driven_for_long_is_looked_at_rarely() {
        let (mut looks, mut now, mut count) = (Looks::default(), Instant::now(), 0);
        let end = now + Duration::from_millis(100);
        assert_eq!(looks.pause(now), DRIVEN);
        while now < end {
            (now, count) = (now + looks.pause(now), count + 1);
        }
        assert!(looks.pause(now) == RARELY && count < 60, "{count} looks in 100 ms");
    }

    /// The thread takes what comes; it would look only after a while.
    #[test]
    fn a_call_that_waits_leaves_the_endpoint_to_the_thread() {
        let host = Host::open(&Options::new().nodes(Nodes::new()).device(sm_device())).expect("a host");
        let bell = host.data_interrupt(None).expect("a number");
        for (limit, is_left) in [(Duration::ZERO, false), (Duration::from_millis(1), true)] {
            host.shared.set_driven(Some(Instant::now() + LIMIT));
            assert_eq!(bell.wait(Some(limit)), Err(Error::Timeout));
            assert_eq!(host.shared.driven_for().is_none(), is_left);
        }
    }

    /// It naps for a while after a program has ceased to drive, too.
    #[test]
    fn a_call_that_waits_wakes_a_thread_that_naps() {
        let host = Host::open(&Options::new().nodes(Nodes::new()).device(sm_device())).expect("a host");
        let handover = &host.shared.handover;
        // It takes the mark down before it sleeps, and again once it is woken.
        while !handover.is_napping() {
            let _ = handover.begin_nap(|_| Some(()));
            std::thread::sleep(Duration::from_millis(50));
        }
        host.shared.leave_to_thread();
        let begun = Instant::now();
        while handover.is_napping() {
            assert!(begun.elapsed() < LIMIT, "nobody has woken it");
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_waits_for_a_queue_compares_mirrors_meanwhile() {
        let (_owner, segment, other, far) = connected();
        let own = segment.map(0..4096, Access::ReadWrite).expect("mapped");
        let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        window.store(0, 1_u64).expect("inside");
        let found = other.shared.poll_while_it_moves(Some(Instant::now() + LIMIT), |state| {
            state.waits.moves += 1;
            (own.load(0) == Ok(1_u64)).then_some(())
        });
        assert_eq!(found, Ok(Some(())));
    }

    #[test]
    fn where_nothing_moves_a_wait_polls_once_for_all_calls() {
        let host = Host::open(&Options::new().nodes(Nodes::new()).device(sm_device())).expect("a host");
        let looks = |shared: &crate::shared::Shared| {
            let mut looks = 0;
            let found = shared.poll_while_it_moves(None, |_| {
                looks += 1;
                None::<()>
            });
            assert_eq!(found, Ok(None));
            looks
        };
        assert!(looks(&host.shared) > 1);
        assert_eq!(looks(&host.shared), 1);
    }

    /// What came meanwhile is looked at before the call gives up.
    #[test]
    fn a_process_that_was_stopped_has_not_waited_meanwhile() {
        let host = Host::open(&Options::new().nodes(Nodes::new()).device(sm_device())).expect("a host");
        let mut looks = 0;
        let found = host.shared.drive(|_| {
            looks += 1;
            if looks == 2 {
                std::thread::sleep(2 * PATIENCE);
            }
            (looks == 4).then_some(())
        });
        assert_eq!(found, Some(()));
        let begun = Instant::now();
        assert_eq!(host.shared.drive(|_| None::<()>), None);
        assert!((PATIENCE..LIMIT).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }
}
