//! Spinning or armed: who pays for sleeping. `docs/design/sm.md`, Sleep and wake.

use crate::Sm;
use crate::endpoint::state::EndpointState;
use crate::lane::queue::Op;
use crate::lane::{Lane, Phase};
use crate::rma::Stage;
use cci_mem::sleep::{self, ASLEEP};
use cci_mem::sync::Ordering;
use cci_transport::{Core, Edge, Transition, monotonic};
use rustix::fd::OwnedFd;

impl Lane {
    /// Arms the words of both directions, as far as it has something to wait for. True: the caller owes a heavy fence.
    pub(crate) fn arm(&mut self) -> bool {
        let waits = !self.queue.is_empty();
        let Some(wire) = self.wire.as_ref().filter(|_| self.phase == Phase::Ready) else { return false };
        let mut heavy = false;
        if !self.armed || wire.inbound.sleep.load(Ordering::Relaxed) != ASLEEP {
            heavy |= !self.armed;
            self.armed = true;
            sleep::arm(wire.inbound.sleep);
        }
        if waits && (!self.waiting || wire.outbound.wait.load(Ordering::Relaxed) != ASLEEP) {
            heavy |= !self.waiting;
            self.waiting = true;
            sleep::arm(wire.outbound.wait);
        }
        heavy
    }

    /// Takes the wake-up of what has been received: it would only cause another empty call.
    fn take_wake(&mut self, state: &mut EndpointState) {
        if self.woken {
            if self.is_wake_coming() {
                self.consume_wake(state);
            }
            (self.woken, self.wake_read) = (false, false);
        }
    }

    pub(crate) fn disarm(&mut self) {
        if let Some(wire) = &self.wire {
            if self.armed {
                sleep::disarm(wire.inbound.sleep);
            }
            if self.waiting {
                sleep::disarm(wire.outbound.wait);
            }
        }
        self.armed = false;
        self.waiting = false;
    }

    /// Whether an operation could go on without hearing from the peer.
    fn is_runnable(&self) -> bool {
        self.phase == Phase::Ready
            && !self.queue.has_answers()
            && matches!(self.queue.operations().front(), Some(Op::Rma(pending)) if matches!(pending.stage, Stage::Copy(_)))
    }
}

impl Sm {
    /// Whether a call would move something, beside taking an event that waits.
    fn has_work(&self) -> bool {
        self.unfinished
            || self.state.has_deferred()
            || self.hot_lanes().any(|lane| lane.has_work() || lane.is_runnable())
    }

    /// Arms the words of all lanes and polls once more. True: the endpoint may sleep.
    pub(crate) fn arm_handle(&mut self, core: &mut Core) -> bool {
        core.note_armed();
        self.spin_policy.stop();
        self.state.deadlines_moved = true;
        self.settle_handle(core, true)
    }

    /// Leaves the handle readable, and peers in the belief that this side is awake, for a program that is answered soon. `empty`: the
    /// call answered that there is no event, and leaves an edge to come. False: its spin policy has ended.
    pub(crate) fn spin_on(&mut self, empty: bool) -> bool {
        if !self.spin_policy.is_on() || self.state.control.has_quiet() {
            return false;
        }
        for at in 0..self.hot.len() {
            if let Some(lane) = self.lanes.get_mut(self.hot[at] as usize).and_then(Option::as_deref_mut) {
                lane.take_wake(&mut self.state);
                lane.disarm();
            }
        }
        self.state.control.signal(true);
        if empty {
            let now = self.called.take().unwrap_or_else(monotonic);
            let edge = self.edges.adaptive_spin(now);
            self.give(edge);
        }
        true
    }

    /// Whether the handle is readable whatever there is to do, or will be at once, and nothing else is to be told.
    pub(crate) fn is_readable_still(&self) -> bool {
        !self.state.deadlines_moved
            && !self.state.control.has_quiet()
            && (self.state.control.is_signalled() || self.hot_lanes().any(Lane::is_wake_coming))
    }

    /// Looks at the descriptors unless this call has done so. What made one of them readable before the call began may have
    /// given its edge already; what does so later gives another.
    pub(crate) fn look_once(&mut self, core: &mut Core) {
        if !self.looked {
            self.look(core);
        }
    }

    /// Has a disarmed handle give an edge soon.
    pub(crate) fn ring(&mut self, core: &mut Core) {
        let edge = if self.wait_policy.spins() { self.edges.spinning(monotonic()) } else { Edge::Now };
        if edge != Edge::Arm {
            return self.give(edge);
        }
        // A look of an earlier call does not count.
        self.looked = false;
        if !self.arm_handle(core) {
            self.disarm(core);
            self.state.control.signal_again();
        }
    }

    /// Has a handle that stays readable give an edge.
    fn give(&mut self, edge: Edge) {
        match edge {
            Edge::Coming | Edge::Arm => {}
            Edge::Now => self.state.control.signal_again(),
            Edge::At(at) => {
                if !self.state.control.set_timer(Some(at)) {
                    self.edges.on_refused();
                    self.state.control.signal_again();
                }
            }
        }
    }

    /// Keeps an armed handle true to what there is to do. `needs_edge`: the edge of a descriptor may have passed, so look at all of
    /// them, and give an edge if there is something to do. True: nothing.
    pub(crate) fn settle_handle(&mut self, core: &mut Core, needs_edge: bool) -> bool {
        let relies_on_timer = self.edges.on_arming(self.called.take().unwrap_or_default());
        if relies_on_timer {
            self.looked &= needs_edge;
            self.state.deadlines_moved = true;
        }
        let needs_edge = needs_edge || relies_on_timer;
        if needs_edge {
            self.look_once(core);
        }
        self.on_newly_timed();
        let mut heavy = false;
        for at in 0..self.hot.len() {
            let number = self.hot[at];
            let Some(lane) = self.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else { continue };
            lane.take_wake(&mut self.state);
            heavy |= lane.arm();
        }
        if heavy {
            self.state.pairing.heavy();
        } else {
            cci_mem::sync::fence(Ordering::SeqCst);
        }
        if self.state.deadlines_moved {
            self.state.deadlines_moved = false;
            self.set_timer();
        }
        let work = self.flush_waiting(core) | self.has_work();
        let found = work || core.has_event() || core.has_room_again();
        if found && needs_edge {
            self.state.control.signal_again();
        } else {
            self.state.control.signal(found);
        }
        self.state.control.signal_quiet(work);
        !found
    }

    /// For a call that waits while events do: a descriptor that these do not make readable. None: there is something to do.
    pub(crate) fn arm_quietly(&mut self, core: &mut Core) -> Option<OwnedFd> {
        if !self.state.control.has_quiet() {
            let sockets = self.lanes.iter().flatten().filter_map(|lane| lane.socket.as_ref());
            self.state.control.make_quiet(sockets).ok()?;
            self.settle_handle(core, false);
        }
        self.state.control.quiet_handle()
    }

    /// The last look for room, after lying down. True when something moved.
    fn flush_waiting(&mut self, core: &mut Core) -> bool {
        let mut moved = false;
        for at in 0..self.hot.len() {
            let lane = self.lanes.get_mut(self.hot[at] as usize).and_then(Option::as_deref_mut);
            if let Some(lane) = lane.filter(|lane| lane.waiting && !lane.is_runnable()) {
                moved |= lane.flush(&mut self.state, core);
            }
        }
        moved
    }

    fn disarm(&mut self, core: &mut Core) {
        for at in 0..self.hot.len() {
            if let Some(lane) = self.lanes.get_mut(self.hot[at] as usize).and_then(Option::as_deref_mut) {
                lane.disarm();
            }
        }
        core.note_disarmed();
        self.state.control.signal(true);
        self.state.control.signal_quiet(true);
    }

    /// A call has found something.
    #[inline]
    pub(crate) fn on_found(&mut self, core: &Core) {
        if core.is_armed() {
            self.spin_policy.on_found(monotonic);
        }
        self.wait_policy.on_found();
        self.found_before = true;
    }

    /// A call has found nothing.
    pub(crate) fn on_empty(&mut self, core: &mut Core, now: u64) {
        if core.is_armed() {
            let now = monotonic();
            self.called = Some(now);
            self.spin_policy.on_empty(now);
        }
        match self.wait_policy.on_empty(core.is_armed(), core.is_handle_in_use(), now) {
            Transition::Stay => {}
            Transition::Arm => {
                if !self.arm_handle(core) {
                    self.disarm(core);
                }
            }
            Transition::Disarm => self.disarm(core),
        }
    }
}

impl Lane {
    /// Whether the peer has sent a wake-up that nobody has read, or is about to: until then it keeps the handle readable. None comes on
    /// a socket that is closed.
    fn is_wake_coming(&self) -> bool {
        self.woken && self.socket.is_some() && self.armed && !self.wake_read && self.is_token_taken()
    }

    fn is_token_taken(&self) -> bool {
        self.wire.as_ref().is_some_and(|wire| wire.inbound.sleep.load(Ordering::Relaxed) != ASLEEP)
    }
}
