//! A poll: frames from the lanes, and now and then the descriptors.

use crate::clock::{coarse_now, precise_now};
use crate::descriptors::Ready;
use crate::lane::receive::BURST;
use crate::lane::state::PayloadToken;
use crate::lane::{Lane, Phase};
use crate::setup::handshake::Cause;
use crate::slow_path::{SPINS, SlowPath};
use cci_mem::cancellation::Uncancelled;
use cci_transport::{Core, Readiness};

/// Lanes looked at in one call; when there are more they take turns.
pub(crate) const LANES_PER_CALL: usize = 16;
/// Empty calls after which the descriptors are looked at, whatever the clock says.
pub(crate) const LOOK_EVERY: u32 = 1024;
/// The same while a handshake is under way.
pub(crate) const LOOK_EVERY_OPENING: u32 = 16;
/// Empty calls after which one cold lane is looked at.
pub(crate) const SWEEP_EVERY: u32 = 256;
/// Calls that found something after which the clock is looked at.
pub(crate) const CLOCK_EVERY: u32 = 256;
/// Connections taken from the listener in one look.
pub(crate) const ACCEPTS: u32 = 16;

impl SlowPath {
    /// As [`cci_transport::Transport::progress`].
    pub(crate) fn progress(&mut self, core: &mut Core) {
        self.looked = false;
        if !self.poll_lanes(core) {
            return self.idle(core);
        }
        self.on_found(core);
        self.busy += 1;
        if self.busy >= CLOCK_EVERY {
            self.busy = 0;
            if coarse_now() != self.tick {
                self.look(core);
            }
        }
    }

    /// Takes frames from lanes and publishes what waits. True when something moved.
    ///
    /// It ends at the first lane without a frame after one that had some: a look at a line takes it
    /// away from the peer that is about to write it. It takes fewer frames than the program takes
    /// events between two calls of this kind, beside the first one of each lane that was cold, so
    /// that what the program has not come to stays in the rings, and does not use up its receive
    /// slots.
    #[inline]
    pub(crate) fn poll_lanes(&mut self, core: &mut Core) -> bool {
        let count = self.hot.len();
        let mut found = false;
        let mut draining = false;
        let mut room = BURST;
        for _ in 0..count.min(LANES_PER_CALL) {
            if self.turn >= count {
                self.turn = 0;
            }
            let number = self.hot[self.turn];
            self.turn += 1;
            #[cfg(test)]
            self.looks.set(self.looks.get() + 1);
            let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { continue };
            let taken = lane.receive(&mut self.state, core, lane.budget().min(room)).unwrap_or_else(
                |cci_mem::ring::Violation| {
                    self.state.protocol_errors.push(number);
                    0
                },
            );
            if lane.phase == Phase::Draining {
                draining = true;
            } else if !lane.queue.has_no_turn() {
                let moved = lane.flush(&mut self.state, core);
                found |= moved;
                // What moves here may be long pieces of RMA: the clock is not to be forgotten over
                // them.
                self.busy += u32::from(moved) * (CLOCK_EVERY / 8);
            }
            room -= taken;
            if room == 0 || taken == 0 && room < BURST {
                break;
            }
        }
        found |= room < BURST;
        found |= self.follow_hints(core);
        if self.state.released.is_due() {
            self.release();
        }
        if draining {
            self.drain_all(core);
        }
        if self.state.has_deferred() {
            self.run_deferred(core);
        }
        if self.state.landings_wait {
            self.land(core);
        }
        found
    }

    /// Gives back what slots that the program has returned held.
    #[inline]
    pub(crate) fn release(&mut self) {
        while let Some((held, count)) = self.state.released.take() {
            match held {
                PayloadToken::Lane(number, slot) => self.free(number, slot, count),
                PayloadToken::Spill(number, buffer) => {
                    self.state.unspill(buffer);
                    self.free(number, None, 1);
                }
            }
        }
    }

    /// Receive slots, and maybe a payload slot, of a lane are free again.
    pub(crate) fn free(&mut self, number: u32, slot: Option<u32>, count: u32) {
        let Some(lane) = self.lane_mut(number) else { return };
        lane.release(slot, count);
        if lane.is_over() {
            self.remove_lane(number);
        }
    }

    /// What frames and packets have caused beside events.
    #[cold]
    pub(crate) fn run_deferred(&mut self, core: &mut Core) {
        let _uncancelled = Uncancelled::new();
        while let Some(number) = self.state.protocol_errors.pop() {
            self.tear_down(core, number, Cause::Violation);
        }
        while let Some(redirected) = self.state.redirected.pop() {
            self.join(core, redirected.address, redirected.cell, redirected.pending);
        }
        self.on_newly_timed();
        if self.state.lanes_changed {
            self.state.lanes_changed = false;
            let in_handshake =
                |lane: &Lane| matches!(lane.phase, Phase::HelloSent | Phase::Answering(_) | Phase::Connecting(_));
            self.in_handshake = self.timed.iter().any(|number| self.lane(*number).is_some_and(in_handshake));
            if self.state.refusing > 0 {
                self.retry_all(core);
            }
        }
    }

    /// Has every lane that was refused slots try again.
    pub(crate) fn retry_all(&mut self, core: &mut Core) {
        for at in 0..self.hot.len() {
            if let Some(lane) = self.lanes.get_mut(self.hot[at] as usize).and_then(Option::as_deref_mut) {
                lane.retry(&mut self.state, core);
            }
        }
    }

    /// A call found nothing in the lanes: looks at the clock, and at descriptors if it is time.
    pub(crate) fn idle(&mut self, core: &mut Core) {
        core.sweep_recv(|slot| self.state.released.add(slot));
        if !self.state.released.is_empty() {
            self.release();
        }
        self.calls = self.calls.wrapping_add(1);
        let now = coarse_now();
        if self.calls.is_multiple_of(SPINS) {
            self.spins = now == self.last_tick;
            self.last_tick = now;
        }
        let every = if self.in_handshake { LOOK_EVERY_OPENING } else { LOOK_EVERY };
        // The empty call after one that found something is the usual end of a loop; what else is
        // ready keeps the handle readable.
        let after_event = std::mem::take(&mut self.found_before);
        // An edge of a descriptor is lost unless this call looks at it; a handle of level-triggered
        // readiness keeps it.
        let is_asleep = core.is_armed() && !self.readiness.is_adaptive_spin();
        if is_asleep && (!after_event || core.is_handle_in_use())
            || now != self.tick
            || self.calls.is_multiple_of(every)
        {
            self.look(core);
            self.poll_lanes(core);
        } else if self.calls.is_multiple_of(SWEEP_EVERY) {
            self.sweep(core);
        }
        if core.has_event() {
            self.on_found(core);
        } else {
            Readiness::on_empty(self, core, None, now);
        }
    }

    /// Looks at the descriptors, and does what time has brought.
    pub(crate) fn look(&mut self, core: &mut Core) {
        self.state.now = precise_now();
        let mut ready = std::mem::take(&mut self.ready);
        let mut fired = false;
        self.looked = true;
        self.unfinished = match self.state.control.ready(&mut ready) {
            Ok(is_unfinished) => is_unfinished,
            Err(_) => {
                self.state.control.suppose_ready(&mut ready);
                let with_socket = self.lanes.iter().flatten().filter(|lane| lane.peer.socket().is_some());
                ready.extend(with_socket.map(|lane| Ready::Socket(lane.number(), false)));
                false
            }
        };
        // New lanes come last: a number that is freed here must not be taken for its successor.
        ready.sort_by_key(|what| *what == Ready::Listener);
        // What they tell of opens and closes descriptors.
        let _uncancelled = (!ready.is_empty()).then(Uncancelled::new);
        for what in &ready {
            match *what {
                Ready::Listener => self.accept_sockets(core),
                Ready::Timer => {
                    self.state.control.drain_timer();
                    self.readiness.on_timer_fired();
                    fired = true;
                }
                // Somebody else wrote it, and has been heard.
                Ready::Waker if !self.readiness.is_signalled() => self.state.control.drain_waker(),
                Ready::Waker => {}
                Ready::Socket(number, hung_up) => self.on_socket(core, number, hung_up),
                Ready::Death(pid) => self.tear_down_process(core, pid),
            }
        }
        self.ready = ready;
        let tick = coarse_now();
        if tick != self.tick || fired {
            self.tick = tick;
            self.on_tick(core);
            self.cool(core);
            self.publish_gauges(core);
        }
        if self.state.has_deferred() {
            self.run_deferred(core);
        }
    }

    fn on_socket(&mut self, core: &mut Core, number: u32, hung_up: bool) {
        let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { return };
        let read = lane.read_socket(&mut self.state);
        self.unfinished |= read == Ok(false);
        let cause = read.err().or(hung_up.then_some(Cause::Gone));
        match cause {
            Some(cause) => self.tear_down(core, number, cause),
            None => {
                let has_woken = lane.schedule.take_wake_up();
                lane.announce(&mut self.state);
                if has_woken {
                    self.make_hot(number, core.is_armed());
                }
            }
        }
    }

    fn accept_sockets(&mut self, core: &mut Core) {
        for _ in 0..ACCEPTS {
            let Some(socket) = self.state.control.accept(self.state.now) else {
                // A rest ends by timer.
                self.state.deadlines_moved |= !self.state.control.is_listening();
                return;
            };
            let number = self.add_lane(Phase::Answering(self.state.now));
            let Some(lane) = self.lanes[number as usize].as_deref_mut() else { return };
            if let Err(cause) = lane.answer_socket(&mut self.state, socket) {
                self.tear_down(core, number, cause);
            }
        }
        self.unfinished = true;
    }
}
