//! Shared memory between processes of one user on one host. `docs/design/sm.md` has the protocol.

#![deny(unsafe_code)]

mod clock;
mod descriptors;
mod driver;
mod endpoint;
#[cfg(test)]
mod fixture;
mod format;
mod lane;
mod memory;
mod progress;
mod rma;
mod setup;
#[allow(unsafe_code)]
mod sys;

use clock::{coarse_now, precise_now};
use descriptors::Ready;
use lane::state::{EndpointState, PayloadToken};
use lane::{Lane, Phase};
use progress::fast_path::{NO_LANE, SPINS};
use setup::handshake::Cause;

use cci_mem::cancellation::Uncancelled;
use cci_transport::{Core, Readiness};

pub use driver::DRIVER;

/// Largest message unless the key `mss` says otherwise, bytes.
pub const MAX_SEND_SIZE: u32 = 8192;

/// Frames taken from one lane in one call, while they come in a stream.
const BURST: u32 = 8;
/// Lanes looked at in one call; when there are more they take turns.
const LANES_PER_CALL: usize = 16;
/// Empty calls after which the descriptors are looked at, whatever the clock says.
const LOOK_EVERY: u32 = 1024;
/// The same while a handshake is under way.
const LOOK_EVERY_OPENING: u32 = 16;
/// Empty calls after which one cold lane is looked at.
const SWEEP_EVERY: u32 = 64;
/// Calls that found something after which the clock is looked at.
const CLOCK_EVERY: u32 = 256;
/// Connections taken from the listener in one look.
const ACCEPTS: u32 = 16;

/// An endpoint's shared-memory side.
pub struct Sm {
    state: EndpointState,
    /// By number. A lane keeps its number until the last payload in it has been returned.
    lanes: Vec<Option<Box<Lane>>>,
    /// Numbers that no lane has.
    vacant: Vec<u32>,
    /// Numbers of the lanes that every call polls.
    hot: Vec<u32>,
    /// The lane that every call polls, if it is the only one, usable, and a call has nothing else to do than to take its messages.
    /// [`NO_LANE`] as soon as that may have changed: every operation but a poll and a message that is published at once says so, and
    /// a poll that goes the long way finds out.
    sole: u32,
    /// The lane into which the last message was published at once, if nothing but messages has passed since. [`NO_LANE`] as for `sole`.
    clear: u32,
    /// Numbers of the lanes that the clock looks at.
    timed: Vec<u32>,
    /// The cold lane that was looked at last.
    swept: u32,
    /// Lanes that calls have looked at.
    #[cfg(test)]
    looks: std::cell::Cell<u64>,
    /// Where the next call begins to look.
    turn: usize,
    /// Lanes whose handshake is not over.
    in_handshake: bool,
    readiness: Readiness,
    /// Empty calls.
    calls: u32,
    /// The last [`SPINS`] empty calls took less than a tick of the coarse clock, so that the next ones do without it.
    spins: bool,
    /// What the clock said when these began.
    last_tick: u64,
    /// Calls that found something since the clock was looked at.
    busy: u32,
    /// The last call found something.
    found_before: bool,
    tick: u64,
    ready: Vec<Ready>,
    /// The call has looked at the descriptors.
    looked: bool,
    /// The last look left descriptors that were ready.
    unfinished: bool,
}

impl Sm {
    /// Takes frames from lanes and publishes what waits. True when something moved.
    ///
    /// It ends at the first lane without a frame after one that had some: a look at a line takes it away from the peer that is
    /// about to write it. It takes fewer frames than the program takes events between two calls of this kind, beside the first one
    /// of each lane that was cold, so that what the program has not come to stays in the rings, and does not use up its receive slots.
    #[inline]
    fn poll_lanes(&mut self, core: &mut Core) -> bool {
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
            } else if !lane.queue.is_empty() {
                let moved = lane.flush(&mut self.state, core);
                found |= moved;
                // What moves here may be long pieces of RMA: the clock is not to be forgotten over them.
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
    fn release(&mut self) {
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
    fn free(&mut self, number: u32, slot: Option<u32>, count: u32) {
        let Some(lane) = self.lane_mut(number) else { return };
        lane.release(slot, count);
        if lane.is_over() {
            self.remove_lane(number);
        }
    }

    /// What frames and packets have caused beside events.
    #[cold]
    fn run_deferred(&mut self, core: &mut Core) {
        let _uncancelled = Uncancelled::new();
        while let Some(number) = self.state.protocol_errors.pop() {
            self.tear_down(core, number, Cause::Violation);
        }
        while let Some(redirected) = self.state.redirected.pop() {
            self.join(core, redirected.address, redirected.cell, redirected.opening);
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
    fn retry_all(&mut self, core: &mut Core) {
        for at in 0..self.hot.len() {
            if let Some(lane) = self.lanes.get_mut(self.hot[at] as usize).and_then(Option::as_deref_mut) {
                lane.retry(&mut self.state, core);
            }
        }
    }

    /// A call found nothing in the lanes: looks at the clock, and at descriptors if it is time.
    fn idle(&mut self, core: &mut Core) {
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
        // The empty call after one that found something is the usual end of a loop; what else is ready keeps the handle readable.
        let after_event = std::mem::take(&mut self.found_before);
        // An edge of a descriptor is lost unless this call looks at it; a handle of level-triggered readiness keeps it.
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
    fn look(&mut self, core: &mut Core) {
        self.state.now = precise_now();
        let mut ready = std::mem::take(&mut self.ready);
        let mut fired = false;
        self.looked = true;
        self.unfinished = self.state.control.ready(&mut ready);
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
                let has_woken = std::mem::take(&mut lane.rung);
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

    /// A lane with a number of its own.
    fn add_lane(&mut self, phase: Phase) -> u32 {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.lanes.push(None);
            u32::try_from(self.lanes.len() - 1).unwrap_or(u32::MAX)
        });
        let mut lane = Box::new(Lane::new(number, phase, self.state.now));
        lane.start_timing(&mut self.state);
        self.lanes[number as usize] = Some(lane);
        self.state.lanes_changed = true;
        number
    }
}

impl EndpointState {
    #[inline]
    fn has_deferred(&self) -> bool {
        let lists = self.newly_timed.len() | self.newly_hot.len() | self.protocol_errors.len() | self.redirected.len();
        lists != 0 || self.lanes_changed
    }
}
