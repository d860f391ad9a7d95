//! What arming the OS handle means to lanes: who pays for sleeping. `docs/design/sm.md`, Sleep and
//! wake.

use crate::lane::operation::Stage;
use crate::lane::queue::Op;
use crate::lane::state::EndpointState;
use crate::lane::{Lane, Phase};
use crate::slow_path::SlowPath;
use cci_mem::sync::Ordering;
use cci_proto::Time;
use cci_transport::{Arming, Core, HandleCheck, Readiness};
use rustix::fd::OwnedFd;
use std::sync::Arc;

impl Lane {
    /// Arms the words of both directions, as far as it has something to wait for. True: the caller
    /// owes a heavy fence.
    pub(crate) fn arm(&mut self) -> bool {
        let waits = !self.queue.has_no_turn();
        let wire = self.wire.as_ref().filter(|_| self.phase == Phase::Ready);
        wire.is_some_and(|wire| self.sleeping.arm(wire, waits))
    }

    /// Takes the wake-up of what has been received: it would only cause another empty call.
    fn take_wake(&mut self, state: &mut EndpointState) {
        if self.sleeping.may_be_woken() {
            if self.is_wake_coming() {
                self.consume_wake(state);
            }
            self.sleeping.forget_wake_up();
        }
    }

    pub(crate) fn disarm(&mut self) {
        self.sleeping.disarm(self.wire.as_ref());
    }

    /// Whether an operation could go on without hearing from the peer.
    fn is_runnable(&self) -> bool {
        self.phase == Phase::Ready
            && !self.queue.has_controls()
            && matches!(self.queue.operations().front(), Some(Op::Rma(pending)) if matches!(pending.stage, Stage::Copy(_)))
    }
}

impl Arming for SlowPath {
    #[inline(always)]
    fn readiness(&mut self) -> &mut Readiness {
        &mut self.readiness
    }

    fn prepare(&mut self, core: &mut Core, check: HandleCheck) -> bool {
        // What made a descriptor readable before the call began may have given its edge already;
        // what does so after the look gives another.
        if check == HandleCheck::Anew || check == HandleCheck::Once && !self.looked {
            self.look(core);
        }
        self.on_newly_timed();
        self.arm_lanes();
        if self.state.deadlines_moved {
            self.state.deadlines_moved = false;
            self.set_timer();
        }
        let work = self.flush_waiting(core) | self.has_work();
        self.state.control.signal_quiet(work);
        // Where the system refuses the timer, the program is to call again instead of sleeping.
        let is_idle = !work && !self.state.timer_refused && !core.has_event() && !core.has_room_again();
        if is_idle && self.readiness.take_signalled() {
            self.state.control.drain_waker();
        }
        is_idle
    }

    /// Leaves peers in the belief that this side is awake, for a program that is answered soon.
    fn stay_awake(&mut self, _: &mut Core) {
        for at in 0..self.hot.len() {
            if let Some(lane) = self.lanes.get_mut(self.hot[at] as usize).and_then(Option::as_deref_mut) {
                lane.take_wake(&mut self.state);
                lane.disarm();
            }
        }
    }

    fn on_disarmed(&mut self, _: &mut Core) {
        for at in 0..self.hot.len() {
            if let Some(lane) = self.lanes.get_mut(self.hot[at] as usize).and_then(Option::as_deref_mut) {
                lane.disarm();
            }
        }
        self.state.control.signal_quiet(true);
    }

    fn forget_timer(&mut self) {
        self.state.deadlines_moved = true;
    }

    fn set_edge_timer(&mut self, at: Time) -> bool {
        self.state.control.set_timer(Some(at))
    }

    fn write_waker(&self) {
        self.state.control.write_waker();
    }
}

impl SlowPath {
    /// Whether a call would move something, beside taking an event that waits.
    pub(crate) fn has_work(&self) -> bool {
        self.unfinished
            || self.state.has_deferred()
            || self.hot_lanes().any(|lane| lane.has_work() || lane.is_runnable())
    }

    /// Whether the handle is readable whatever there is to do, or will be at once, and nothing else
    /// is to be told.
    pub(crate) fn is_readable_still(&self) -> bool {
        !self.state.deadlines_moved
            && !self.readiness.waits_in_call()
            && (self.readiness.is_signalled() || self.hot_lanes().any(Lane::is_wake_coming))
    }

    /// Sets the sleep words of all lanes that calls poll, and fences: the sleeper pays.
    fn arm_lanes(&mut self) {
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
    }

    /// For a call that waits while events do: a descriptor that these do not make readable. None:
    /// there is something to do.
    pub(crate) fn arm_quietly(&mut self, core: &mut Core) -> Option<Arc<OwnedFd>> {
        if !self.readiness.waits_in_call() {
            let sockets = self.lanes.iter().flatten().filter_map(|lane| lane.peer.socket());
            self.state.control.make_quiet(sockets).ok()?;
            self.readiness.on_wait_in_call();
            Readiness::settle(self, core, HandleCheck::Skip);
        }
        self.state.control.quiet_handle()
    }

    /// The last look for room, after lying down. True when something moved.
    fn flush_waiting(&mut self, core: &mut Core) -> bool {
        let mut moved = false;
        for at in 0..self.hot.len() {
            let lane = self.lanes.get_mut(self.hot[at] as usize).and_then(Option::as_deref_mut);
            if let Some(lane) = lane.filter(|lane| lane.sleeping.is_waiting() && !lane.is_runnable()) {
                moved |= lane.flush(&mut self.state, core);
            }
        }
        moved
    }

    /// A call has found something.
    #[inline]
    pub(crate) fn on_found(&mut self, core: &Core) {
        Readiness::on_found(self, core, None);
        self.found_before = true;
    }
}

impl Lane {
    /// Whether the peer has sent a wake-up that nobody has read, or is about to: until then it
    /// keeps the handle readable. None comes on a socket that is closed.
    fn is_wake_coming(&self) -> bool {
        self.peer.socket().is_some() && self.sleeping.is_wake_up_coming(self.wire.as_ref())
    }
}
