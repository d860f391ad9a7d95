//! The OS handle: spinning, in adaptive spin or armed (`docs/design/reliable.md`, The OS handle).

use super::Reliable;
use crate::Link;
use cci_proto::Time;
use cci_transport::{Core, Edge, EdgePolicy, SpinPolicy, Transition, WaitPolicy};
use std::os::fd::OwnedFd;

/// A tick, nanoseconds.
const TICK: u64 = 4_000_000;

/// What the link was armed with.
#[derive(Clone, Copy, Debug)]
struct Armed {
    deadline: Option<Time>,
    wants_write: bool,
}

impl Armed {
    /// Whether this setting can stay. A timer that fires too early costs an empty call, which is
    /// cheaper than setting the timer with every message.
    fn suffices_for(self, wanted: Armed) -> bool {
        self.wants_write == wanted.wants_write
            && wanted.deadline.is_none_or(|wanted| self.deadline.is_some_and(|deadline| deadline <= wanted))
    }

    fn is_past(self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// The state of the OS handle.
#[derive(Default)]
pub(super) struct Readiness {
    wait_policy: WaitPolicy,
    spin_policy: SpinPolicy,
    edge_policy: EdgePolicy,
    /// Arriving frames do not make the handle readable.
    unwatched: bool,
    /// The waker is written.
    signalled: bool,
    /// The last call that made progress found nothing.
    empty: bool,
    /// When the last call made progress.
    called: Time,
    /// The handle may be readable for a reason that has passed: the timer, a waker that others
    /// wrote, an error.
    stale: bool,
    armed: Option<Armed>,
    /// Edge-triggered epoll for blocking calls: it reports arrivals although waiting events keep
    /// the handle readable.
    call_epoll: Option<OwnedFd>,
}

impl<L: Link> Reliable<L> {
    /// Arms the handle. True: there is nothing to do.
    pub(super) fn arm_handle(&mut self, core: &mut Core) -> bool {
        core.note_armed();
        self.readiness.armed = None;
        self.readiness.spin_policy.stop();
        self.settle_handle(core, true)
    }

    /// Chooses whether arriving frames make the handle readable. False: they cannot, although `on`.
    pub(super) fn watch(&mut self, on: bool) -> bool {
        if self.readiness.unwatched == on {
            self.readiness.unwatched = !self.link.watch(on);
        }
        !on || !self.readiness.unwatched
    }

    /// Stops the link from reporting frames, because the program polls again. The progress thread
    /// may have been waiting for one.
    #[inline]
    pub(super) fn unwatch(&mut self, core: &Core) {
        if self.readiness.unwatched || core.is_armed() {
            return;
        }
        self.watch(false);
        if self.readiness.unwatched {
            self.readiness.signalled = false;
            self.signal();
        }
    }

    /// Leaves the handle readable if the spin policy says that the program spins. `empty`: the call
    /// returned EAGAIN, and must give an edge. False: the program does not spin.
    pub(super) fn keep_readable(&mut self, core: &mut Core, empty: bool) -> bool {
        let spins = self.readiness.spin_policy.is_on() && self.readiness.call_epoll.is_none();
        if spins {
            self.send_waiting(core);
            self.signal();
            if empty {
                let edge = self.readiness.edge_policy.adaptive_spin(self.readiness.called);
                self.give(core, edge);
            }
        }
        spins
    }

    /// Gives an edge of a disarmed handle, now or soon.
    pub(super) fn ring(&mut self, core: &mut Core) {
        if self.link.is_virtual() {
            return;
        }
        let edge = if self.readiness.wait_policy.spins() {
            self.readiness.edge_policy.spinning(self.link.now())
        } else {
            Edge::Now
        };
        self.give(core, edge);
    }

    fn give(&mut self, core: &mut Core, edge: Edge) {
        match edge {
            Edge::Coming => {}
            Edge::Now => self.signal_again(),
            Edge::At(at) => {
                // The timer stands no more for what was armed.
                self.readiness.armed = None;
                if !self.link.ring(at) {
                    self.readiness.edge_policy.on_refused();
                    self.signal_again();
                }
            }
            Edge::Arm => {
                if !self.arm_handle(core) {
                    self.disarm(core);
                    self.signal_again();
                }
            }
        }
    }

    /// Arms the handle because the program has asked for it.
    pub(super) fn arm_now(&mut self, core: &mut Core) -> bool {
        self.readiness.wait_policy.stop();
        self.arm_handle(core)
    }

    fn send_waiting(&mut self, core: &mut Core) {
        if self.coalescer.is_waiting() {
            let now = self.link.now();
            self.transmit(core, now, false);
        }
    }

    /// Whether the handle is readable because the waker is written, and no blocking call needs
    /// more.
    pub(super) fn is_readable_still(&self) -> bool {
        self.readiness.signalled && self.readiness.call_epoll.is_none()
    }

    /// Leaves the handle readable instead of setting an earlier timer. A call that returns an event
    /// must not set the timer, because on a virtual machine that traps into the host and delays the
    /// event. The next call sets it, if it is still needed. False: the timer is early enough.
    pub(super) fn postpones_timer(&mut self, core: &mut Core) -> bool {
        self.send_waiting(core);
        let stands = self.readiness.armed.and_then(|armed| armed.deadline);
        let is_late = self.deadline().is_some_and(|wanted| stands.is_none_or(|stands| wanted < stands));
        let postpones = is_late && self.readiness.call_epoll.is_none() && !self.link.is_virtual();
        if postpones {
            self.signal();
        }
        postpones
    }

    /// Makes an armed handle readable exactly if there is something to do. `needs_edge`: the edge of
    /// a descriptor may have passed, so check all of them, and give an edge if there is something
    /// to do. True: there is nothing to do.
    pub(super) fn settle_handle(&mut self, core: &mut Core, needs_edge: bool) -> bool {
        let relies_on_timer = self.readiness.edge_policy.on_arming(self.readiness.called);
        if relies_on_timer {
            self.readiness.armed = None;
        }
        // Looking for frames advances the time of a virtual network.
        let needs_edge = (needs_edge || relies_on_timer) && !self.link.is_virtual();
        self.send_waiting(core);
        self.check_frame_buffers(core);
        let has_work = core.has_event() || self.is_runnable() || core.has_room_again();
        let is_idle = !has_work && self.arm_link(needs_edge);
        // The link may hold work in its own memory, which no descriptor reports.
        if !is_idle && needs_edge {
            self.signal_again();
        } else if !is_idle {
            self.signal();
        }
        is_idle
    }

    /// Ends the shortage of a program that was refused for lack of frame buffers, if some were
    /// released since.
    fn check_frame_buffers(&mut self, core: &mut Core) {
        if self.refused_at.is_some_and(|at| at != self.engine.released()) {
            self.refused_at = None;
            core.end_shortage();
        }
    }

    /// Arms the link. `looks`: check its descriptors first. False: something has arrived already.
    fn arm_link(&mut self, looks: bool) -> bool {
        if !self.watch(true) {
            return false;
        }
        if self.readiness.stale || self.readiness.signalled && self.readiness.armed.is_none() {
            self.still_handle();
        }
        let wanted = Armed { deadline: self.deadline(), wants_write: self.blocked };
        let Some(armed) = self.readiness.armed else {
            self.readiness.armed = Some(wanted);
            return self.link.arm(wanted.deadline, wanted.wants_write);
        };
        let suffices = armed.suffices_for(wanted);
        if suffices && !self.readiness.signalled && !looks {
            return true;
        }
        let next = if suffices { armed } else { wanted };
        self.readiness.armed = Some(next);
        if looks {
            if std::mem::take(&mut self.readiness.signalled) {
                self.link.disarm();
            }
            return self.link.arm(next.deadline, next.wants_write);
        }
        self.link.rearm(next.deadline, next.wants_write, std::mem::take(&mut self.readiness.signalled))
    }

    /// Arms for a blocking call: returns a descriptor that waiting events do not make readable.
    /// `None`: there is something to do.
    pub(super) fn arm_for_call(&mut self, core: &mut Core) -> Option<OwnedFd> {
        core.note_armed();
        let watched = self.watch(true);
        self.settle_handle(core, false);
        if !watched || self.is_runnable() {
            return None;
        }
        if self.readiness.call_epoll.is_none() {
            self.readiness.call_epoll = Some(cci_transport::watch_edges(self.link.handle()).ok()?);
        }
        // A timer that has fired keeps the link's handle readable until it is drained. While
        // nothing is armed here, other code may have set the timer.
        let now = self.link.now();
        if self.readiness.armed.is_none_or(|armed| armed.is_past(now)) {
            let was_signalled = self.readiness.signalled;
            self.still_handle();
            if was_signalled {
                self.signal();
            }
        }
        cci_transport::drain_edges(self.readiness.call_epoll.as_ref()?);
        // Arm again after the drain, so that every later arrival is reported.
        let wanted = Armed { deadline: self.deadline(), wants_write: self.blocked };
        let armed = self.readiness.armed.filter(|armed| armed.suffices_for(wanted)).unwrap_or(wanted);
        self.readiness.armed = Some(armed);
        if !self.link.arm(armed.deadline, armed.wants_write) {
            self.readiness.armed = None;
            return None;
        }
        self.readiness.call_epoll.as_ref()?.try_clone().ok()
    }

    /// Makes the handle readable.
    pub(super) fn signal(&mut self) {
        if !self.readiness.signalled {
            self.readiness.signalled = true;
            self.write_waker();
        }
    }

    /// Makes the handle readable, and gives an edge even if it is readable already.
    fn signal_again(&mut self) {
        self.readiness.signalled = true;
        self.write_waker();
    }

    fn write_waker(&self) {
        let _ = rustix::io::write(&*self.link.waker(), &1u64.to_ne_bytes());
    }

    /// Drains the waker and a timer that has fired.
    fn still_handle(&mut self) {
        self.link.disarm();
        (self.readiness.signalled, self.readiness.stale, self.readiness.armed) = (false, false, None);
    }

    fn disarm(&mut self, core: &mut Core) {
        self.still_handle();
        core.note_disarmed();
        self.unwatch(core);
        self.signal();
    }

    /// Records a call that found something.
    #[inline]
    pub(super) fn on_found(&mut self, core: &Core, now: Time) {
        // What it found need not be an event: the call may return EAGAIN, and rely on a timer.
        (self.readiness.empty, self.readiness.called) = (false, now);
        // In virtual time nothing arrives while the program spins.
        if core.is_armed() && !self.link.is_virtual() {
            self.readiness.spin_policy.on_found(|| now);
        }
        self.readiness.wait_policy.on_found();
    }

    /// Records an empty call.
    pub(super) fn on_empty(&mut self, core: &mut Core, now: Time) {
        // A program makes one empty call before it sleeps. A second one shows that the handle
        // stayed readable.
        self.readiness.stale |=
            core.is_armed() && (self.readiness.empty || self.readiness.armed.is_some_and(|armed| armed.is_past(now)));
        (self.readiness.empty, self.readiness.called) = (true, now);
        if core.is_armed() {
            self.readiness.spin_policy.on_empty(now);
        }
        match self.readiness.wait_policy.on_empty(core.is_armed(), core.is_handle_in_use(), now.0 / TICK) {
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
